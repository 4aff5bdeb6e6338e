/**
 * The end of a turn of this thread's event loop, in one order: first goes out what the turn has to send, then one of those
 * who gave way goes on. The other way round an answer that is ready waits for a slice of somebody's long work.
 */
import { FairQueue } from './fair-queue.ts';
import { type Share, upkeepShare } from './share.ts';

const sends: (() => void)[] = [];
/**
 * So many milliseconds of the thread, times its weight, an owner may use who was away, before it waits for those who never are. It is what a person's search,
 * write and reads of one second take together. Without it whoever had used 10 ms waited until twenty busy owners had used 10 ms each.
 */
const turnBurstMs = 25;
/** Each is a request or a piece of upkeep that is under way, which others bound. */
const yielding = new FairQueue<() => void>({
  tenantMax: Number.POSITIVE_INFINITY,
  max: Number.POSITIVE_INFINITY,
  burst: turnBurstMs,
});
/** What work that does not measure itself is taken to use between two yields, in milliseconds. */
const upkeepSliceMs = 1;
/** So long, in milliseconds, others may go on in one turn of the event loop. */
const sharedTurnMs = 0.3;
/** How long, in milliseconds, owners with some of their burst left may go on in one turn of the event loop: a turn for each would be most of what they wait. */
const burstTurnMs = 6;
let armed = false;

/** Work that measures itself, a stretch at a time: a stretch begins in `runs` and ends, at the latest, with the turn. */
export interface MeasuredWork {
  /** Called when its stretch has ended: other work runs now, or the thread waits for events. */
  rest(): void;
}

/** The work that runs just now. A thread does one thing at a time, so that no moment is counted twice. */
let running: MeasuredWork | null = null;
let restIsArmed = false;
/** When the first measured work of this turn began, by the clock of whoever told. */
let turnBeganAt = 0;

/** From now on, which is `nowMs`, this work runs; the stretch of what ran before has ended. */
export function runs(work: MeasuredWork, nowMs: number): void {
  if (running === work) return;
  running?.rest();
  running = work;
  if (restIsArmed) return;
  restIsArmed = true;
  turnBeganAt = nowMs;
  atEndOfTurn(endStretch);
}

/**
 * How long measured work has run in this turn of the event loop, whosever it was: work that waits for what is there already goes
 * on in the same turn, after that of others, and all of them together hold up what comes from outside.
 */
export function turnMs(nowMs: number): number {
  return restIsArmed ? nowMs - turnBeganAt : 0;
}

/** This work has ended its stretch itself: it waits, or it is done. */
export function rests(work: MeasuredWork): void {
  if (running === work) running = null;
}

function endStretch(): void {
  restIsArmed = false;
  const work = running;
  running = null;
  work?.rest();
}

/** Calls `send` when this turn ends. */
export function atEndOfTurn(send: () => void): void {
  sends.push(send);
  arm();
}

/**
 * Resolves after everything that is ready to run on this thread has had its turn. One goes on in each turn, whoever's share
 * has used least, and messages that came meanwhile are handled before the next one. If all went on in the same turn, a read
 * would wait for a slice of every write that is under way on its thread. Only those that take no time worth the name share a
 * turn, for a turn of the event loop for each would cost as much as they do, and those whose owners use little.
 */
export function yieldTurn(share?: Share): Promise<void> {
  // Whoever says whose it is says what it has used, too.
  if (share === undefined) yielding.charge(upkeepShare, upkeepSliceMs);
  return new Promise((resolve) => {
    yielding.push(share ?? upkeepShare, resolve);
    arm();
  });
}

/** The share has used so many milliseconds of this thread. */
export function chargeTurn(share: Share, ms: number): void {
  yielding.charge(share, ms);
}

/** Whether the share's owner has used less than whoever went on last: it need not give way to those who use much. */
export function hasBurst(share: Share): boolean {
  return yielding.hasBurst(share.owner);
}

/** How many wait to go on. */
export function waitingTurns(): number {
  return yielding.size;
}

function arm(): void {
  if (armed) return;
  armed = true;
  setImmediate(endTurn);
}

/** The next one goes on as soon as the one before has given way or waits, while the turn is young. */
function goOn(beganAt: number): void {
  yielding.shift()?.item();
  if (yielding.size === 0) return;
  queueMicrotask(() => {
    const ms = performance.now() - beganAt;
    if (ms < sharedTurnMs || (ms < burstTurnMs && yielding.burstWaits)) goOn(beganAt);
    else arm();
  });
}

function endTurn(): void {
  armed = false;
  // What goes on runs when this function has returned, and what it sends belongs to the next turn.
  if (yielding.size > 0) goOn(performance.now());
  for (const send of sends.splice(0)) send();
}
