import { must } from '../../src/base/assert.ts';
import { paths } from '../../src/object-store/paths.ts';
import { Chance } from './chance.ts';
import { Client, type Place, type Request } from './clients.ts';
import { DerivedClient } from './derived-client.ts';
import { type Derived, DerivedPlaces } from './derived-places.ts';
import { type EventHash, newEventHash } from './event-hash.ts';
import { type FaultCounts, FaultPlan } from './faults.ts';
import type { Violation } from './history.ts';
import { checkLeftovers, liveOn } from './leftovers.ts';
import { runClusterNemesis, runNemesis } from './nemesis.ts';
import { PeerNetwork } from './peer-network.ts';
import { type Answer, isOfDamage, SimulatedProcess } from './process.ts';
import { Records } from './records.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedServer } from './simulated-server.ts';
import type { NetworkParts } from './simulated-store.ts';
import { StoredObjects } from './stored-objects.ts';
import { StoredRecords } from './stored-records.ts';

export interface WorldResult {
  readonly seed: number;
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly faults: FaultCounts;
  /** Operation and answer to how often. */
  readonly answers: ReadonlyMap<string, number>;
  readonly events: number;
  readonly virtualMs: number;
}

const turnsMin = 200;
const turnsMax = 206;
/** Everything that was delayed has arrived by then. */
const settleMs = 130_000;
/** Who was killed at the end has been evicted by then, whatever minute has to pass before. */
const evictedMs = 75_000;
const lastReadPatienceMs = 120_000;
/** For so long after a change of the view clients are in a hurry, and think for no longer than this. */
const hurryMs = 700;
const hurriedThinkMsMax = 60;

/** One seed: a world of clients, processes of one server that follow upon each other, and a store that fails. */
export class World {
  readonly scheduler = new Scheduler();
  readonly objects = new StoredObjects(() => this.scheduler.nowMs);
  readonly #stored = new StoredRecords(this.objects);
  readonly records = new Records(this.#stored);
  readonly faults: FaultPlan;
  readonly seed: number;
  readonly #hash: EventHash;
  readonly #commitMs: number;
  readonly #processes: SimulatedProcess[] = [];
  readonly #trace: ((line: string) => void) | null;
  readonly #turnsWanted: number;
  #turns = 0;
  readonly #waitingForTurn = new Map<number, readonly (() => void)[]>();
  /** Whether clients hurry when owners change: half of the worlds with several servers. */
  readonly #hurries: boolean;
  #hurriesUntilMs = 0;
  #thinking: (() => void)[] = [];
  readonly servers: readonly SimulatedServer[];
  readonly network: PeerNetwork;
  /** Places that anybody writes to; a branch that has been made is one of them. */
  readonly places: Place[] = [];
  readonly derived = new DerivedPlaces(this.records, this.places);

  constructor(seed: number, trace: ((line: string) => void) | null, servers = 1) {
    this.seed = seed;
    this.#trace = trace;
    this.#hash = newEventHash();
    const chance = new Chance(seed, 0);
    this.faults = new FaultPlan(chance);
    this.#commitMs = chance.pick([20, 100, 250]);
    this.#turnsWanted = chance.integer(turnsMin, turnsMax);
    this.servers = Array.from(
      { length: servers },
      (_, number) =>
        new SimulatedServer(`server-${String.fromCharCode(97 + number)}`, {
          scheduler: this.scheduler,
          makeProcess: (server) => this.#makeProcess(server),
          tell: (what) => this.tell(what),
          startFailed: (process, error) => this.#startFailed(process, error),
          onStuck: () => this.records.violate('stuck', 'no process got to serve'),
        }),
    );
    this.#hurries = this.isCluster && new Chance(seed, 9).happens(0.5);
    this.network = new PeerNetwork(this.scheduler, new Chance(seed, 6), this.faults);
  }

  /** Whether there are several servers, each of which may own something. */
  get isCluster(): boolean {
    return this.servers.length > 1;
  }

  get turnsWanted(): number {
    return this.#turnsWanted;
  }

  get alive(): readonly SimulatedProcess[] {
    return this.#processes.filter((process) => !process.dead);
  }

  /** Whether a client may ask once more. */
  takeTurn(): boolean {
    if (this.#turns >= this.#turnsWanted) return false;
    this.#turns++;
    for (const waiting of this.#waitingForTurn.get(this.#turns) ?? []) waiting();
    return true;
  }

  /** When the clients have asked so often. */
  turn(number: number): Promise<void> {
    if (this.#turns >= number) return Promise.resolve();
    return new Promise((resolve) => {
      const waiting = this.#waitingForTurn.get(number) ?? [];
      this.#waitingForTurn.set(number, [...waiting, resolve]);
    });
  }

  /** A client thinks for a while, and no longer than until the owners change. */
  think(ms: number, chance: Chance): Promise<void> {
    const hurriedMs = chance.fraction() * hurriedThinkMsMax;
    if (this.#isHurried) return this.scheduler.sleep(Math.min(ms, hurriedMs));
    return new Promise((resolve) => {
      const cancel = this.scheduler.after(ms, null, resolve);
      this.#thinking.push(() => {
        cancel();
        this.scheduler.after(hurriedMs, null, resolve);
      });
    });
  }

  get #isHurried(): boolean {
    return this.scheduler.nowMs < this.#hurriesUntilMs;
  }

  #hurry(): void {
    this.#hurriesUntilMs = this.scheduler.nowMs + hurryMs;
    for (const wake of this.#thinking.splice(0)) wake();
  }

  /** Mostly the newest that serves, sometimes one that does not know yet that it was overtaken. */
  processFor(chance: Chance): SimulatedProcess | null {
    const { current } = this.isCluster ? chance.pick(this.servers) : this.first;
    if (current === null || chance.happens(this.#isHurried ? 0.4 : 0.12)) {
      const serving = this.#processes.filter((process) => process.serving);
      return serving.length === 0 ? null : chance.pick(serving);
    }
    return current.serving ? current : null;
  }

  /** The only one, where there is one. */
  get first(): SimulatedServer {
    return must(this.servers[0], 'a server');
  }

  tell(what: string): void {
    this.#hash.add(what);
    this.#trace?.(`${this.scheduler.nowMs.toFixed(1).padStart(10)} ${what}`);
  }

  async ask(question: {
    readonly process: SimulatedProcess;
    readonly place: Place;
    readonly token: string;
    readonly request: Request;
    readonly patienceMs: number;
    /** The link, or the branch that nobody has seen yet, that is asked. */
    readonly derived?: Derived;
  }): Promise<Answer | null> {
    const { process, place, token, request, patienceMs, derived } = question;
    const startMs = this.scheduler.nowMs;
    if (request.change?.kind === 'drop')
      this.#stored.askedToDrop(this.isCluster ? '' : process.logId, place, token);
    const answering = process.ask(request.operation, request.namespace, request.asked);
    const answer = await this.#answerOrNull(process, answering, patienceMs);
    const endMs = this.scheduler.nowMs;
    this.tell(
      `p${process.number} ${place.tenantId}/${place.namespace} ${token} ${request.operation}: ${describeAnswer(answer)}`,
    );
    const heard = { process, place, token, request, startMs, endMs, answer };
    if (derived === undefined) this.records.take(heard);
    else this.derived.take(derived, heard);
    return answer;
  }

  /** A connection breaks when its process dies, and nobody waits for ever. */
  #answerOrNull(
    process: SimulatedProcess,
    answering: Promise<Answer>,
    patienceMs: number,
  ): Promise<Answer | null> {
    return new Promise((resolve) => {
      const cancel = this.scheduler.after(patienceMs, null, () => resolve(null));
      const end = (answer: Answer | null) => {
        cancel();
        resolve(answer);
      };
      process.onDeath(() => end(null));
      // What a process computed in its last instant goes nowhere, and a paused one answers when it goes on.
      void answering.then((answer) => this.scheduler.after(0, process, () => end(answer)));
    });
  }

  #startFailed(process: SimulatedProcess, error: unknown): void {
    this.tell(`p${process.number} cannot start: ${String(error).split('\n')[0]}`);
    const explained = isOfDamage(error) || process.store.damaged || String(error).includes('StoreError');
    if (!explained && this.faults.on === false)
      this.records.violate('unexpected error', `a start failed: ${String(error)}`);
  }

  #makeProcess(server: SimulatedServer): SimulatedProcess {
    const number = this.#processes.length;
    const chance = new Chance(this.seed, 1_000 + number);
    const storeNetwork: NetworkParts = {
      scheduler: this.scheduler,
      objects: this.objects,
      chance,
      faults: this.faults,
      note: (operation, key, fault, what) => {
        this.tell(`p${number} ${operation} ${key}${fault === null ? '' : ` [${fault}]`}: ${what}`);
        if (this.#hurries && key === paths.view && what === 'stored') this.#hurry();
        if (operation !== 'create' || what !== 'stored') return;
        this.#noteSeal(key);
        this.#stored.stored(key);
      },
    };
    const made = new SimulatedProcess({
      number,
      serverId: server.id,
      network: this.isCluster ? this.network : null,
      scheduler: this.scheduler,
      storeNetwork,
      chance: new Chance(this.seed, 2_000 + number),
      commitMs: this.#commitMs,
    });
    this.#processes.push(made);
    return made;
  }

  /** Byte 6 of a log object is its kind, 1 a seal; see log-object.ts. */
  #noteSeal(key: string): void {
    if (!key.startsWith('log/') || this.objects.find(key)?.bytes[6] !== 1) return;
    const logId = key.split('/')[1];
    for (const process of this.#processes)
      if (process.logId === logId) process.sealedAtMs = Math.min(process.sealedAtMs, this.scheduler.nowMs);
  }

  /** A promise that was rejected and nobody looked at ends a real process. */
  takeUnhandled(reason: unknown): void {
    const damaged = this.alive.filter((process) => process.store.damaged);
    this.tell(`unhandled: ${String(reason).split('\n')[0]}`);
    if (!isOfDamage(reason) || damaged.length === 0) {
      const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
      this.records.violate('unhandled rejection', text);
    }
    for (const process of damaged) process.kill();
  }

  async run(): Promise<WorldResult> {
    const chance = new Chance(this.seed, 3);
    this.places.push(...placesOf(chance));
    // A stream of its own decides who has links and branches, and who lives on for days.
    const kind = new Chance(this.seed, 7);
    const [hasDerived, livesOn] = [kind.happens(0.5), kind.happens(0.25)];
    // Two days of several servers take longer than all that happened to them.
    const looksAtLeftovers = !this.isCluster || livesOn || kind.happens(0.3);
    await this.first.startNext();
    for (const tenantId of new Set(this.places.map((place) => place.tenantId))) {
      await this.first.current?.createTenant(tenantId);
    }
    // Others begin at moments of their own.
    for (const server of this.servers.slice(1)) if (chance.happens(0.6)) void server.startNext();
    this.faults.on = true;
    const clients = Array.from({ length: chance.integer(3, 6) }, (_, i) =>
      this.#client(`c${i}`, i, hasDerived).run(),
    );
    const nemesis = (this.isCluster ? runClusterNemesis : runNemesis)(this, new Chance(this.seed, 5));
    await Promise.all([...clients, nemesis]);
    await this.#end(livesOn ? this.#client('c9', 9, hasDerived) : null);
    if (looksAtLeftovers) await checkLeftovers(this);
    for (const process of this.alive) process.kill();
    return {
      seed: this.seed,
      hash: this.#hash.text,
      violations: this.records.violations,
      faults: this.faults.counts,
      answers: this.records.answers,
      events: this.scheduler.events,
      virtualMs: this.scheduler.nowMs,
    };
  }

  #client(name: string, number: number, hasDerived: boolean): Client {
    const derived = hasDerived
      ? new DerivedClient(this, this.derived, new Chance(this.seed, 50 + number))
      : null;
    return new Client(name, this, {
      chance: new Chance(this.seed, 10 + number),
      places: this.places,
      derived,
    });
  }

  /** Without faults a fresh process shows what is left of it all. `living`: who goes on for days. */
  async #end(living: Client | null): Promise<void> {
    this.faults.on = false;
    this.tell('the faults end');
    await this.scheduler.sleep(settleMs);
    await this.first.starting;
    const before = this.alive.filter(({ serverId }) => serverId === this.first.id);
    this.first.current = null;
    await this.first.startNext();
    for (const server of this.servers) server.supervised = false;
    for (const process of before) process.kill();
    if (this.isCluster) await this.scheduler.sleep(evictedMs);
    await this.#readAllLast();
    if (living !== null) {
      await liveOn(this, living);
      await this.#readAllLast();
    }
    this.derived.judge();
    this.records.judge(this.derived);
  }

  async #readAllLast(): Promise<void> {
    for (const { current } of this.servers) {
      if (current === null) continue;
      for (const derived of this.derived.all) await this.#readDerivedLast(current, derived);
      for (const place of this.places) await this.#readLast(current, place);
    }
  }

  /** A branch that has been looked at is a place. */
  async #readDerivedLast(process: SimulatedProcess, derived: Derived): Promise<void> {
    if (derived.kind === 'branch' && derived.content !== null) return;
    const { tenantId, namespace } = derived;
    const asked = { tenantId, argument: '', body: { limit: 1_000 } };
    const request: Request = { operation: 'search', namespace, asked, change: null };
    const patienceMs = lastReadPatienceMs;
    const answer = await this.ask({ process, place: derived, token: 'last', request, patienceMs, derived });
    this.#refuseUnavailable(derived, answer);
  }

  async #readLast(process: SimulatedProcess, place: Place): Promise<void> {
    const { tenantId, namespace } = place;
    const request = (operation: string, argument: string, body?: unknown): Request => ({
      operation,
      namespace,
      asked: { tenantId, argument, ...(body === undefined ? {} : { body }) },
      change: null,
    });
    const patienceMs = lastReadPatienceMs;
    const all = request('search', '', { limit: 1_000 });
    const answer = await this.ask({ process, place, token: 'last', request: all, patienceMs });
    if (this.#refuseUnavailable(place, answer)) return;
    // Reads by id go another way than searches.
    const ids = ['s0', 's1', ...(answer?.body.hits ?? []).slice(0, 3).map((hit: { id: string }) => hit.id)];
    for (const id of ids) {
      const one = request('getDocument', id);
      await this.ask({ process, place, token: 'last', request: one, patienceMs });
    }
  }

  #refuseUnavailable({ tenantId, namespace }: Place, answer: Answer | null): boolean {
    const isThere = answer?.status === 200 || answer?.status === 404;
    if (isThere && answer.body.partial !== true) return false;
    const text = `${tenantId}/${namespace}: ${describeAnswer(answer)} ${String(answer?.error ?? '')}`;
    this.records.violate('not available after the faults', text);
    return true;
  }
}

function placesOf(chance: Chance): readonly Place[] {
  const tenants = chance.integer(1, 2);
  return Array.from({ length: chance.integer(tenants, 4) }, (_, i) => ({
    tenantId: 7 + (i % tenants),
    namespace: `n${i}`,
  }));
}

function describeAnswer(answer: Answer | null): string {
  if (answer === null) return 'no answer';
  if (answer.status >= 300) return answer.code;
  const version = answer.body?.version;
  return version === undefined ? String(answer.status) : `${answer.status} version ${version}`;
}

/** Runs one seed to its end. One at a time in a process: unhandled rejections belong to the world that runs. */
export async function runSeed(
  seed: number,
  trace: ((line: string) => void) | null = null,
  servers = 1,
): Promise<WorldResult> {
  const world = new World(seed, trace, servers);
  const onUnhandled = (reason: unknown) => world.takeUnhandled(reason);
  process.on('unhandledRejection', onUnhandled);
  try {
    return await world.scheduler.run(world.run());
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
}
