import { type ActorReply, reply } from '../../actors/actor/actor-reply.ts';
import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { type FlowLimits, limits } from '../../protocol/limits.ts';
import { type ActorCall, actorAnswerFromWire } from '../../protocol/messages.ts';
import type { TenantRecord } from '../../protocol/stored-tenant.ts';
import { DataError } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import { packMessage } from '../../src/base/msgpack.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import {
  type Asked,
  bodyOf,
  type ComposedProcess,
  call,
  composeProcess,
  keyRecord,
  lanesInPlace,
  memoryBytesDefault,
} from '../support/in-process.ts';
import { type Chance, randomOf } from './chance.ts';
import type { NetworkEnd, PeerNetwork } from './peer-network.ts';
import { portPair } from './ports.ts';
import { innerErrorOf, ProcessRouter } from './process-router.ts';
import type { Owner, Scheduler } from './scheduler.ts';
import { type NetworkParts, SimulatedStore } from './simulated-store.ts';
import { epochMs } from './stored-objects.ts';

/** Small enough that everything that ever happens to a namespace happens to one of a few dozen writes. */
export const simulatedLimits: FlowLimits = {
  ...limits,
  logQueueBytesMax: 9_000,
  logGroupBytes: 4_096,
  logRecordInlineBytesMax: 1_500,
  memtableBytesMax: 6_000,
  memtableDocumentsMax: 9,
  manifestTailBytesMax: 700,
  frozenMemtablesMax: 2,
  flushAfterMs: 20_000,
  logAboveFloorBytesMax: 60_000,
  retiredGraceMs: 75_000,
};

export interface Answer {
  readonly status: number;
  readonly code: string;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's JSON, read by the clients
  readonly body: any;
  /** An error that no caller has to do with: what went wrong inside. */
  readonly error: unknown;
}

export interface ProcessOptions {
  readonly number: number;
  readonly serverId: string;
  /** The way to other servers; null where there are none. */
  readonly network: PeerNetwork | null;
  readonly scheduler: Scheduler;
  readonly storeNetwork: NetworkParts;
  readonly chance: Chance;
  readonly commitMs: number;
  /** A world's own where absent, in which little is much. */
  readonly limits?: FlowLimits;
  /** Whether what moves is flushed before it does; by chance where absent. */
  readonly preparesMoves?: boolean;
}

/** A server that is told of its end stops within this time. */
const stopAfterSealMs = 100;
/** The owner of a tenant is another one after so many requests of clients. */
const requestsOfAnOwner = 3;

/** One process of the server in the simulated world: it can be paused, cut off, and killed between any two instructions. */
export class SimulatedProcess implements Owner {
  readonly number: number;
  readonly store: SimulatedStore;
  readonly #options: ProcessOptions;
  readonly #onDeath: (() => void)[] = [];
  #composed: ComposedProcess | null = null;
  #router: ProcessRouter | null = null;
  #clockOffsetMs = 0;
  #sleptMs = 0;
  #sleepsUntilMs = 0;
  #isLeaving = false;
  #draining = false;
  /** How many requests clients have sent. */
  #asked = 0;
  dead = false;
  starting = true;
  pausedUntilMs = 0;
  /** When the seal that ends its log was stored, by the world's time: from then on its reads may be old. */
  sealedAtMs = Number.POSITIVE_INFINITY;

  constructor(options: ProcessOptions) {
    this.number = options.number;
    this.#options = options;
    this.store = new SimulatedStore(options.storeNetwork, this);
  }

  get serverId(): string {
    return this.#options.serverId;
  }

  /** Whether there are no other servers: then nobody is sent to a process whose log was sealed, and it need not know. */
  get isAlone(): boolean {
    return this.#options.network === null;
  }

  get logId(): string {
    return this.#composed?.joined.identity.logId ?? '';
  }

  get serving(): boolean {
    return !this.dead && !this.starting && !this.#draining;
  }

  /** Rejects where it could not start, and never ends where it died of that. */
  async start(): Promise<void> {
    const { scheduler, chance, commitMs, serverId, network } = this.#options;
    const clock = this.#clock();
    const composed = await composeProcess({
      store: this.store,
      clock,
      random: randomOf(chance),
      logger: { error() {}, info() {}, debug() {} },
      serverId,
      commitMs,
      limits: this.#options.limits ?? simulatedLimits,
      memoryBytes: memoryBytesDefault,
      lanes: lanesInPlace(this.store, async () => {}, clock),
      ports: portPair(scheduler, this, chance),
      cluster:
        network === null
          ? null
          : {
              join: (joined) => {
                const preparesMoves = this.#options.preparesMoves ?? chance.happens(0.5);
                this.#router = new ProcessRouter(network, {
                  end: this.#end(joined.logId),
                  clock,
                  preparesMoves,
                  ...joined,
                });
                return this.#router;
              },
              onRemoved: () => this.#endSoon(),
            },
    });
    this.#composed = composed;
    this.starting = false;
    void composed.log.sealed.then(() => this.#endSoon());
    composed.host.recover();
  }

  #endSoon(): void {
    const { scheduler, chance } = this.#options;
    // Who leaves seals its own log.
    if (!this.#draining) scheduler.after(chance.fraction() * stopAfterSealMs, this, () => this.kill());
  }

  get composed(): ComposedProcess | null {
    return this.#composed;
  }

  pause(ms: number): void {
    this.pausedUntilMs = this.#options.scheduler.nowMs + Math.ceil(ms);
  }

  /** As a pause, and its monotonic clock stands still meanwhile, also for what others have it do in that time. */
  sleepMachine(ms: number): void {
    const fromMs = Math.max(this.#options.scheduler.nowMs, this.#sleepsUntilMs);
    this.pause(ms);
    this.#sleptMs += Math.max(0, this.pausedUntilMs - fromMs);
    this.#sleepsUntilMs = Math.max(this.pausedUntilMs, this.#sleepsUntilMs);
  }

  /** Its machine's clock is set; how long things take does not change. */
  jumpClock(ms: number): void {
    this.#clockOffsetMs += ms;
  }

  /** It is gone between two instructions: it answers nobody, and sends nothing any more. */
  kill(): void {
    if (this.dead) return;
    this.dead = true;
    for (const told of this.#onDeath) told();
  }

  onDeath(told: () => void): void {
    if (this.dead) told();
    else this.#onDeath.push(told);
  }

  /** The orderly end; one that fails half-way is as good as a kill. */
  async drain(): Promise<void> {
    const composed = this.#composed;
    if (composed === null || this.#isLeaving) return;
    this.#isLeaving = true;
    try {
      await this.#router?.flushBeforeLeave();
      this.#draining = true;
      await composed.membership?.leave();
      await composed.host.drain();
      await composed.log.drain();
      await composed.membership?.end();
    } finally {
      this.kill();
    }
  }

  async createTenant(id: number): Promise<Answer> {
    const createdAt = '2024-01-01T00:00:00.000Z';
    const tenant: TenantRecord = {
      id,
      name: 'T',
      plan: 'free',
      status: 'active',
      ownerId: 1,
      ownerVerified: false,
      createdAt,
    };
    const body = packMessage({ tenant, firstKey: keyRecord(1) });
    return this.#answer(internalCalls.createTenant, '', { tenantId: id }, body);
  }

  ask(operation: string, namespace: string, asked: Asked): Promise<Answer> {
    const body = asked.body === undefined ? null : new Uint8Array(Buffer.from(JSON.stringify(asked.body)));
    return this.#answer(operation, namespace, asked, body);
  }

  async #answer(
    operation: string,
    namespace: string,
    asked: Asked,
    body: Uint8Array | null,
  ): Promise<Answer> {
    if (this.#composed === null) return never();
    const { host, components } = this.#composed;
    const asking = call(operation, namespace, asked);
    // Whose a tenant is may be learned while records of it wait for the log.
    components.shares.learn(asking.tenantId, Math.floor(this.#asked++ / requestsOfAnOwner) % 2, 1);
    const isTenant = operation === internalCalls.createTenant;
    if (this.#router !== null) return this.#answerRouted(this.#router, asking, body, isTenant);
    try {
      const warm = operation === 'getDocument' ? host.getWarm(asking) : null;
      if (warm !== null) return { status: 200, code: '', body: JSON.parse(warm.toString()), error: null };
      return answerOf(asking, await host.handle(asking, body), isTenant);
    } catch (error) {
      return answerOfError(error);
    }
  }

  async #answerRouted(
    router: ProcessRouter,
    asked: ActorCall,
    body: Uint8Array | null,
    isTenant: boolean,
  ): Promise<Answer> {
    try {
      const message = await router.call(asked, body);
      const { status } = actorAnswerFromWire(message.head);
      const answered = answerOf(asked, reply('', { status, packed: message.body ?? noBytes }), isTenant);
      return { ...answered, error: innerErrorOf(message) };
    } catch (error) {
      return answerOfError(error);
    }
  }

  /** As the others reach it. */
  #end(logId: string): NetworkEnd {
    const process = this;
    return {
      logId,
      serverId: this.serverId,
      listens: true,
      get dead() {
        return process.dead;
      },
      get pausedUntilMs() {
        return process.pausedUntilMs;
      },
      onDeath: (told) => this.onDeath(told),
    };
  }

  #clock(): Clock {
    const { scheduler } = this.#options;
    return {
      now: () => Math.floor(epochMs + scheduler.nowMs + this.#clockOffsetMs),
      monotonic: () => Math.max(scheduler.nowMs, this.#sleepsUntilMs) - this.#sleptMs,
      sleep: (ms) => scheduler.sleep(ms, this),
      after: (ms, run) => scheduler.after(ms, this, run),
      yieldTurn: () => scheduler.sleep(0, this),
      // Nobody has one here: the thread's queue of turns would answer by what earlier worlds used, and a seed must decide everything.
      hasBurst: () => false,
    };
  }
}

const noBytes = new Uint8Array();

function answerOf(asked: ActorCall, reply: ActorReply, isTenant: boolean): Answer {
  const body = isTenant ? null : bodyOf(asked, reply);
  // What the owner of a link's source refuses comes as an answer.
  return { status: reply.status, code: reply.status < 300 ? '' : (body?.code ?? ''), body, error: null };
}

function answerOfError(error: unknown): Answer {
  if (error instanceof ApiError) {
    const body = JSON.parse(Buffer.from(error.toBody()).toString());
    return { status: error.status, code: error.code, body, error: error.cause ?? null };
  }
  return { status: 500, code: 'internal', body: null, error };
}

/** Whether damage that the world has done explains the error. */
export function isOfDamage(error: unknown): boolean {
  if (error instanceof DataError) return true;
  return error instanceof Error && error.cause !== undefined && isOfDamage(error.cause);
}

export function isOfStore(error: unknown): boolean {
  return error instanceof StoreError;
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}

/** Waits for an answer in virtual time; null where its process dies before, and where it does not come in time. */
export function answerInTime(
  process: SimulatedProcess,
  answering: Promise<Answer>,
  { scheduler, patienceMs }: { readonly scheduler: Scheduler; readonly patienceMs: number },
): Promise<Answer | null> {
  return new Promise((resolve) => {
    const cancel = scheduler.after(patienceMs, null, () => resolve(null));
    const end = (answer: Answer | null) => {
      cancel();
      resolve(answer);
    };
    process.onDeath(() => end(null));
    void answering.then(end);
  });
}
