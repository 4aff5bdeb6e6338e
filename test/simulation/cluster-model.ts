import type { Branch, StateModel } from '../support/explore-states.ts';

export type BrokenRule =
  | 'records that moved away are not refused by the log'
  | 'a new owner waits for nobody'
  | 'a member that leaves is not waited for'
  | 'a later barrier counts for an earlier view'
  | 'reads stop when the barrier is stored'
  | 'a slot is collected when its namespace has a new owner'
  | 'only the log of the last owner is read'
  | 'the manifest is loaded before the barrier'
  | 'a refused commit is sent again over the new version'
  | 'a member is removed before its log is sealed'
  | 'an eviction is tried again by server'
  | 'reads are not waited out after a seal'
  | 'only writes wait after a seal'
  | 'evidence of an append dates from its answer';

/** What may happen to the view, each once, in any order. */
export type ViewChange =
  | { readonly kind: 'joins' | 'leaves' | 'is suspected'; readonly server: number }
  /** The server of an earlier process joins with a log of its own, and seals that one's. */
  | { readonly kind: 'starts again'; readonly server: number; readonly before: number };

export interface ClusterVariant {
  /** How many writes there may be of each namespace. */
  readonly writes: readonly [number, number];
  readonly changes: readonly ViewChange[];
  readonly broken: readonly BrokenRule[];
}

const serverCount = 3;
const namespaceCount = 2;
const slotsMax = 6;
const viewsMax = 4;
const writesOfNamespaceMax = 2;

/** Whom a namespace belongs to, by rendezvous hash: the first of these that is active. */
const preferences: readonly (readonly number[])[] = [
  [2, 0, 1],
  [0, 1, 2],
];

/** What a slot holds, in its low three bits; above them the view of its header. Writes are 1 to 4, two of each namespace. */
const nothing = 0;
const barrier = 5;
const seal = 6;
const collected = 7;

/** Offsets of what all share. Sets of writes are bits. */
const viewNow = 0;
const activeIn = 1;
const membersIn = activeIn + viewsMax;
const made = membersIn + viewsMax;
const acknowledged = made + 1;
const refused = acknowledged + 1;
const seen = refused + 1;
const begun = seen + 1;
const aged = begun + namespaceCount;
const slots = aged + 1;
const manifests = slots + serverCount * slotsMax;
/** Offsets within a manifest. */
const version = 0;
const owner = 1;
const ownerView = 2;
const data = 3;
const manifestBytes = 4;
const servers = manifests + namespaceCount * manifestBytes;
/** Offsets within a server. */
const phase = 0;
const adopted = 1;
const lastSlot = 2;
/** The view of its last header. */
const headed = 3;
const queued = 4;
/** What its PUT holds, as in a slot; then whether it is stored. */
const sending = 5;
const isStored = 6;
const spaces = 7;
/** Offsets within what a server knows of a namespace. */
const state = 0;
const memory = 1;
const base = 2;
const known = 3;
const owns = 4;
const commitKind = 5;
const commitKnown = 6;
const commitData = 7;
const commitView = 8;
/** Whether whoever began the commit still waits for its answer. */
const commitHeard = 9;
const spaceBytes = 10;
const serverBytes = spaces + namespaceCount * spaceBytes;
const stateBytes = servers + serverCount * serverBytes;

const phases = { out: 0, member: 1, gone: 2 };
const states = { closed: 0, waiting: 1, replayed: 2, serving: 3, lingering: 4, loadedEarly: 5 };
const owning = 1;
const flushing = 2;

const stepNames = [
  'takes a write of namespace',
  'forms a group with write',
  'refuses write',
  'forms a barrier of view',
  'stores slot',
  'hears of slot',
  'meets the seal in slot',
  'adopts view',
  'reads the logs for namespace',
  'loads the manifest of namespace',
  'begins to own namespace',
  'begins a flush of namespace',
  'has a commit arrive, of namespace',
  'has a commit refused, of namespace',
  'has a slot collected:',
  'joins with view',
  'begins to leave with view',
  'is sealed by others, in slot',
  'is removed with view',
  'seals the log before its own, in slot',
  'has evidence that has grown old',
  'is taken for the process before it and removed with view',
] as const;
type StepName = (typeof stepNames)[number];
const stepNumbers = new Map(stepNames.map((name, number) => [name, number]));

function label(name: StepName, server: number, detail: number): number {
  return (stepNumbers.get(name) ?? 0) * 64 + server * 16 + detail;
}

export const allStepNames: readonly StepName[] = stepNames;

export function stepName(step: number): StepName {
  return stepNames[step >> 6] as StepName;
}

export function describeStep(step: number): string {
  return `${'ABC'[(step >> 4) & 3]} ${stepName(step)} ${step & 15}`;
}

type State = Uint8Array;

const get = (s: State, place: number): number => s[place] as number;
const of = (server: number, field: number): number => servers + server * serverBytes + field;
const at = (server: number, space: number, field: number): number =>
  of(server, spaces + space * spaceBytes + field);
const manifestOf = (space: number, field: number): number => manifests + space * manifestBytes + field;
const slotOf = (log: number, slot: number): number => slots + log * slotsMax + slot - 1;
const bodyOf = (content: number): number => content & 7;
const viewOf = (content: number): number => content >> 3;
const bit = (write: number): number => 1 << (write - 1);
const spaceOf = (write: number): number => (write - 1) >> 1;
const writesOf = (space: number): number => 3 << (space * writesOfNamespaceMax);
const isWrite = (body: number): boolean => body !== nothing && body < barrier;

interface Rules {
  readonly variant: ClusterVariant;
  readonly isBroken: (rule: BrokenRule) => boolean;
}

/**
 * Several servers on one store as a model small enough to be searched completely: three servers, each with a log of its
 * own, two namespaces, and the cluster view, which is changed by joins, leaves and evictions. A server may pause between
 * any two steps, for ever too, so a crash needs no step of its own; anybody may be suspected at any time, wrongly too.
 *
 * | step | what it stands for |
 * |---|---|
 * | takes a write | an actor submits a record; it waits in the log's queue, behind a blob perhaps |
 * | forms a group, refuses | the log thread puts the record into a group, or finds that its namespace has moved |
 * | forms a barrier | nothing else is to be written, and other servers wait for a header with the new view |
 * | stores, hears of | the PUT lands in the next slot; its answer comes |
 * | adopts the view | all threads take the new view at once: whatever moved away is closed, and read no more |
 * | reads the logs | every other member's log has reached the own view, or is sealed: all that is in them is read |
 * | loads the manifest | only then; reads are served from here on, while the change of owner runs |
 * | begins a commit, commit arrives | a flush or a change of owner, by compare-and-set; late ones of earlier owners too |
 * | slot collected | what the slot holds is in its namespace's manifest |
 * | seals, removes | an eviction: first the seal, then the view; anybody finishes one that was half done |
 * | evidence grows old | more than a second has passed since the sealed log was last seen open by its process |
 *
 * A header carries the view of its writer, so each group is a barrier where it is the first of a view. Whatever can be
 * read is read at once, and has to be found by all later reads of anybody.
 *
 * Left out, because log-model.ts has them: PUTs and commits whose answers are lost, the search for the end of a log, floors
 * that rise while a log is read. Left out, because they decide how soon and not whether: leases, joining in two steps.
 */
export function clusterModel(variant: ClusterVariant): StateModel {
  if (variant.changes.length >= viewsMax + 1) throw new Error('too many changes of the view');
  const broken = new Set(variant.broken);
  const rules: Rules = { variant, isBroken: (rule) => broken.has(rule) };
  return {
    initial: initialState(),
    // Whatever can be read after a step is read: no state without that is of interest.
    steps: (s, branch) =>
      everyStep(rules, s, (step, change) =>
        branch(step, (next) => {
          change(next);
          readAll(next);
        }),
      ),
    violation,
  };
}

/** A and B are members, and A has both namespaces. */
function initialState(): State {
  const s = new Uint8Array(stateBytes);
  s[activeIn] = 0b011;
  s[membersIn] = 0b011;
  s[of(0, phase)] = phases.member;
  s[of(1, phase)] = phases.member;
  for (let space = 0; space < namespaceCount; space++) {
    s[at(0, space, state)] = states.serving;
    s[at(0, space, owns)] = 1;
  }
  return s;
}

function everyStep(rules: Rules, s: State, branch: Branch): void {
  changeView(rules, s, branch);
  for (let server = 0; server < serverCount; server++) {
    collect(rules, s, server, branch);
    growOld(s, server, branch);
    for (let space = 0; space < namespaceCount; space++) arrivalOfCommit(rules, s, { server, space }, branch);
    if (get(s, of(server, phase)) !== phases.member) continue;
    append(rules, s, server, branch);
    const view = get(s, viewNow);
    if (get(s, of(server, adopted)) < view)
      branch(label('adopts view', server, view), (next) => adopt(rules, next, server));
    for (let space = 0; space < namespaceCount; space++) own(rules, s, { server, space }, branch);
  }
}

// --- The log: what waits, one PUT in flight, and the view in every header.

function append(rules: Rules, s: State, server: number, branch: Branch): void {
  takeWrites(rules, s, server, branch);
  const slot = get(s, of(server, lastSlot)) + 1;
  const body = get(s, of(server, sending));
  if (body === nothing) return formGroup(rules, s, server, branch);
  if (get(s, of(server, isStored)) === 1) {
    branch(label('hears of slot', server, slot), (next) => hear(rules, next, server));
    return;
  }
  if (slot > slotsMax) throw new Error('the log has too few slots');
  if (get(s, slotOf(server, slot)) === nothing) {
    branch(label('stores slot', server, slot), (next) => {
      next[slotOf(server, slot)] = get(next, of(server, sending));
      next[of(server, isStored)] = 1;
    });
    return;
  }
  branch(label('meets the seal in slot', server, slot), (next) => stop(next, server));
}

function takeWrites(rules: Rules, s: State, server: number, branch: Branch): void {
  if (get(s, of(server, queued)) !== nothing) return;
  if (rules.isBroken('only writes wait after a seal') && !sealsAreOld(s)) return;
  for (let space = 0; space < namespaceCount; space++) {
    const count = get(s, begun + space);
    if (get(s, at(server, space, state)) !== states.serving) continue;
    if (count === rules.variant.writes[space]) continue;
    branch(label('takes a write of namespace', server, space), (next) => {
      next[begun + space] = count + 1;
      next[of(server, queued)] = space * writesOfNamespaceMax + count + 1;
    });
  }
}

function formGroup(rules: Rules, s: State, server: number, branch: Branch): void {
  const write = get(s, of(server, queued));
  const view = get(s, of(server, adopted));
  const form = (next: State, body: number) => {
    next[of(server, sending)] = body | (view << 3);
    next[of(server, headed)] = view;
  };
  if (get(s, of(server, headed)) < view)
    branch(label('forms a barrier of view', server, view), (next) => form(next, barrier));
  if (write === nothing) return;
  const isMine = get(s, at(server, spaceOf(write), state)) === states.serving;
  if (isMine || rules.isBroken('records that moved away are not refused by the log')) {
    branch(label('forms a group with write', server, write), (next) => {
      next[of(server, queued)] = nothing;
      form(next, write);
    });
    return;
  }
  branch(label('refuses write', server, write), (next) => {
    next[of(server, queued)] = nothing;
    refuse(next, write);
  });
}

/** Acknowledged, by whomever it was taken: a closed actor answers too. */
function hear(rules: Rules, s: State, server: number): void {
  const body = bodyOf(get(s, of(server, sending)));
  s[of(server, lastSlot)] = get(s, of(server, lastSlot)) + 1;
  s[of(server, sending)] = nothing;
  s[of(server, isStored)] = 0;
  if (rules.isBroken('evidence of an append dates from its answer')) s[aged] = get(s, aged) & ~(1 << server);
  for (let space = 0; space < namespaceCount; space++)
    if (body === barrier && get(s, at(server, space, state)) === states.lingering)
      close(s, { server, space });
  if (!isWrite(body)) return;
  s[acknowledged] = get(s, acknowledged) | bit(body);
  const space = spaceOf(body);
  const isOpen = [states.serving, states.lingering].includes(get(s, at(server, space, state)));
  if (isOpen) s[at(server, space, memory)] = get(s, at(server, space, memory)) | bit(body);
}

function refuse(s: State, body: number): void {
  if (isWrite(body)) s[refused] = get(s, refused) | bit(body);
}

/** It has met the seal of its log, or a view without it. A commit that is on its way may still arrive. */
function stop(s: State, server: number): void {
  if (get(s, of(server, isStored)) === 0) refuse(s, bodyOf(get(s, of(server, sending))));
  refuse(s, get(s, of(server, queued)));
  for (let space = 0; space < namespaceCount; space++) close(s, { server, space });
  for (const field of [adopted, lastSlot, headed, queued, sending, isStored]) s[of(server, field)] = 0;
  s[of(server, phase)] = phases.gone;
}

// --- Views, and what they do to namespaces.

interface Space {
  readonly server: number;
  readonly space: number;
}

function ownerIn(s: State, view: number, space: number): number {
  const active = get(s, activeIn + view);
  return preferences[space]?.find((server) => (active & (1 << server)) !== 0) ?? serverCount;
}

function isMember(s: State, view: number, server: number): boolean {
  return (get(s, membersIn + view) & (1 << server)) !== 0;
}

function adopt(rules: Rules, s: State, server: number): void {
  const view = get(s, viewNow);
  if (!isMember(s, view, server)) return stop(s, server);
  s[of(server, adopted)] = view;
  for (let space = 0; space < namespaceCount; space++) {
    const place = at(server, space, state);
    const isMine = ownerIn(s, view, space) === server;
    const lingers =
      rules.isBroken('reads stop when the barrier is stored') && get(s, place) === states.serving && !isMine;
    if (lingers) s[place] = states.lingering;
    else if (!isMine || get(s, place) === states.lingering) close(s, { server, space });
    if (isMine && get(s, place) === states.closed) s[place] = states.waiting;
  }
}

/** Forgets a namespace, but for a commit on its way. */
function close(s: State, { server, space }: Space): void {
  for (const field of [state, memory, base, known, owns, commitHeard]) s[at(server, space, field)] = 0;
}

function changeView(rules: Rules, s: State, branch: Branch): void {
  for (const [number, change] of rules.variant.changes.entries()) {
    if ((get(s, made) & (1 << number)) !== 0) continue;
    const make = (next: State) => {
      next[made] = get(next, made) | (1 << number);
    };
    if (change.kind === 'starts again') startAgain(s, change, make, branch);
    else if (change.kind === 'joins') joinView(s, change.server, make, branch);
    else if (change.kind === 'leaves') leaveView(s, change.server, make, branch);
    else suspect(s, change.server, make, branch);
  }
  for (let server = 0; server < serverCount; server++) removeFromView(rules, s, server, branch);
  if (rules.isBroken('an eviction is tried again by server')) removeSuccessor(rules, s, branch);
}

type Make = (s: State) => void;

function nextView(s: State, active: number, members: number): void {
  const view = get(s, viewNow) + 1;
  s[viewNow] = view;
  s[activeIn + view] = active;
  s[membersIn + view] = members;
}

const activeNow = (s: State): number => get(s, activeIn + get(s, viewNow));
const membersNow = (s: State): number => get(s, membersIn + get(s, viewNow));
const hasViews = (s: State): boolean => get(s, viewNow) + 1 < viewsMax;

function joinView(s: State, server: number, make: Make, branch: Branch): void {
  if (!hasViews(s)) return;
  branch(label('joins with view', server, get(s, viewNow) + 1), (next) => {
    make(next);
    enter(next, server, 0);
  });
}

/** The newcomer is active, and of those that go one is removed with the same change. */
function enter(s: State, server: number, gone: number): void {
  const self = 1 << server;
  nextView(s, (activeNow(s) | self) & ~gone, (membersNow(s) | self) & ~gone);
  s[of(server, phase)] = phases.member;
  const view = get(s, viewNow);
  s[of(server, adopted)] = view;
  for (let space = 0; space < namespaceCount; space++)
    if (ownerIn(s, view, space) === server) s[at(server, space, state)] = states.waiting;
}

function leaveView(s: State, server: number, make: Make, branch: Branch): void {
  if (!hasViews(s) || (activeNow(s) & (1 << server)) === 0) return;
  branch(label('begins to leave with view', server, get(s, viewNow) + 1), (next) => {
    make(next);
    nextView(next, activeNow(next) & ~(1 << server), membersNow(next));
  });
}

/** Sealing is safe whoever does it and whenever; log-model.ts looks for the end of the log step by step. */
function suspect(s: State, server: number, make: Make, branch: Branch): void {
  if (!isMember(s, get(s, viewNow), server)) return;
  const slot = firstFree(s, server);
  branch(label('is sealed by others, in slot', server, slot), (next) => {
    make(next);
    putSeal(next, server);
  });
}

function startAgain(
  s: State,
  { server, before }: { readonly server: number; readonly before: number },
  make: Make,
  branch: Branch,
): void {
  if (!isSealed(s, before)) {
    const slot = firstFree(s, before);
    branch(label('seals the log before its own, in slot', server, slot), (next) => putSeal(next, before));
    return;
  }
  if (!hasViews(s)) return;
  branch(label('joins with view', server, get(s, viewNow) + 1), (next) => {
    make(next);
    enter(next, server, 1 << before);
  });
}

function removeFromView(rules: Rules, s: State, server: number, branch: Branch): void {
  const isEarly =
    rules.isBroken('a member is removed before its log is sealed') &&
    rules.variant.changes.some((change) => change.kind === 'is suspected' && change.server === server);
  if (!hasViews(s) || !isMember(s, get(s, viewNow), server) || (!isSealed(s, server) && !isEarly)) return;
  branch(label('is removed with view', server, get(s, viewNow) + 1), (next) => {
    const others = ~(1 << server);
    nextView(next, activeNow(next) & others, membersNow(next) & others);
  });
}

/** Whoever evicted by the server's name, and was overtaken by its successor, removes that one. */
function removeSuccessor(rules: Rules, s: State, branch: Branch): void {
  for (const change of rules.variant.changes) {
    if (change.kind !== 'starts again') continue;
    const { server, before } = change;
    const isThere = isMember(s, get(s, viewNow), server) && !isMember(s, get(s, viewNow), before);
    if (!isThere || !hasViews(s)) continue;
    const step = label(
      'is taken for the process before it and removed with view',
      server,
      get(s, viewNow) + 1,
    );
    branch(step, (next) => {
      const others = ~(1 << server);
      nextView(next, activeNow(next) & others, membersNow(next) & others);
    });
  }
}

function firstFree(s: State, log: number): number {
  for (let slot = 1; slot <= slotsMax; slot++) if (get(s, slotOf(log, slot)) === nothing) return slot;
  throw new Error('the log has too few slots');
}

function putSeal(s: State, log: number): void {
  if (!isSealed(s, log)) s[slotOf(log, firstFree(s, log))] = seal;
}

function isSealed(s: State, log: number): boolean {
  for (let slot = 1; slot <= slotsMax; slot++) if (bodyOf(get(s, slotOf(log, slot))) === seal) return true;
  return false;
}

/** While its log is open a process gets new evidence of that whenever it wants; from the seal on time decides. */
function growOld(s: State, server: number, branch: Branch): void {
  const self = 1 << server;
  if ((get(s, aged) & self) !== 0 || !isSealed(s, server)) return;
  branch(label('has evidence that has grown old', server, 0), (next) => {
    next[aged] = get(next, aged) | self;
  });
}

function sealsAreOld(s: State): boolean {
  for (let log = 0; log < serverCount; log++)
    if (isSealed(s, log) && (get(s, aged) & (1 << log)) === 0) return false;
  return true;
}

// --- A namespace that has come: the ends of all logs, what is in them, the manifest.

function own(rules: Rules, s: State, { server, space }: Space, branch: Branch): void {
  const early = rules.isBroken('the manifest is loaded before the barrier');
  const place = at(server, space, state);
  switch (get(s, place)) {
    case states.waiting:
      if (early)
        branch(label('loads the manifest of namespace', server, space), (next) => {
          loadManifest(next, { server, space });
          next[place] = states.loadedEarly;
        });
      else mayRead(rules, s, { server, space }, states.replayed, branch);
      return;
    case states.loadedEarly:
      mayRead(rules, s, { server, space }, states.serving, branch);
      return;
    case states.replayed:
      // A newer owner: this server's view is old.
      if (get(s, manifestOf(space, ownerView)) > get(s, of(server, adopted))) return;
      branch(label('loads the manifest of namespace', server, space), (next) => {
        loadManifest(next, { server, space });
        next[place] = states.serving;
      });
      return;
    case states.serving:
      beginCommit(s, { server, space }, branch);
      return;
    default:
  }
}

function mayRead(rules: Rules, s: State, { server, space }: Space, then: number, branch: Branch): void {
  // Whatever was submitted is resolved before the own log is read.
  if (get(s, of(server, sending)) !== nothing || !allHaveEnded(rules, s, server)) return;
  branch(label('reads the logs for namespace', server, space), (next) => {
    const from = get(next, manifestOf(space, owner));
    for (let log = 0; log < serverCount; log++) {
      if (rules.isBroken('only the log of the last owner is read') && log !== from) continue;
      readLog(next, { server, space }, log);
    }
    next[at(server, space, state)] = then;
  });
}

/** Whether nobody else can put a record of a namespace of this server into a log any more, nor answer a read of it. */
function allHaveEnded(rules: Rules, s: State, server: number): boolean {
  if (rules.isBroken('a new owner waits for nobody')) return true;
  const view = get(s, of(server, adopted));
  for (let log = 0; log < serverCount; log++) {
    const leaves = (get(s, activeIn + view) & (1 << log)) === 0;
    if (log === server || !isMember(s, view, log) || isSealed(s, log)) continue;
    if (leaves && rules.isBroken('a member that leaves is not waited for')) continue;
    const reached = lastView(s, log);
    const counts = rules.isBroken('a later barrier counts for an earlier view')
      ? reached >= view
      : reached === view;
    if (!counts) return false;
  }
  const isAtOnce =
    rules.isBroken('reads are not waited out after a seal') ||
    rules.isBroken('only writes wait after a seal');
  return isAtOnce || sealsAreOld(s);
}

/** The view in the last header of a log; -1 where it has none. The first members have reached the first view. */
function lastView(s: State, log: number): number {
  for (let slot = slotsMax; slot > 0; slot--) {
    const content = get(s, slotOf(log, slot));
    if (content !== nothing) return viewOf(content);
  }
  return log < 2 ? 0 : -1;
}

/** Up to its seal, or else to the first header of one's own view. */
function readLog(s: State, { server, space }: Space, log: number): void {
  const view = get(s, of(server, adopted));
  const isOwn = log === server || isSealed(s, log);
  for (let slot = 1; slot <= slotsMax; slot++) {
    const content = get(s, slotOf(log, slot));
    const body = bodyOf(content);
    if (content === nothing || body === seal || (!isOwn && viewOf(content) >= view)) return;
    if (isWrite(body) && spaceOf(body) === space)
      s[at(server, space, memory)] = get(s, at(server, space, memory)) | bit(body);
  }
}

function loadManifest(s: State, { server, space }: Space): void {
  const found = get(s, manifestOf(space, data));
  s[at(server, space, memory)] = get(s, at(server, space, memory)) | found;
  s[at(server, space, base)] = found;
  s[at(server, space, known)] = get(s, manifestOf(space, version));
}

// --- The manifest.

function beginCommit(s: State, { server, space }: Space, branch: Branch): void {
  if (get(s, at(server, space, commitKind)) !== 0) return;
  const ownsIt = get(s, at(server, space, owns)) === 1;
  const has = get(s, at(server, space, memory));
  const inManifest = get(s, at(server, space, base));
  if (ownsIt && has === inManifest) return;
  const name = ownsIt ? 'begins a flush of namespace' : 'begins to own namespace';
  branch(label(name, server, space), (next) => {
    next[at(server, space, commitKind)] = ownsIt ? flushing : owning;
    next[at(server, space, commitData)] = ownsIt ? has : inManifest;
    next[at(server, space, commitKnown)] = get(next, at(server, space, known));
    next[at(server, space, commitView)] = get(next, of(server, adopted));
    next[at(server, space, commitHeard)] = 1;
  });
}

function arrivalOfCommit(rules: Rules, s: State, { server, space }: Space, branch: Branch): void {
  if (get(s, at(server, space, commitKind)) === 0) return;
  const isStale = get(s, at(server, space, commitKnown)) !== get(s, manifestOf(space, version));
  const isHeard = get(s, at(server, space, commitHeard)) === 1;
  if (isStale) {
    branch(label('has a commit refused, of namespace', server, space), (next) => {
      endCommit(next, { server, space });
      if (isHeard) afterRefusal(rules, next, { server, space });
    });
    return;
  }
  branch(label('has a commit arrive, of namespace', server, space), (next) => {
    const content = get(next, at(server, space, commitData));
    const committed = get(next, manifestOf(space, version)) + 1;
    next[manifestOf(space, version)] = committed;
    next[manifestOf(space, owner)] = server;
    next[manifestOf(space, ownerView)] = get(next, at(server, space, commitView));
    next[manifestOf(space, data)] = content;
    if (isHeard) {
      next[at(server, space, known)] = committed;
      next[at(server, space, base)] = content;
      next[at(server, space, owns)] = 1;
    }
    endCommit(next, { server, space });
  });
}

/** An earlier owner was faster with its last flush: what it committed is taken in. A later owner: this one closes. */
function afterRefusal(rules: Rules, s: State, { server, space }: Space): void {
  if (get(s, manifestOf(space, ownerView)) > get(s, of(server, adopted))) {
    close(s, { server, space });
    s[at(server, space, state)] = states.waiting;
    return;
  }
  if (rules.isBroken('a refused commit is sent again over the new version'))
    s[at(server, space, known)] = get(s, manifestOf(space, version));
  else loadManifest(s, { server, space });
}

function endCommit(s: State, { server, space }: Space): void {
  for (const field of [commitKind, commitKnown, commitData, commitView, commitHeard])
    s[at(server, space, field)] = 0;
}

/** One slot at a time, in any order: more than a floor would let go. Its header stays, as in the object of the floor. */
function collect(rules: Rules, s: State, log: number, branch: Branch): void {
  for (let slot = 1; slot <= slotsMax; slot++) {
    const body = bodyOf(get(s, slotOf(log, slot)));
    if (!isWrite(body)) continue;
    const space = spaceOf(body);
    const isFlushed = (get(s, manifestOf(space, data)) & bit(body)) !== 0;
    const believes =
      rules.isBroken('a slot is collected when its namespace has a new owner') &&
      get(s, manifestOf(space, owner)) !== log;
    if (!isFlushed && !believes) continue;
    branch(label('has a slot collected:', log, slot), (next) => {
      next[slotOf(log, slot)] = collected | (viewOf(get(next, slotOf(log, slot))) << 3);
    });
  }
}

// --- What must hold in every state.

/** Whether the server answers reads of the namespace: it believes to own it, and has evidence that its log is open. */
function answers(s: State, server: number, space: number): boolean {
  const now = get(s, at(server, space, state));
  const isOpen = now === states.serving || now === states.lingering;
  return isOpen && !((get(s, aged) & (1 << server)) !== 0 && isSealed(s, server));
}

function readAll(s: State): void {
  for (let server = 0; server < serverCount; server++)
    for (let space = 0; space < namespaceCount; space++)
      if (answers(s, server, space)) s[seen] = get(s, seen) | get(s, at(server, space, memory));
}

function violation(s: State): string | null {
  for (let server = 0; server < serverCount; server++) {
    for (let space = 0; space < namespaceCount; space++) {
      if (!answers(s, server, space)) continue;
      const missing = ~get(s, at(server, space, memory)) & writesOf(space);
      if ((get(s, acknowledged) & missing) !== 0) return 'a read misses an acknowledged write';
      if ((get(s, seen) & missing) !== 0) return 'a read misses what was read before';
    }
  }
  if ((get(s, refused) & get(s, seen)) !== 0) return 'a write that was told "nothing written" is read';
  return null;
}
