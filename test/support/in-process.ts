import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { ActorReply } from '../../actors/actor/actor-reply.ts';
import type { ActorComponents, NamespaceDirectory } from '../../actors/actor/components.ts';
import {
  NotErasedYet,
  notErasedStatus,
  refuseDangling,
  unlessDangling,
} from '../../actors/actor/directory.ts';
import { Ownership } from '../../actors/actor/ownership.ts';
import { ReadEvidence } from '../../actors/actor/read-evidence.ts';
import { buildGraphs } from '../../actors/compute/build-graphs.ts';
import { buildImport } from '../../actors/compute/build-import.ts';
import { buildSegment } from '../../actors/compute/build-segment.ts';
import { importByThreads } from '../../actors/compute/import-by-threads.ts';
import type { BuildImportTask, ComputeLanes } from '../../actors/compute/lanes.ts';
import { mergeSegments } from '../../actors/compute/merge-segments.ts';
import { readImport } from '../../actors/compute/read-import.ts';
import { replacedRows } from '../../actors/compute/replaced-rows.ts';
import { ActorHost } from '../../actors/host/actor-host.ts';
import { createLogClient } from '../../actors/log/log-client.ts';
import { LogService } from '../../actors/log/log-service.ts';
import { replayedFromWire } from '../../actors/log/replay.ts';
import { keepSweeping } from '../../actors/namespace/keep-sweeping.ts';
import { RowFinding } from '../../actors/search/find-rows-task.ts';
import { ScanRoom } from '../../actors/search/scan-room.ts';
import { sqlComponents } from '../../actors/search/sql/sql-components.ts';
import { BlockCache, BlockFetcher } from '../../actors/storage/block-fetch.ts';
import { decodeBlocks } from '../../actors/storage/decode-blocks.ts';
import { FreshObjects } from '../../actors/storage/fresh-objects.ts';
import { parseWriteBody } from '../../actors/storage/parse-write.ts';
import { MatchRunner } from '../../actors/text/match-task.ts';
import { QueryPatterns } from '../../actors/text/query-pattern.ts';
import { KnownShares } from '../../actors/thread/known-shares.ts';
import { MemoryBudget } from '../../actors/thread/memory-budget.ts';
import { GraphFiles } from '../../actors/vector/graph-files.ts';
import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { type FlowLimits, limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  logCalls,
  type NewNamespace,
  noCaller,
  noMeter,
  type ResolvedNamespace,
  type SharedNamespace,
} from '../../protocol/messages.ts';
import { type Owners, type Standing, taskKey } from '../../protocol/placement.ts';
import type { KeyRecord, ProviderKeyRecord, TenantRecord } from '../../protocol/stored-tenant.ts';
import { builtInPlans, type Plans } from '../../src/accounts/plans.ts';
import { must } from '../../src/base/assert.ts';
import { ByteGate } from '../../src/base/byte-gate.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { xxh64Text } from '../../src/base/hash.ts';
import type { Logger } from '../../src/base/log.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import { type ChannelPort, type Message, PortChannel } from '../../src/base/port-channel.ts';
import { type Random, systemRandom } from '../../src/base/random.ts';
import { keepCollectingDead } from '../../src/cluster/collect-dead.ts';
import { ViewFollower } from '../../src/cluster/follow-view.ts';
import { type Joined, joinCluster } from '../../src/cluster/join.ts';
import { OwnMembership } from '../../src/cluster/own-membership.ts';
import { type ClusterView, standingOf } from '../../src/cluster/view.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import type { Reachability } from '../../src/peers/dialled-peer.ts';
import { ProcessClock } from './fake-clock.ts';
import { FaultyObjectStore } from './faulty-object-store.ts';
import { seededRandom } from './segments.ts';

export const tenantId = 7;

export interface InProcessOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly serverId?: string;
  readonly commitMs?: number;
  /** The actors' memory budget. */
  readonly memoryBytes?: number;
  readonly limits?: FlowLimits;
  /** Awaited before each build of a segment. */
  readonly beforeBuild?: () => Promise<void>;
  readonly logger?: Logger;
  /** Whether the replayed targets are flushed in the background, as after every real start. */
  readonly recover?: boolean;
  /** Default: the built-in ones. */
  readonly plans?: Plans;
}

export interface Answer {
  readonly status: number;
  readonly code: string;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's JSON, read by tests
  readonly body: any;
}

/**
 * Both sides of the house without threads: an actor host and a log service over one store, joined by real ports, with
 * the compute lanes run in place. Starting another one over the same store is a restart, or a second process.
 */
export class InProcess {
  readonly host: ActorHost;
  readonly log: LogService;
  readonly store: FaultyObjectStore;
  readonly joined: Joined;
  readonly components: ActorComponents;
  sealed = false;
  #killed = false;
  readonly #clock: ProcessClock;
  readonly #channel: PortChannel;

  private constructor(parts: {
    host: ActorHost;
    log: LogService;
    store: FaultyObjectStore;
    joined: Joined;
    components: ActorComponents;
    clock: ProcessClock;
    channel: PortChannel;
  }) {
    this.host = parts.host;
    this.log = parts.log;
    this.store = parts.store;
    this.joined = parts.joined;
    this.components = parts.components;
    this.#clock = parts.clock;
    this.#channel = parts.channel;
    void this.log.sealed.then(() => {
      this.sealed = true;
    });
  }

  static async start(options: InProcessOptions): Promise<InProcess> {
    const clock = new ProcessClock(options.clock);
    const store = new FaultyObjectStore(options.store, clock);
    const ports = new MessageChannel();
    const composed = await composeProcess({
      store,
      clock,
      random: options.random,
      logger: options.logger ?? quiet,
      serverId: options.serverId ?? 'server-a',
      commitMs: options.commitMs ?? 250,
      limits: options.limits ?? limits,
      memoryBytes: options.memoryBytes ?? memoryBytesDefault,
      plans: options.plans ?? builtInPlans,
      lanes: lanesInPlace(store, options.beforeBuild ?? (async () => {})),
      ports: { log: ports.port1, actors: ports.port2 },
    });
    ports.port1.unref();
    ports.port2.unref();
    if (options.recover ?? true) composed.host.recover();
    return new InProcess({ ...composed, store, clock });
  }

  /** The process is gone between two instructions: nothing it began is answered, and it sends nothing any more. */
  kill(): void {
    this.#killed = true;
    this.store.kill();
    this.#clock.stop();
    this.#channel.close();
  }

  /** The orderly end. */
  async drain(): Promise<void> {
    await this.host.drain();
    await this.log.drain();
    this.kill();
  }

  async createTenant(id = tenantId): Promise<void> {
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
    await this.host.handle(call(internalCalls.createTenant, '', { tenantId: id }), body);
  }

  /** An answer with its status; errors of the caller's or of the server become one too. */
  async ask(operation: string, namespace: string, options: Asked = {}): Promise<Answer> {
    const answer = await this.#answer(operation, namespace, options);
    // A process that is gone answers nobody.
    return this.#killed ? new Promise(() => {}) : answer;
  }

  async #answer(operation: string, namespace: string, options: Asked): Promise<Answer> {
    const body = options.body === undefined ? null : Buffer.from(JSON.stringify(options.body));
    try {
      const asked = call(operation, namespace, options);
      if (operation === 'getDocument') {
        const warm = this.host.getWarm(asked);
        if (warm !== null) return { status: 200, code: '', body: JSON.parse(warm.toString()) };
      }
      const reply = await this.host.handle(asked, body === null ? null : new Uint8Array(body));
      return { status: reply.status, code: '', body: bodyOf(asked, reply) };
    } catch (error) {
      if (error instanceof ApiError)
        return {
          status: error.status,
          code: error.code,
          body: JSON.parse(Buffer.from(error.toBody()).toString()),
        };
      return {
        status: 500,
        code: 'internal',
        body: { error: String(error), stack: error instanceof Error ? error.stack : '' },
      };
    }
  }

  /** A call of one part of the server to another; throws what it refuses. */
  async askInside(operation: string, value: unknown, id = tenantId): Promise<unknown> {
    const { packed } = await this.host.handle(call(operation, '', { tenantId: id }), packMessage(value));
    return unpackMessage(packed ?? new Uint8Array());
  }

  put(namespace: string, docs: readonly object[], deletes: readonly string[] = []): Promise<Answer> {
    return this.ask('putDocuments', namespace, { body: { docs, deletes } });
  }

  patch(namespace: string, docs: readonly object[]): Promise<Answer> {
    return this.ask('patchDocuments', namespace, { body: { docs } });
  }

  remove(namespace: string, ids: readonly string[]): Promise<Answer> {
    return this.ask('deleteDocuments', namespace, { body: { ids } });
  }

  get(namespace: string, id: string): Promise<Answer> {
    return this.ask('getDocument', namespace, { argument: id });
  }

  search(namespace: string, body: object): Promise<Answer> {
    return this.ask('search', namespace, { body });
  }

  count(namespace: string, body: object = {}): Promise<Answer> {
    return this.ask('count', namespace, { body });
  }

  /** All ids, newest first, by pages. */
  async list(namespace: string, limit = 1_000): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor = ''; ; ) {
      const { body, status } = await this.search(namespace, { limit, ...(cursor === '' ? {} : { cursor }) });
      if (status !== 200) throw new Error(`search answered ${status} ${JSON.stringify(body)}`);
      for (const hit of body.hits) ids.push(hit.id);
      if (body.next === '') return ids;
      cursor = body.next;
    }
  }
}

/** More than any test needs that is not about memory. */
export const memoryBytesDefault = 512 * 1024 * 1024;

export interface ProcessParts {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly serverId: string;
  readonly commitMs: number;
  readonly limits: FlowLimits;
  /** The actors' memory budget. */
  readonly memoryBytes: number;
  readonly lanes: ComputeLanes;
  /** The two ends of one channel. */
  readonly ports: { readonly log: ChannelPort; readonly actors: ChannelPort };
  /** Default: the built-in ones. */
  readonly plans?: Plans;
  /** Other servers on the same store; null where there are none. */
  readonly cluster?: ClusterParts | null;
}

export interface ClusterParts {
  /** The process has a log and a view: the answer is how it reaches others from now on. */
  readonly join: (self: {
    readonly host: ActorHost;
    readonly follower: ViewFollower;
    readonly logId: string;
  }) => ClusterLinks;
  /** The view does not name this process any more. */
  readonly onRemoved: () => void;
}

/** Other servers, as one process reaches them. */
export interface ClusterLinks {
  /** Calls of actors to other targets, wherever they live. */
  ask(call: ActorCall, body: Uint8Array | null): Promise<ActorReply>;
  useView(view: ClusterView): void;
  pushView(view: ClusterView): void;
  reachability(logId: string): Reachability | null;
  /** Has the others flush what this process will own. Never rejects. */
  prepare(): Promise<void>;
}

export interface ComposedProcess {
  readonly host: ActorHost;
  readonly log: LogService;
  readonly joined: Joined;
  readonly components: ActorComponents;
  readonly channel: PortChannel;
  /** Null where there are no other servers. */
  readonly follower: ViewFollower | null;
  readonly membership: OwnMembership | null;
}

/** One process, as server.ts and the entries of its threads compose it: joined, replayed, ready for calls. */
export async function composeProcess(parts: ProcessParts): Promise<ComposedProcess> {
  const { store, clock, random, logger, commitMs } = parts;
  const logComponents = { store, clock, random, logger };
  const cluster = parts.cluster ?? null;
  let follower: ViewFollower | null = null;
  let links: ClusterLinks | null = null;
  const log = new LogService(logComponents, {
    commitMs,
    limits: parts.limits,
    besideOthers: cluster !== null,
    onLaterView: () => void follower?.look(),
  });
  const control = {
    seal: (logId: string, placement: number) => log.seal(logId, placement),
    doneAmong: (logIds: readonly string[]) => log.doneAmong(logIds),
  };
  const besideOthers = cluster !== null;
  const joined = await joinCluster({ ...logComponents, log: control, besideOthers }, parts.serverId, 'here');
  log.open(joined.identity, joined.standing);

  let host: ActorHost | null = null;
  let replayEnded = () => {};
  const replayed = new Promise<void>((resolve) => {
    replayEnded = resolve;
  });
  const channel = new PortChannel(
    parts.ports.actors,
    {
      call: (_message, respond) => respond(['refused']),
      notice: (message) => onNotice(host, message, replayEnded),
    },
    limits.messageInlineBytesMax,
  );
  const memory = new MemoryBudget(parts.memoryBytes);
  const shares = new KnownShares(clock);
  const ownership = new Ownership(clock, joined.standing);
  const ask = async (asked: ActorCall, body: Uint8Array | null): Promise<ActorReply> => {
    if (cluster !== null) return must(links, 'other servers').ask(asked, body);
    if (host === null) throw new ApiError('unavailable', 'not ready');
    return host.handle(asked, body);
  };
  const logClient = createLogClient(channel, joined.identity, shares);
  const components: ActorComponents = {
    store,
    clock,
    random,
    logger,
    limits: parts.limits,
    log: logClient,
    evidence: cluster === null ? null : new ReadEvidence(clock, logClient),
    lanes: parts.lanes,
    patterns: new QueryPatterns(),
    scanRoom: new ScanRoom(),
    shares,
    fetcher: new BlockFetcher({
      store,
      warmCache: null,
      cache: new BlockCache(memory.bytesMax / 2, memory),
      fresh: new FreshObjects(memory, clock),
      yieldTurn: () => clock.yieldTurn(),
    }),
    warmCache: null,
    isOnOtherThread: () => false,
    graphFiles: graphFilesInPlace(store, clock, random),
    memory,
    queryMemory: new ByteGate({ max: parts.memoryBytes, clock: parts.clock, waitersMax: 0 }),
    sql: sqlComponents(memory, parts.clock),
    ownership,
    directory: directoryThrough((asked, body) => ask(asked, body)),
    threadLife: 'a thread',
    orderlyEnd: null,
    cursorKeys: { present: Buffer.from('a key of cursors'), previous: null },
    plans: parts.plans ?? builtInPlans,
    hasPayments: false,
    keyEncryptionKeys: { present: Buffer.alloc(32, 1), previous: null },
  };
  host = new ActorHost(components);
  const { logId } = joined.identity;
  if (cluster !== null) {
    const adopting = (adopt: (standing: Standing) => void) => (view: ClusterView) => {
      const standing = standingOf(view, logId);
      if (standing !== null) adopt(standing);
    };
    follower = new ViewFollower(
      logComponents,
      {
        everyMs: limits.viewPollMs,
        logId,
        subscribers: [
          adopting((standing) => host?.adopt(standing)),
          (view) => links?.useView(view),
          adopting((standing) => log.adopt(standing)),
        ],
        onRemoved: cluster.onRemoved,
      },
      joined.view,
    );
    links = cluster.join({ host, follower, logId });
    links.useView(joined.view);
    follower.follow();
    links.pushView(joined.view);
  }
  await log.attach(parts.ports.log, { index: 0, count: 1 });
  await replayed;
  const isMine = () => components.ownership.isOwn(taskKey('ended-logs'));
  keepCollectingDead({ ...logComponents, log, isMine });
  keepSweeping(components);
  const membership =
    follower === null || links === null
      ? null
      : new OwnMembership({
          ...logComponents,
          log: control,
          follower,
          logId,
          reachability: (other) => must(links, 'other servers').reachability(other),
          push: (view) => must(links, 'other servers').pushView(view),
          prepare: () => must(links, 'other servers').prepare(),
        });
  membership?.keep();
  return { host, log, joined, components, channel, follower, membership };
}

/** A document comes as bytes, everything else as text. */
export function bodyOf(asked: ActorCall, { json, packed }: ActorReply) {
  // What parts of the server ask of each other is no JSON.
  const isInside = asked.operation.includes('.');
  const text = packed !== undefined && !isInside ? Buffer.from(packed).toString() : json;
  return text === '' ? null : JSON.parse(text);
}

/** As the actor thread's entry does. */
function onNotice(host: ActorHost | null, message: Message, replayEnded: () => void): void {
  const [kind, ...rest] = message.head as [string, ...unknown[]];
  if (kind === logCalls.replayBegin) {
    const [standing, chain] = rest as [Standing, readonly Owners[]];
    host?.beginReplay(standing, chain);
  }
  if (kind === logCalls.replayEnd) {
    const [placement] = rest as [number];
    host?.endReplay(placement);
    replayEnded();
  }
  if (kind === logCalls.replay) {
    host?.acceptReplay(replayedFromWire(rest, message.body ?? new Uint8Array()));
  }
  if (kind === logCalls.flush) {
    const [tenant, namespace, namespaceId] = rest as [number, string, string];
    host?.flush(tenant, namespace, namespaceId).catch(() => {});
  }
  if (kind === logCalls.lookUp) {
    const [tenantId, namespace, namespaceId, logId] = rest as [number, string, string, string];
    host?.lookUp({ tenantId, namespace, namespaceId }, logId).catch(() => {});
  }
}

export interface Asked {
  readonly tenantId?: number;
  readonly argument?: string;
  readonly query?: string;
  readonly deadlineMs?: number;
  readonly body?: unknown;
  /** Digest of an `Idempotency-Key`. */
  readonly idempotencyKey?: string;
}

export function call(operation: string, namespace: string, options: Asked = {}): ActorCall {
  const { idempotencyKey } = options;
  return {
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    operation,
    tenantId: options.tenantId ?? tenantId,
    namespace,
    argument: options.argument ?? '',
    query: options.query ?? '',
    deadlineMs: options.deadlineMs ?? 10_000,
    caller: { ...noCaller, querySeconds: 10 },
  };
}

export function keyRecord(id: number): KeyRecord {
  return {
    id,
    name: 'k',
    prefix: 'tb_00000000',
    digest: String(id).padStart(64, '0'),
    scope: 'admin',
    namespaces: [],
    ratePerSecond: null,
    capQueries: null,
    capWrites: null,
    createdAt: '2024-01-01T00:00:00.000Z',
    createdBy: 'a@b.c',
    personId: 1,
  };
}

/** Bytes by a seed: the same run every time. */
export function seededBytes(seed: number): Random {
  const random = seededRandom(seed);
  return { bytes: (length) => Uint8Array.from({ length }, () => Math.floor(random() * 256)) };
}

export const quiet: Logger = { error() {}, info() {}, debug() {} };

/** Made with the first graph: most tests have none. */
export const graphScratchFolder = join(tmpdir(), `tidebase-graphs-${process.pid}`);
process.on('exit', () => rmSync(graphScratchFolder, { recursive: true, force: true }));

/** Graphs without a local cache: each is fetched when it is opened. */
export function graphFilesInPlace(
  store: ObjectStore,
  clock: Clock = systemClock,
  random: Random = systemRandom,
): GraphFiles {
  return new GraphFiles({ store, clock, random, warmCache: null, scratchFolder: graphScratchFolder });
}

/** Tries again at once: the fake clock of the actors does not move by itself. */
const impatient: Clock = { ...systemClock, sleep: async () => {} };

export function lanesInPlace(
  store: ObjectStore,
  beforeBuild: () => Promise<void>,
  clock: Clock = impatient,
): ComputeLanes {
  const matches = new MatchRunner();
  const finding = new RowFinding();
  return {
    async parse(task) {
      return parseWriteBody(task.kind, task.body);
    },
    async buildSegment(task) {
      await beforeBuild();
      return buildSegment({ store, clock }, task);
    },
    async mergeSegments(task) {
      await beforeBuild();
      return mergeSegments({ store, clock }, task);
    },
    async buildGraphs(task) {
      await beforeBuild();
      return buildGraphs({ store, clock, scratchFolder: graphScratchFolder, isEnding: () => false }, task);
    },
    embed: (task, claim) => embedInPlace(task, claim),
    match: async (task) => matches.run(task),
    findRows: async (task) => finding.run(task),
    decodeBlocks: async (task) => decodeBlocks(task),
    async importFile(task) {
      await beforeBuild();
      const scratchFolder = graphScratchFolder;
      const threads = {
        read: readImport,
        help: readImport,
        build: (building: BuildImportTask) => buildImport({ store, clock, scratchFolder }, building),
      };
      return importByThreads(threads, task);
    },
    replacedRows: (task) => replacedRows({ store }, task),
  };
}

/** Texts of a word in common are near; the built-in model is not loaded, and no provider is called. */
const embedInPlace: ComputeLanes['embed'] = async (task) => {
  const { texts, dims } =
    task.task === 'embed-here'
      ? { texts: task.texts, dims: 512 }
      : { texts: task.request.texts, dims: task.request.dims ?? 16 };
  const vectors = new Float32Array(texts.length * dims);
  for (const [at, text] of texts.entries()) {
    for (const word of text.toLowerCase().match(/\w+/g) ?? []) {
      const place = at * dims + (Number(xxh64Text(word) % BigInt(dims)) | 0);
      vectors[place] = (vectors[place] as number) + 1;
    }
  }
  return { vectors, dims, tokens: texts.length };
};

/** What the router does. */
function directoryThrough(
  askOwner: (call: ActorCall, body: Uint8Array | null) => Promise<ActorReply>,
): NamespaceDirectory {
  const ask = async (
    operation: string,
    to: { tenantId: number; namespace?: string; argument?: string; query?: string },
    body: Uint8Array | null = null,
  ): Promise<ActorReply> => {
    const { namespace = '', ...options } = to;
    return askOwner(call(operation, namespace, options), body);
  };
  const known = async (tenant: number, name: string, create: NewNamespace | null) => {
    const body = create === null ? null : packMessage(create);
    const { packed } = await ask(internalCalls.resolveNamespace, { tenantId: tenant, argument: name }, body);
    return unpackMessage(packed ?? new Uint8Array()) as ResolvedNamespace | null;
  };
  return {
    resolve: async (tenant, name, create) => unlessDangling(await known(tenant, name, create)),
    lookUp: async (tenant, name, create) => refuseDangling(name, await known(tenant, name, create)),
    async confirm(tenant, name, namespaceId) {
      await ask(internalCalls.confirmNamespace, { tenantId: tenant, argument: name, query: namespaceId });
    },
    async report(tenant, name, report) {
      const to = { tenantId: tenant, argument: name };
      await ask(internalCalls.reportNamespace, to, packMessage(report));
    },
    async reportHeld(tenant, namespaceId, bytes) {
      await ask(internalCalls.reportHeld, { tenantId: tenant, argument: namespaceId }, packMessage(bytes));
    },
    async storedBytes(tenant) {
      const { packed } = await ask(internalCalls.storedBytes, { tenantId: tenant });
      return unpackMessage(packed ?? new Uint8Array()) as number;
    },
    async admitHosted(tenant, tokens) {
      await ask(internalCalls.admitHosted, { tenantId: tenant, argument: String(tokens) });
    },
    async providerKey(tenant, provider) {
      const { packed } = await ask(internalCalls.providerKey, { tenantId: tenant, argument: provider });
      return unpackMessage(packed ?? new Uint8Array()) as ProviderKeyRecord | null;
    },
    async setEmbed(tenant, name, change) {
      await ask(internalCalls.setEmbed, { tenantId: tenant, argument: name }, packMessage(change));
    },
    async drop(tenant, name, namespaceId) {
      const to = { tenantId: tenant, namespace: name, argument: namespaceId };
      const { status } = await ask(internalCalls.dropNamespace, to);
      if (status === notErasedStatus) throw new NotErasedYet();
    },
    async collect(tenant, name, namespaceId) {
      await ask(internalCalls.collectNamespace, { tenantId: tenant, namespace: name, argument: namespaceId });
    },
    async versionOf(tenant, name, namespaceId) {
      const to = { tenantId: tenant, namespace: name, argument: namespaceId };
      const { packed } = await ask(internalCalls.namespaceVersion, to);
      return unpackMessage(packed ?? new Uint8Array()) as number | null;
    },
    async began(tenant, name, namespaceId, stored) {
      const to = { tenantId: tenant, namespace: name, argument: namespaceId };
      await ask(internalCalls.namespaceBegan, to, packMessage(stored));
    },
    async nearBlocks(tenant, name, wanted) {
      const { packed } = await ask(
        internalCalls.nearBlocks,
        { tenantId: tenant, namespace: name },
        packMessage(wanted),
      );
      return unpackMessage(packed ?? new Uint8Array()) as readonly (Uint8Array | null)[];
    },
    async share(tenant, name, namespaceId, request) {
      const to = { tenantId: tenant, namespace: name, argument: namespaceId };
      const { packed } = await ask(internalCalls.shareNamespace, to, packMessage(request));
      return unpackMessage(packed ?? new Uint8Array()) as SharedNamespace | null;
    },
    async release(tenant, name, namespaceId, holderId) {
      const to = { tenantId: tenant, namespace: name, argument: namespaceId, query: holderId };
      await ask(internalCalls.releaseNamespace, to);
    },
    async read(asked, body) {
      try {
        const { status, headers, json, packed, tally, ...meter } = await askOwner(asked, body);
        const { storeGets, storeBytes } = tally;
        const answer = { status, headers, meter: { ...noMeter, ...meter, storeGets, storeBytes } };
        return { answer, bytes: packed ?? Buffer.from(json) };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return { answer: { status: error.status, headers: [], meter: noMeter }, bytes: error.toBody() };
      }
    },
    async forget() {},
  };
}
