import type { Branch, StateModel } from '../support/explore-states.ts';

export type BrokenRule =
  | 'acknowledged when sent'
  | 'a refused PUT counts as not written'
  | 'a refused PUT counts as stored'
  | 'a time-out counts as not written'
  | 'a slot gets other bytes after a time-out'
  | 'a seal counts without a look at the slot above'
  | 'a seal within the log ends its replay'
  | 'the log is not sealed'
  | 'the seal replaces what its slot holds'
  | 'the floor is not read again after sealing'
  | 'seals are collected'
  | 'the floor rises before the commit'
  | 'slots are collected before the floor has risen'
  | 'a log is done before the flush'
  | 'the manifest is loaded before the log is read'
  | 'only the last log is replayed'
  | 'the own log is not replayed'
  | 'a successor commits without comparing'
  | 'a refused commit counts as committed'
  | 'a segment is deleted when its commit is unknown'
  | 'orphans are collected before owning'
  | 'acknowledged before owning';

export interface LogVariant {
  /** How many writes each process takes; each is the successor of the one before it. */
  readonly writes: readonly number[];
  /** How often a process sends a PUT or a commit again, in all. */
  readonly resends: number;
  /** How often a process opens its namespace again after it was deposed. */
  readonly reopens: number;
  /** How often a process ends while it seals, and begins again. */
  readonly restarts: number;
  readonly broken: readonly BrokenRule[];
}

const processesMax = 3;
const slotsMax = 4;
const inFlightMax = 4;
/** What a slot or a PUT holds: nothing, a write by its number, or the seal. */
const nothing = 0;
const seal = 7;

/** Offsets of what all share. Sets of writes are bits. */
const version = 0;
const data = 1;
const owner = 2;
const acknowledged = 3;
const refused = 4;
/** Writes that somebody read. */
const seen = 5;
const done = 6;
const damage = 7;
const floors = 8;
const sealedAt = floors + processesMax;
const slots = sealedAt + processesMax;
/** PUTs on their way: log, slot and body in a byte each, in order, so that equal sets are equal bytes. */
const inFlight = slots + processesMax * slotsMax;
const processes = inFlight + inFlightMax;

/** Offsets within a process. */
const phase = 0;
const begun = 1;
/** The write whose slot is not known yet, what is known of its PUT, and the last slot that is known. */
const sending = 2;
const put = 3;
const lastSlot = 4;
const resent = 5;
/** What its memory has, what the manifest that it knows has, and that manifest's version. */
const view = 6;
const base = 7;
const known = 8;
const owns = 9;
const unacknowledged = 10;
/** The commit that is under way: kind, what is known of it, copies on their way, and how far it reaches. */
const commitKind = 11;
const commitState = 12;
const commitCopies = 13;
const commitData = 14;
const commitReach = 15;
const segmentLost = 16;
/** Slots of the own log that are in the manifest. */
const reach = 17;
const flushed = 18;
const cursor = 19;
const replaying = 20;
const reopened = 21;
const restarted = 22;
const processBytes = 23;
const stateBytes = processes + processesMax * processBytes;

const phases = { idle: 0, sealing: 1, sealed: 2, replay: 3, reading: 4, loading: 5, serving: 6, gone: 7 };
const unknown = 1;
const wasRefused = 2;
const owning = 1;
const flushing = 2;
const damages = { none: 0, missingSlot: 1, missingSegment: 2, twoWriters: 3 };

const stepNames = [
  'sends write',
  'sends again for slot',
  'slot stored or refused, answered:',
  'slot stored or refused, answer lost:',
  'looks who holds slot',
  'takes a time-out for "not written", write',
  'after a time-out sends into the same slot write',
  'begins a flush up to slot',
  'asks to own',
  'commit arrives, answered',
  'commit arrives, answer lost',
  'commits again',
  'looks whose commit it was',
  'raises its floor to',
  'says that its predecessors are done',
  'has a slot collected:',
  'has an orphan collected, of process',
  'looks for the end of the log before it, from slot',
  'tries to seal slot',
  'seals and ends before it knows, slot',
  'sends a late seal and ends, for slot',
  'reads the floor again',
  'reads the floor of log',
  'reads slot',
  'loads the manifest',
] as const;
type StepName = (typeof stepNames)[number];
const stepNumbers = new Map(stepNames.map((name, number) => [name, number]));

function label(name: StepName, process: number, detail = 0): number {
  return (stepNumbers.get(name) ?? 0) * 64 + process * 16 + detail;
}

export function stepName(step: number): StepName {
  return stepNames[step >> 6] as StepName;
}

export const allStepNames: readonly StepName[] = stepNames;

export function describeStep(step: number): string {
  return `${'ABC'[(step >> 4) & 3]} ${stepName(step)} ${step & 15}`;
}

type State = Uint8Array;

const get = (state: State, place: number): number => state[place] as number;
const of = (process: number, field: number): number => processes + process * processBytes + field;
const slotOf = (log: number, slot: number): number => slots + log * slotsMax + slot - 1;
const bit = (write: number): number => 1 << (write - 1);
const isWrite = (content: number): boolean => content !== nothing && content !== seal;

/**
 * The commit protocol of one namespace as a model small enough to be searched completely: its writes, the log of each
 * process, the floor and the collection of slots, seals, the manifest and its change of owner. Every message may arrive
 * late, twice or never, every answer may be lost, and a successor may begin at any time beside a process that lives.
 *
 * What each step stands for:
 *
 * | step | in the product |
 * |---|---|
 * | sends, sends again, looks who holds | `GroupCommit.#send` and `appendToSlot`, `whoHolds` in log/append.ts |
 * | (a slot is known) | `GroupCommit.#answer` and `#end`; `WritePipeline.#apply` in namespace/write-pipeline.ts |
 * | begins a flush | `flushNamespace`, `reachOf` and the upload of the segment, in namespace/flush.ts |
 * | asks to own | `takeOwnership` in namespace/flush.ts, called by `NamespaceActor.#becomeReady` |
 * | commit arrives, commits again, looks whose | `commit` in storage/manifest-store.ts |
 * | (deposed) | `Upkeep.#flushing` closes the actor; `ActorHost.#replayAgain` reopens it |
 * | raises its floor | `UnflushedTargets.floor` and `writeFloor`, by `LogService.#finishLogs` |
 * | says that logs are done | `LogService.#finishLogs` |
 * | slot collected | `LogCollection` and `planLogCollection` in log/collect-log.ts: under a floor, or of a log that is done |
 * | orphan collected | deletion of uploaded segments that no manifest names |
 * | looks for the end, tries to seal | `sealLog`, `sealFrom` in log/seal.ts |
 * | reads the floor again | the end of the loop in `sealLog`, and `joinCluster` in src/cluster/join.ts |
 * | reads the floor, reads a slot | `LogService.#replay` and `replayLog` in log/replay.ts |
 * | loads the manifest | `openNamespace` in namespace/open.ts; reads are served from here on |
 *
 * A new owner serves reads while its compare-and-set runs, and whatever was read must be found by all later reads;
 * acknowledgements, flushes and collection wait for it.
 *
 * Left out: the order of writes within a namespace (a set of writes is all that a reader has here), other namespaces,
 * the view's own compare-and-set, and reads of a process that has a successor, which time bounds and not the log.
 */
export function logModel(variant: LogVariant): StateModel {
  const initial = new Uint8Array(stateBytes);
  initial[of(0, phase)] = phases.serving;
  initial[of(0, owns)] = 1;
  const rules = rulesOf(variant);
  return { initial, steps: (state, branch) => everyStep(rules, state, branch), violation };
}

interface Rules {
  readonly variant: LogVariant;
  readonly processCount: number;
  readonly isBroken: (rule: BrokenRule) => boolean;
  /** The number of a process's first write. */
  readonly firstWrite: readonly number[];
}

function rulesOf(variant: LogVariant): Rules {
  const broken = new Set(variant.broken);
  let next = 1;
  const firstWrite = variant.writes.map((count) => {
    const first = next;
    next += count;
    return first;
  });
  if (next > seal || variant.writes.some((count) => count >= slotsMax)) throw new Error('too many writes');
  const isBroken = (rule: BrokenRule) => broken.has(rule);
  return { variant, processCount: variant.writes.length, isBroken, firstWrite };
}

function everyStep(rules: Rules, state: State, branch: Branch): void {
  arrivals(rules, state, branch);
  for (let process = 0; process < rules.processCount; process++) {
    collectSlots(rules, state, process, branch);
    if (get(state, of(process, phase)) === phases.idle) {
      if (hasJoined(state, process - 1)) succeed(rules, state, process, branch);
      continue;
    }
    append(rules, state, process, branch);
    commit(rules, state, process, branch);
    housekeep(rules, state, process, branch);
    join(rules, state, process, branch);
    open(rules, state, process, branch);
  }
}

function hasJoined(state: State, process: number): boolean {
  return get(state, of(process, phase)) >= phases.replay;
}

// --- The log: one PUT in flight, its slot resolved before the next.

function append(rules: Rules, state: State, process: number, branch: Branch): void {
  const { variant } = rules;
  const write = get(state, of(process, sending));
  const slot = get(state, of(process, lastSlot)) + 1;
  const serves = get(state, of(process, phase)) === phases.serving;
  const mayBegin = get(state, of(process, begun)) < (variant.writes[process] ?? 0) && hasRoom(state);
  const next = (rules.firstWrite[process] ?? 0) + get(state, of(process, begun));
  if (write === nothing) {
    if (!serves || !mayBegin || get(state, of(process, put)) === wasRefused) return;
    branch(label('sends write', process, next), (s) => {
      s[of(process, begun)] = get(s, of(process, begun)) + 1;
      s[of(process, sending)] = next;
      s[of(process, put)] = unknown;
      addInFlight(s, process, slot, next);
      if (rules.isBroken('acknowledged when sent')) acknowledge(s, bit(next));
    });
    return;
  }
  if (get(state, of(process, put)) === wasRefused) {
    branch(label('looks who holds slot', process, slot), (s) => lookAtSlot(rules, s, process));
    return;
  }
  if (get(state, of(process, resent)) < variant.resends && hasRoom(state)) {
    branch(label('sends again for slot', process, slot), (s) => {
      s[of(process, resent)] = get(s, of(process, resent)) + 1;
      addInFlight(s, process, slot, write);
    });
  }
  if (rules.isBroken('a time-out counts as not written')) {
    branch(label('takes a time-out for "not written", write', process, write), (s) => refuse(s, bit(write)));
  }
  if (rules.isBroken('a slot gets other bytes after a time-out') && serves && mayBegin) {
    branch(label('after a time-out sends into the same slot write', process, next), (s) => {
      refuse(s, bit(write));
      s[of(process, begun)] = get(s, of(process, begun)) + 1;
      s[of(process, sending)] = next;
      addInFlight(s, process, slot, next);
    });
  }
}

/**
 * The seal that ended this log lies above the slot, so the slot was taken when the log was sealed, by us. What it holds
 * now is a late seal, which found it collected.
 */
function isBelowSeal(rules: Rules, s: State, process: number): boolean {
  const above = get(s, of(process, lastSlot)) + 2;
  if (rules.isBroken('a seal counts without a look at the slot above')) return false;
  return above <= slotsMax && get(s, slotOf(process, above)) === seal;
}

/** Refused: our own bytes got there before, or a seal did; only the slot itself can tell. */
function lookAtSlot(rules: Rules, s: State, process: number): void {
  const write = get(s, of(process, sending));
  const holds = get(s, slotOf(process, get(s, of(process, lastSlot)) + 1));
  const isRefused = rules.isBroken('a refused PUT counts as not written');
  const isStored = holds === write || isBelowSeal(rules, s, process);
  if (rules.isBroken('a refused PUT counts as stored') || (isStored && !isRefused))
    slotIsOurs(rules, s, process);
  else if (isRefused || holds === seal) {
    refuse(s, bit(write));
    s[of(process, sending)] = nothing; // `put` stays refused: this log takes nothing any more.
  } else if (holds === nothing) s[of(process, put)] = unknown;
  else s[damage] = damages.twoWriters;
}

/** Durable. An open actor applies it; a closed one only answers, and the next one replays it. */
function slotIsOurs(rules: Rules, s: State, process: number): void {
  const write = get(s, of(process, sending));
  s[of(process, lastSlot)] = get(s, of(process, lastSlot)) + 1;
  s[of(process, sending)] = nothing;
  s[of(process, put)] = nothing;
  const serves = get(s, of(process, phase)) === phases.serving;
  if (serves) showTo(s, process, bit(write));
  const mayAnswer = get(s, of(process, owns)) === 1 || rules.isBroken('acknowledged before owning');
  if (mayAnswer) acknowledge(s, bit(write));
  else if (serves) s[of(process, unacknowledged)] = get(s, of(process, unacknowledged)) | bit(write);
}

function arrivals(rules: Rules, state: State, branch: Branch): void {
  for (let at = 0; at < inFlightMax; at++) {
    const message = get(state, inFlight + at);
    if (message === 0 || (at > 0 && get(state, inFlight + at - 1) === message)) continue;
    const log = message >> 6;
    const slot = (message >> 3) & 7;
    const body = message & 7;
    const isWaitedFor =
      get(state, of(log, sending)) === body &&
      get(state, of(log, put)) === unknown &&
      get(state, of(log, lastSlot)) + 1 === slot;
    const arrive = (s: State): boolean => {
      removeInFlight(s, at);
      const place = slotOf(log, slot);
      if (get(s, place) !== nothing) return false;
      s[place] = body;
      return true;
    };
    branch(label('slot stored or refused, answer lost:', log, slot), arrive);
    if (!isWaitedFor) continue;
    branch(label('slot stored or refused, answered:', log, slot), (s) => {
      if (arrive(s)) slotIsOurs(rules, s, log);
      else s[of(log, put)] = wasRefused;
    });
  }
}

function hasRoom(state: State): boolean {
  return get(state, inFlight) === 0;
}

/** Kept in order; the free places come first. */
function addInFlight(s: State, log: number, slot: number, body: number): void {
  s[inFlight] = (log << 6) | (slot << 3) | body;
  s.subarray(inFlight, inFlight + inFlightMax).sort();
}

function removeInFlight(s: State, at: number): void {
  s[inFlight + at] = 0;
  s.subarray(inFlight, inFlight + inFlightMax).sort();
}

function acknowledge(s: State, writes: number): void {
  s[acknowledged] = get(s, acknowledged) | writes;
}

function refuse(s: State, writes: number): void {
  s[refused] = get(s, refused) | writes;
}

/** Applied to the memtable: from here on reads find it. */
function showTo(s: State, process: number, writes: number): void {
  s[of(process, view)] = get(s, of(process, view)) | writes;
  s[seen] = get(s, seen) | get(s, of(process, view));
}

// --- The manifest: one commit at a time, by compare-and-set, its outcome always found out.

function commit(rules: Rules, state: State, process: number, branch: Branch): void {
  const outcome = get(state, of(process, commitState));
  if (get(state, of(process, commitCopies)) > 0) arrivalOfCommit(rules, state, process, branch);
  if (outcome === wasRefused) {
    branch(label('looks whose commit it was', process), (s) => {
      const isOurs = get(s, version) === get(s, of(process, known)) + 1 && get(s, owner) === process;
      if (isOurs || rules.isBroken('a refused commit counts as committed')) committed(s, process);
      else deposed(rules, s, process);
    });
    return;
  }
  if (outcome === unknown) {
    if (get(state, of(process, resent)) >= rules.variant.resends) return;
    branch(label('commits again', process), (s) => {
      s[of(process, resent)] = get(s, of(process, resent)) + 1;
      s[of(process, commitCopies)] = get(s, of(process, commitCopies)) + 1;
    });
    return;
  }
  if (get(state, of(process, phase)) !== phases.serving) return;
  if (get(state, of(process, owns)) === 0) {
    branch(label('asks to own', process), (s) => beginCommit(s, process, owning));
    return;
  }
  if (get(state, of(process, view)) === get(state, of(process, base))) return;
  const last = get(state, of(process, lastSlot));
  branch(label('begins a flush up to slot', process, last), (s) => {
    beginCommit(s, process, flushing);
    s[of(process, commitData)] = get(s, of(process, view));
    s[of(process, commitReach)] = last;
    if (rules.isBroken('the floor rises before the commit')) s[of(process, reach)] = last;
  });
}

function beginCommit(s: State, process: number, kind: number): void {
  s[of(process, commitKind)] = kind;
  s[of(process, commitState)] = unknown;
  s[of(process, commitCopies)] = 1;
}

function arrivalOfCommit(rules: Rules, state: State, process: number, branch: Branch): void {
  const compares = process === 0 || !rules.isBroken('a successor commits without comparing');
  const arrive = (s: State): boolean => {
    s[of(process, commitCopies)] = get(s, of(process, commitCopies)) - 1;
    if (compares && get(s, version) !== get(s, of(process, known))) return false;
    s[version] = get(s, version) + 1;
    s[owner] = process;
    if (get(s, of(process, commitKind)) === flushing) s[data] = get(s, of(process, commitData));
    else if (!compares) s[data] = get(s, of(process, base));
    if (get(s, of(process, segmentLost)) === 1) s[damage] = damages.missingSegment;
    return true;
  };
  const isWaitedFor = get(state, of(process, commitState)) === unknown;
  branch(label('commit arrives, answer lost', process), (s) => {
    const wasCommitted = arrive(s);
    if (!rules.isBroken('a segment is deleted when its commit is unknown')) return;
    if (wasCommitted && get(s, of(process, commitKind)) === flushing) s[damage] = damages.missingSegment;
  });
  if (!isWaitedFor) return;
  branch(label('commit arrives, answered', process), (s) => {
    if (arrive(s)) committed(s, process);
    else s[of(process, commitState)] = wasRefused;
  });
}

function committed(s: State, process: number): void {
  s[of(process, known)] = get(s, of(process, known)) + 1;
  if (get(s, of(process, commitKind)) === flushing) {
    s[of(process, base)] = get(s, of(process, commitData));
    s[of(process, reach)] = get(s, of(process, commitReach));
    s[of(process, flushed)] = 1;
  }
  s[of(process, owns)] = 1;
  acknowledge(s, get(s, of(process, unacknowledged)));
  s[of(process, unacknowledged)] = 0;
  endCommit(s, process);
}

/** The actor closes. The next one begins from the logs and the manifest; who waited for an answer gets "unknown". */
function deposed(rules: Rules, s: State, process: number): void {
  endCommit(s, process);
  forget(s, process);
  const mayReopen = get(s, of(process, reopened)) < rules.variant.reopens;
  s[of(process, phase)] = mayReopen ? phases.replay : phases.gone;
  s[of(process, reopened)] = get(s, of(process, reopened)) + (mayReopen ? 1 : 0);
  s[of(process, replaying)] = firstReplayed(rules, process);
}

function endCommit(s: State, process: number): void {
  for (const field of [commitKind, commitState, commitCopies, commitData, commitReach, segmentLost])
    s[of(process, field)] = 0;
}

function forget(s: State, process: number): void {
  for (const field of [view, base, known, unacknowledged, cursor]) s[of(process, field)] = 0;
}

// --- Floors and collection.

function housekeep(rules: Rules, state: State, process: number, branch: Branch): void {
  if (!hasJoined(state, process)) return;
  const flushedTo = get(state, of(process, reach));
  // Other records of the same slot may be missing from manifests, unless nothing is.
  const floor = flushedTo === get(state, of(process, lastSlot)) ? flushedTo : flushedTo - 1;
  if (floor > get(state, floors + process)) {
    branch(label('raises its floor to', process, floor), (s) => {
      s[floors + process] = floor;
    });
  }
  const serves = get(state, of(process, phase)) === phases.serving;
  const predecessors = (1 << process) - 1;
  const isTakenOver =
    get(state, of(process, flushed)) === 1 || (serves && rules.isBroken('a log is done before the flush'));
  if (isTakenOver && (get(state, done) & predecessors) !== predecessors) {
    branch(label('says that its predecessors are done', process), (s) => {
      s[done] = get(s, done) | predecessors;
    });
  }
  if (serves) collectOrphans(rules, state, process, branch);
}

function collectSlots(rules: Rules, state: State, log: number, branch: Branch): void {
  const risen = get(state, floors + log);
  const floor = rules.isBroken('slots are collected before the floor has risen')
    ? Math.max(risen, get(state, of(log, reach)))
    : risen;
  const isDone = (get(state, done) & (1 << log)) !== 0;
  for (let slot = 1; slot <= slotsMax; slot++) {
    const content = get(state, slotOf(log, slot));
    if (content === nothing || (slot > floor && !isDone)) continue;
    if (content === seal && !rules.isBroken('seals are collected')) continue;
    branch(label('has a slot collected:', log, slot), (s) => {
      s[slotOf(log, slot)] = nothing;
    });
  }
}

/**
 * A segment that was uploaded under an older manifest than the owner's own commit can never be named: its commit will be
 * refused. The product waits a day instead of remembering versions.
 */
function collectOrphans(rules: Rules, state: State, process: number, branch: Branch): void {
  const careless = rules.isBroken('orphans are collected before owning');
  if (get(state, of(process, owns)) === 0 && !careless) return;
  if (get(state, version) !== get(state, of(process, known))) return;
  for (let other = 0; other < rules.processCount; other++) {
    const uploads = other !== process && get(state, of(other, commitKind)) === flushing;
    if (!uploads || get(state, of(other, segmentLost)) === 1) continue;
    const isVoid = get(state, of(other, known)) < get(state, of(process, known));
    if (!isVoid && !careless) continue;
    branch(label('has an orphan collected, of process', process, other), (s) => {
      s[of(other, segmentLost)] = 1;
    });
  }
}

// --- The successor: seals the log before its own, joins, replays, opens.

/** False suspicion is allowed at any time: the process before it may live on. */
function succeed(rules: Rules, state: State, process: number, branch: Branch): void {
  const log = process - 1;
  if (rules.isBroken('the log is not sealed')) {
    branch(label('looks for the end of the log before it, from slot', process), (s) => {
      s[of(process, phase)] = phases.replay;
      s[of(process, replaying)] = firstReplayed(rules, process);
    });
    return;
  }
  const floor = get(state, floors + log);
  let last = 0;
  for (let slot = 1; slot <= slotsMax; slot++) if (get(state, slotOf(log, slot)) !== nothing) last = slot;
  // The listing may be behind by any number of slots.
  for (let from = floor + 1; from <= Math.max(floor + 1, last); from++) {
    branch(label('looks for the end of the log before it, from slot', process, from), (s) => {
      s[of(process, phase)] = phases.sealing;
      s[of(process, cursor)] = from;
      if (rules.isBroken('the manifest is loaded before the log is read')) loadManifest(s, process);
    });
  }
}

function join(rules: Rules, state: State, process: number, branch: Branch): void {
  const log = process - 1;
  const slot = get(state, of(process, cursor));
  if (get(state, of(process, phase)) === phases.sealing && slot <= slotsMax) {
    const holds = get(state, slotOf(log, slot));
    const seals = holds === nothing || rules.isBroken('the seal replaces what its slot holds');
    branch(label('tries to seal slot', process, slot), (s) => {
      if (seals) s[slotOf(log, slot)] = seal;
      if (seals || holds === seal) s[of(process, phase)] = phases.sealed;
      else s[of(process, cursor)] = slot + 1;
    });
    if (get(state, of(process, restarted)) >= rules.variant.restarts) return;
    if (holds === nothing) {
      branch(label('seals and ends before it knows, slot', process, slot), (s) => {
        s[slotOf(log, slot)] = seal;
        restart(s, process);
      });
    }
    if (hasRoom(state)) {
      branch(label('sends a late seal and ends, for slot', process, slot), (s) => {
        addInFlight(s, log, slot, seal);
        restart(s, process);
      });
    }
  }
  if (get(state, of(process, phase)) !== phases.sealed) return;
  branch(label('reads the floor again', process), (s) => {
    const floor = get(s, floors + log);
    if (slot <= floor && !rules.isBroken('the floor is not read again after sealing')) {
      s[of(process, phase)] = phases.sealing;
      s[of(process, cursor)] = floor + 1;
      return;
    }
    s[sealedAt + log] = slot;
    s[of(process, cursor)] = 0;
    s[of(process, phase)] = phases.replay;
    s[of(process, replaying)] = firstReplayed(rules, process);
  });
}

function restart(s: State, process: number): void {
  forget(s, process);
  s[of(process, phase)] = phases.idle;
  s[of(process, restarted)] = get(s, of(process, restarted)) + 1;
}

function firstReplayed(rules: Rules, process: number): number {
  return rules.isBroken('only the last log is replayed') ? Math.max(process - 1, 0) : 0;
}

function open(rules: Rules, state: State, process: number, branch: Branch): void {
  const log = get(state, of(process, replaying));
  switch (get(state, of(process, phase))) {
    case phases.replay:
      // Whatever was submitted is resolved before the log is read.
      if (get(state, of(process, sending)) !== nothing) return;
      branch(label('reads the floor of log', process, log), (s) => beginLog(rules, s, process));
      return;
    case phases.reading:
      branch(label('reads slot', process, get(state, of(process, cursor))), (s) =>
        readSlot(rules, s, process),
      );
      return;
    case phases.loading:
      branch(label('loads the manifest', process), (s) => {
        if (!rules.isBroken('the manifest is loaded before the log is read')) loadManifest(s, process);
        s[of(process, phase)] = phases.serving;
        // A namespace without a manifest has no owner to take it from.
        const isOwner = get(s, of(process, known)) === 0 || get(s, owner) === process;
        s[of(process, owns)] = isOwner ? 1 : 0;
        showTo(s, process, 0);
      });
      return;
    default:
  }
}

function beginLog(rules: Rules, s: State, process: number): void {
  const log = get(s, of(process, replaying));
  const isSkipped =
    (get(s, done) & (1 << log)) !== 0 || (log === process && rules.isBroken('the own log is not replayed'));
  s[of(process, cursor)] = get(s, floors + log) + 1;
  s[of(process, phase)] = phases.reading;
  if (isSkipped || get(s, of(process, cursor)) > lastOf(s, process, log)) nextLog(s, process);
}

/** The last slot to read. Where no seal says it, the first free slot does. */
function lastOf(s: State, process: number, log: number): number {
  if (log === process) return get(s, of(process, lastSlot));
  return get(s, sealedAt + log) === 0 ? slotsMax : get(s, sealedAt + log) - 1;
}

function nextLog(s: State, process: number): void {
  const log = get(s, of(process, replaying)) + 1;
  s[of(process, cursor)] = 0;
  s[of(process, replaying)] = log > process ? 0 : log;
  s[of(process, phase)] = log > process ? phases.loading : phases.replay;
}

function readSlot(rules: Rules, s: State, process: number): void {
  const log = get(s, of(process, replaying));
  const slot = get(s, of(process, cursor));
  const holds = get(s, slotOf(log, slot));
  if (isWrite(holds)) {
    s[of(process, view)] = get(s, of(process, view)) | bit(holds);
    s[of(process, cursor)] = slot + 1;
    if (slot + 1 > lastOf(s, process, log)) nextLog(s, process);
    return;
  }
  // Collected while it was read: the floor has risen beyond it, or the log is done.
  const isCollected = get(s, floors + log) >= slot || (get(s, done) & (1 << log)) !== 0;
  const isEnd = holds === seal || (log < process && get(s, sealedAt + log) === 0);
  if (isEnd && (!isCollected || rules.isBroken('a seal within the log ends its replay'))) nextLog(s, process);
  else if (isCollected) s[of(process, phase)] = phases.replay;
  else s[damage] = damages.missingSlot;
}

function loadManifest(s: State, process: number): void {
  s[of(process, view)] = get(s, of(process, view)) | get(s, data);
  s[of(process, base)] = get(s, data);
  s[of(process, known)] = get(s, version);
}

// --- What must hold in every state.

function violation(state: State): string | null {
  switch (get(state, damage)) {
    case damages.missingSlot:
      return 'a slot is missing between the floor and the end of its log';
    case damages.missingSegment:
      return 'the manifest names a segment that was deleted';
    case damages.twoWriters:
      return 'a slot holds the bytes of another write';
    default:
  }
  if ((get(state, refused) & get(state, data)) !== 0)
    return 'a write that was told "nothing written" is in the manifest';
  return violationOfReads(state);
}

/** What reads of the newest process break: the reads of those before it are ended by time. */
function violationOfReads(state: State): string | null {
  let newest = 0;
  for (let process = 1; process < processesMax; process++) if (hasJoined(state, process)) newest = process;
  if (get(state, of(newest, phase)) !== phases.serving) return null;
  const found = get(state, of(newest, view));
  if ((get(state, acknowledged) & ~found) !== 0) return 'an acknowledged write is lost';
  if ((get(state, seen) & ~found) !== 0) return 'a write that was read is gone';
  if ((get(state, refused) & found) !== 0) return 'a write that was told "nothing written" is read';
  return null;
}
