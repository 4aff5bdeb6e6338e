/** What the worker threads are started with, and the control calls between threads. Ports are moved, the rest copied. */
import type { MessagePort } from 'node:worker_threads';
import type { Temperature } from './document.ts';
import type { Owners, Standing } from './placement.ts';

type LogLevel = 'error' | 'info' | 'debug';

/** Base URLs of embedding providers; null means the provider's own. */
export interface EmbeddingBaseUrls {
  readonly openai: string | null;
  readonly cohere: string | null;
  readonly google: string | null;
  readonly mistral: string | null;
}

/** A plain record that src/object-store/open-object-store.ts understands. */
export type StoreSettings = (
  | { readonly kind: 'fs'; readonly folder: string }
  | {
      readonly kind: 's3';
      readonly endpoint?: string | undefined;
      readonly region: string;
      readonly bucket: string;
      readonly accessKeyId?: string | undefined;
      readonly secretAccessKey?: string | undefined;
      readonly forcePathStyle: boolean;
    }
) & {
  /** Where every thread counts its calls: shared memory. */
  readonly counters?: SharedArrayBuffer | undefined;
};

/** For a compute thread: to load what a task of this kind needs, which will come soon. */
export interface PrepareTask {
  readonly task: 'prepare';
  readonly next: 'read-import' | 'build-import';
}

export interface LogIdentity {
  readonly logId: string;
  /** That of the view which has it as a new member. */
  readonly placement: number;
}

export interface LogWorkerTask {
  readonly control: MessagePort;
  /** Where this thread shows that it turns, and where the main one does, which this one watches: shared memory. */
  readonly pulse: SharedArrayBuffer;
  readonly mainPulse: SharedArrayBuffer;
  readonly store: StoreSettings;
  /** Whether other servers may own something, and remove this one. */
  readonly besideOthers: boolean;
  readonly commitMs: number;
  readonly processMemoryBytes: number;
  readonly logLevel: LogLevel;
}

/** Control calls to the log thread. */
export interface LogControl {
  /** Ends a log for ever and answers the slot of its seal. */
  seal(logId: string, placement: number): Promise<number>;
  /** Answers which of the logs have all of their records in manifests. */
  doneAmong(logIds: readonly string[]): Promise<string[]>;
  /** Begins this process's own log. */
  open(identity: LogIdentity, standing: Standing): Promise<void>;
  /** Takes a later view, after every actor thread has: see LogService. */
  adopt(standing: Standing): Promise<void>;
  /** Resolves when another process has ended this one's log; for most processes never. */
  whenSealed(): Promise<void>;
  /** Resolves when another member's log shows, from now on, that there is a later view than the own one. */
  whenLaterView(): Promise<void>;
  /** Resolves after every durable record of the thread's targets was sent to it. */
  attach(port: MessagePort, placement: { readonly index: number; readonly count: number }): Promise<void>;
  /** Lists what all logs consist of, or the own one; the next `collectLogs` deletes of that. */
  listLogs(which: 'all' | 'own'): Promise<void>;
  /**
   * Deletes what nobody needs any more. `named`: the logs in a view that was read after `listLogs`. False where more of it may go
   * soon: a log that was replayed is not done yet.
   */
  collectLogs(named: NamedLogs): Promise<boolean>;
  /** Everything accepted is durable; nothing more is taken. */
  drain(): Promise<void>;
  /** Ends the thread; the last call, after `drain`. */
  end(): Promise<void>;
  statistics(): Promise<LogStatistics>;
}

export interface LogStatistics {
  /** Durable since the start: records of actors, their bytes, and the objects that they went into together. */
  readonly records: number;
  readonly recordBytes: number;
  readonly groups: number;
  /** Bytes of records that are taken and not durable yet. */
  readonly waitingBytes: number;
  /** What a restart would read of this process's log. */
  readonly aboveFloorBytes: number;
  /** How often data has come from other servers, and how long it took in all until it could be opened. */
  readonly handOvers: { readonly count: number; readonly seconds: number };
  readonly busySeconds: number;
  /** CPU time of the thread. */
  readonly cpuMs: number;
}

/** Log ids in a cluster view. */
export interface NamedLogs {
  readonly members: readonly string[];
  readonly removed: readonly string[];
}

/** As src/accounts/key-ring.ts has it. */
export interface ServerKeys {
  readonly present: Uint8Array;
  readonly previous: Uint8Array | null;
}

export interface ActorWorkerTask {
  readonly index: number;
  /** Actor threads of the process. */
  readonly threads: number;
  readonly control: MessagePort;
  readonly front: MessagePort;
  readonly log: MessagePort;
  readonly lanes: MessagePort;
  /** Where this thread shows that it turns: shared memory. */
  readonly pulse: SharedArrayBuffer;
  readonly store: StoreSettings;
  readonly identity: LogIdentity;
  /** Whether other servers may take over what this one owns: then reads need evidence that none has. */
  readonly besideOthers: boolean;
  readonly predecessors: readonly string[];
  /** What the view that this process began with means for it. */
  readonly standing: Standing;
  readonly cacheFolder: string;
  /** See ComputeThreadData. */
  readonly scratchFolder: string;
  readonly cacheBytes: number;
  /** Bytes that the thread's actors may hold. */
  readonly memoryBytes: number;
  /** TIDEBASE_MEMORY_BYTES. */
  readonly processMemoryBytes: number;
  /** The plans, as src/accounts/plans.ts has them. */
  readonly plans: object;
  /** Whether there is a payment provider. */
  readonly hasPayments: boolean;
  readonly cursorKeys: ServerKeys;
  readonly keyEncryptionKeys: ServerKeys;
  readonly logLevel: LogLevel;
}

/** Control calls to an actor thread. */
export interface ActorControl {
  /** Resolves once everything durable was replayed, so that calls may come. */
  ready(): Promise<void>;
  /** Takes a later view: what has moved to other servers is answered no more. */
  adopt(standing: Standing): Promise<void>;
  /**
   * Flushes what is open here and these owners do not give to this server, while all of it is served. Resolves when it is done, or
   * after so long: what is left then is replayed by whoever takes it over.
   */
  flushMoving(owners: Owners, withinMs: number): Promise<void>;
  /** First on every thread: namespaces flush, and tell their tenants, which may live on other threads. */
  drainNamespaces(): Promise<void>;
  /** Then on every thread: tenants flush what they were told. */
  drain(): Promise<void>;
  /** Another process has taken over: what native code has under way ends, so that the process can. */
  leave(): Promise<void>;
  statistics(): Promise<ActorStatistics>;
}

export interface ActorStatistics {
  readonly openNamespaces: number;
  readonly openTenants: number;
  /** Actors put away because memory or the number of open ones asked for it. */
  readonly evictions: number;
  /** What the thread's memory budget counts, in bytes, and the same by kind. */
  readonly residentBytes: number;
  readonly residentBytesBy: Readonly<Record<string, number>>;
  readonly vectors: VectorStatistics;
  /** Stored blocks that were not in memory, by where they were found. */
  readonly blocks: BlockStatistics;
  /** How many reads found their namespace open, opened it from the local disk, or from the object store. */
  readonly foundAs: Readonly<Record<Temperature, number>>;
  /** Copies of namespaces that others own, how often they were read, and how old those answers were together. */
  readonly copies: { readonly open: number; readonly reads: number; readonly ageMs: number };
  readonly cache: CacheStatistics;
  /** Milliseconds of the thread's CPU time, by whose shares paid for them. */
  readonly chargedMs: { readonly tenants: number; readonly nobody: number; readonly upkeep: number };
  /** The longest stretch without a yield since the last look, and what it was. */
  readonly longestTurn: { readonly ms: number; readonly cause: string };
  /** Seconds that the thread has not waited for anything. */
  readonly busySeconds: number;
}

/** The thread's cache on the local disk. */
export interface CacheStatistics {
  readonly bytes: number;
  readonly serving: boolean;
}

export interface BlockStatistics {
  readonly fromDisk: number;
  readonly fromStore: number;
}

/** Vectors of open namespaces that lie in segments large enough for graphs. */
export interface VectorStatistics {
  readonly indexed: number;
  /** Vectors that searches compare one by one, because their graphs are not built yet. */
  readonly waiting: number;
}

/** What a compute thread is started with. */
export interface ComputeThreadData {
  readonly store: StoreSettings;
  /** How far it steps back behind threads that somebody waits for; 0 not at all. */
  readonly backgroundSteps: number;
  /** For files that are on their way into the local cache: on the same disk, and empty at the start. */
  readonly scratchFolder: string;
  readonly embeddingBaseUrls: EmbeddingBaseUrls;
  readonly processMemoryBytes: number;
  /** Shared with the front: is no longer 0 once the thread will be ended, so that long tasks give up. */
  readonly ending: Int32Array;
}

/** What the thread that hashes passwords is started with. */
export interface HashThreadData {
  readonly backgroundSteps: number;
}

/**
 * Each kind of work has threads of its own: a client waits for a parse, writers wait for builds that fall behind, and
 * nobody waits for a merge or for graphs, which are the longest. A match that RE2 may take seconds for waits for such alone.
 * A scan is shared with the actor that asks for it, which waits for none.
 * Calls of embedding providers wait for others side by side; the model that runs here takes a core.
 */
export type ComputeLaneName =
  | 'parse'
  | 'build'
  | 'merge'
  | 'graph'
  | 'match'
  | 'scan'
  | 'embed'
  | 'model'
  | 'import'
  | 'importHelp'
  | 'importBuild';

/** Who pays for a task of a lane, and until when it is worth beginning. */
export interface LaneClaim {
  /** A Share of src/base/share.ts. */
  readonly share: { readonly owner: number; readonly tenant: number; readonly weight: number };
  /** Milliseconds since 1970; null where it is worth doing however late. */
  readonly deadlineAt: number | null;
}

/** Control calls from an actor thread to the compute lanes, which the front side owns. */
export interface LanesControl {
  /** Runs a task of actors/compute/lanes.ts; its buffers are moved. */
  run(
    lane: ComputeLaneName,
    task: unknown,
    claim: LaneClaim,
    moved: readonly (ArrayBuffer | MessagePort)[],
  ): Promise<unknown>;
}
