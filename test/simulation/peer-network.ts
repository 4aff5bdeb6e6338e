import type { Clock } from '../../src/base/clock.ts';
import { type PeerAnswer, type PeerCall, PeerCallError, type PeerHandler } from '../../src/peers/call.ts';
import type { Reachability } from '../../src/peers/dialled-peer.ts';
import type { ReceivedBody } from '../../src/peers/message.ts';
import type { PeerDelivery, Peers } from '../../src/peers/peers.ts';
import type { RequestName } from '../../src/peers/request-names.ts';
import { TakenRequests, type ToldAsker } from '../../src/peers/taken-requests.ts';
import type { Chance } from './chance.ts';
import type { FaultPlan } from './faults.ts';
import type { Owner, Scheduler } from './scheduler.ts';

/** The way of a message between two servers, in milliseconds. */
const wayMsMin = 0.3;
const wayMsMax = 4;
/** A server that was cut off from another one is so for this long at most. */
const cutMsMax = 30_000;
/** What is late, or comes a second time, does so within this time. */
const lateMsMax = 60_000;
/** Who waits for an answer for so long sends a copy another way. */
const silenceMsMin = 100;
const silenceMsMax = 1_000;
/** Whoever waits for a lost answer hears that its connection is lost after this long at most. */
const lossKnownMsMax = 12_000;

/** A process as others reach it. */
export interface NetworkEnd extends Owner {
  readonly logId: string;
  readonly serverId: string;
  /** Whether it has its port open. */
  readonly listens: boolean;
  onDeath(told: () => void): void;
}

interface Joined {
  readonly end: NetworkEnd;
  readonly handler: PeerHandler;
  readonly taken: TakenRequests;
  diedAtMs: number | null;
}

/**
 * Calls from server to server, in place of connections. Each takes its way there and back in virtual time; it can be lost with either
 * end or by a cut, which has one direction, come late, and come twice. What is a copy the production code has to see.
 */
export class PeerNetwork {
  readonly scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #faults: FaultPlan;
  /** Share of calls that are late or come twice; no world has always the same. */
  readonly #oddRate: number;
  readonly #joined = new Map<string, Joined>();
  /** Until when nothing goes from one server to another. */
  readonly #cuts = new Map<string, number>();

  constructor(scheduler: Scheduler, chance: Chance, faults: FaultPlan) {
    this.scheduler = scheduler;
    this.#chance = chance;
    this.#faults = faults;
    this.#oddRate = chance.happens(0.4) ? 0 : chance.fraction() * 0.08;
  }

  join(end: NetworkEnd, handler: PeerHandler, clock: Clock): void {
    const joined: Joined = { end, handler, taken: new TakenRequests(clock), diedAtMs: null };
    this.#joined.set(end.logId, joined);
    end.onDeath(() => {
      joined.diedAtMs = this.scheduler.nowMs;
    });
  }

  /** Cuts one direction between two servers for a while. */
  cut(from: string, to: string): void {
    this.#cuts.set(`${from} ${to}`, this.scheduler.nowMs + this.#chance.fraction() * cutMsMax);
  }

  /** Cuts both directions between two servers; the answer ends that. */
  isolate(one: string, other: string): () => void {
    const ways = [`${one} ${other}`, `${other} ${one}`];
    for (const way of ways) this.#cuts.set(way, Number.POSITIVE_INFINITY);
    return () => {
      for (const way of ways) this.#cuts.delete(way);
    };
  }

  isCut(from: NetworkEnd, to: NetworkEnd): boolean {
    return (this.#cuts.get(`${from.serverId} ${to.serverId}`) ?? 0) > this.scheduler.nowMs;
  }

  find(logId: string): Joined | undefined {
    return this.#joined.get(logId);
  }

  isReached(from: NetworkEnd, logId: string): boolean {
    const to = this.#joined.get(logId)?.end;
    return to !== undefined && !to.dead && to.listens && !this.isCut(from, to) && !this.isCut(to, from);
  }

  /** Whether `from` can reach another process of the server whose process `ended` was. */
  hasNextProcess(from: NetworkEnd, ended: NetworkEnd): boolean {
    const { logId, serverId } = ended;
    return [...this.#joined.values()].some(
      ({ end }) => end.serverId === serverId && end.logId !== logId && this.isReached(from, end.logId),
    );
  }

  /** Every process of another server that `from` can reach. */
  reachedFrom(from: NetworkEnd): readonly string[] {
    return [...this.#joined.keys()].filter((logId) => logId !== from.logId && this.isReached(from, logId));
  }

  wayMs(): number {
    return this.#chance.between(wayMsMin, wayMsMax);
  }

  silenceMs(): number {
    return this.#chance.between(silenceMsMin, silenceMsMax);
  }

  lossKnownMs(): number {
    return this.#chance.fraction() * lossKnownMsMax;
  }

  /** When the copies of one call arrive, in milliseconds from now: mostly one, soon. */
  arrivals(): readonly number[] {
    const chance = this.#chance;
    const inMs = this.wayMs();
    if (!this.#faults.on || !chance.happens(this.#oddRate)) return [inMs];
    const lateMs = chance.fraction() ** 2 * lateMsMax;
    if (
      this.#faults.count(chance.happens(0.5) ? 'a forward is late' : 'a forward comes twice') ===
      'a forward is late'
    )
      return [lateMs];
    return [inMs, lateMs];
  }
}

/** The peers of one process. */
export class SimulatedPeers
  implements Pick<Peers, 'call' | 'newName' | 'cancel' | 'thirdBeside' | 'reachability' | 'isSilent'>
{
  readonly #network: PeerNetwork;
  readonly #self: NetworkEnd;
  readonly #reached = new Set<string>();
  #sequence = 0;

  constructor(network: PeerNetwork, self: NetworkEnd) {
    this.#network = network;
    this.#self = self;
  }

  call(
    logId: string,
    call: PeerCall,
    answered: (answer: PeerAnswer) => void,
    failed: (error: PeerCallError) => void,
    silent?: () => void,
  ): PeerDelivery | null {
    const network = this.#network;
    const { scheduler } = network;
    const { name = this.newName() } = call;
    let open = true;
    const close = (run: () => void) => {
      if (!open) return;
      open = false;
      cancel();
      cancelSilence();
      run();
    };
    const fail = (outcome: PeerCallError['outcome'], inMs: number, why: PeerCallError['why'] = null) =>
      scheduler.after(inMs, this.#self, () => close(() => failed(new PeerCallError(outcome, outcome, why))));
    // Of a slow server the same is thought as of a line that is cut.
    const cancelSilence = scheduler.after(network.silenceMs(), this.#self, () => silent?.());
    const cancel = scheduler.after(call.deadlineMs, this.#self, () =>
      close(() => failed(new PeerCallError('lost', 'too late'))),
    );
    const first = call.via ?? logId;
    if (!network.isReached(this.#self, first)) {
      // A cut is noticed by some, and only afterwards by others.
      const isSent = network.find(first)?.end.dead === false && scheduler.nowMs % 2 < 1;
      fail(isSent ? 'lost' : 'not-sent', isSent ? network.lossKnownMs() : network.wayMs());
      return null;
    }
    this.#reached.add(first);
    const answer = (from: NetworkEnd, said: PeerAnswer) =>
      scheduler.after(network.wayMs(), this.#self, () => {
        if (network.isCut(from, this.#self)) fail('lost', network.lossKnownMs());
        else close(() => answered(said));
      });
    const refuse = (outcome: PeerCallError['outcome'], why: PeerCallError['why'] = null) =>
      fail(outcome, network.wayMs(), why);
    network.find(first)?.end.onDeath(() => fail('lost', network.wayMs()));
    const { body } = call;
    for (const inMs of network.arrivals()) {
      const sent = { ...call, body: body instanceof Uint8Array ? Uint8Array.from(body) : null };
      const arrive = () => this.#arrive(first, logId, { call: sent, name }, { answer, refuse });
      scheduler.after(inMs, null, arrive);
    }
    return null;
  }

  newName(): RequestName {
    return { origin: this.#self.logId, sequence: ++this.#sequence };
  }

  cancel(): void {}

  isSilent(): boolean {
    return false;
  }

  thirdBeside(logId: string): string | null {
    return this.#network.reachedFrom(this.#self).find((third) => third !== logId) ?? null;
  }

  reachability(logId: string): Reachability | null {
    const network = this.#network;
    const joined = network.find(logId);
    if (joined === undefined) return null;
    const isConnected = network.isReached(this.#self, logId);
    if (isConnected) this.#reached.add(logId);
    const hasAnswered = this.#reached.has(logId);
    const refusedSinceMs = joined.diedAtMs;
    const comesBack = refusedSinceMs !== null && network.hasNextProcess(this.#self, joined.end);
    return { hasAnswered, isConnected, refusedSinceMs, comesBack, isSilent: false };
  }

  #arrive(
    at: string,
    to: string,
    asked: { readonly call: PeerCall; readonly name: RequestName },
    back: {
      readonly answer: (from: NetworkEnd, said: PeerAnswer) => void;
      readonly refuse: (outcome: PeerCallError['outcome'], why?: PeerCallError['why']) => void;
    },
  ): void {
    const { scheduler } = this.#network;
    const joined = this.#network.find(at);
    if (joined === undefined || joined.end.dead) return;
    const { call, name } = asked;
    // Its own turn: a process that stands still takes it when it goes on.
    scheduler.after(0, joined.end, () => {
      if (at !== to) {
        if (!this.#network.isReached(joined.end, to)) return back.refuse('refused');
        scheduler.after(this.#network.wayMs(), null, () => this.#arrive(to, to, asked, back));
        return;
      }
      const tell = (told: ToldAsker) => {
        if (told.kind === 'copy') return back.refuse('lost', 'copy');
        if (told.kind === 'elsewhere') return back.refuse('lost');
        const { head, body } = told;
        const whole = body === null || body instanceof Uint8Array ? body : null;
        scheduler.after(0, joined.end, () => back.answer(joined.end, { head, body: whole }));
      };
      if (!joined.taken.take(name, tell)) return;
      joined.handler.call(
        {
          head: call.head,
          body: call.body as ReceivedBody,
          from: { serverId: this.#self.serverId, logId: this.#self.logId },
          name,
          deadlineMs: call.deadlineMs,
          placement: call.placement,
          onCancel: () => {},
        },
        (head, body = null, isKept = false) => void joined.taken.end(name, head, body, isKept),
      );
    });
  }
}
