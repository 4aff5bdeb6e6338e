import { ApiError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerToWire,
  actorCallFromWire,
  logCalls,
  movedToWire,
  noCaller,
  noMeter,
} from '../protocol/messages.ts';
import type { Owners, Standing } from '../protocol/placement.ts';
import type { ActorControl, ActorWorkerTask } from '../protocol/worker-tasks.ts';
import type { Plans } from '../src/accounts/plans.ts';
import { ByteGate } from '../src/base/byte-gate.ts';
import { Charges, CpuShares, type ShareKind } from '../src/base/charges.ts';
import { systemClock } from '../src/base/clock.ts';
import { exposeControl } from '../src/base/control.ts';
import { boundGarbage, letGo } from '../src/base/garbage.ts';
import { createLogger, describeError, type Logger } from '../src/base/log.ts';
import { type Message, PortChannel, type Respond } from '../src/base/port-channel.ts';
import { busySeconds } from '../src/base/process-load.ts';
import { randomHex, systemRandom } from '../src/base/random.ts';
import { type Share, upkeepShare } from '../src/base/share.ts';
import { standStillWhenAsked } from '../src/base/stand-still.ts';
import { threadCpuMs } from '../src/base/thread-cpu.ts';
import { atEndOfTurn, waitingTurns } from '../src/base/turns.ts';
import { keepBeating } from '../src/base/watchdog.ts';
import { openObjectStore } from '../src/object-store/open-object-store.ts';
import type { ActorReply } from './actor/actor-reply.ts';
import type { ActorComponents } from './actor/components.ts';
import { createDirectory } from './actor/directory.ts';
import { MovedAway, Ownership } from './actor/ownership.ts';
import { ReadEvidence } from './actor/read-evidence.ts';
import { remoteLanes } from './compute/remote-lanes.ts';
import { ActorHost } from './host/actor-host.ts';
import { ThreadPlace } from './host/thread-place.ts';
import { createLogClient } from './log/log-client.ts';
import { replayedFromWire } from './log/replay.ts';
import { keepSweeping } from './namespace/keep-sweeping.ts';
import { keepSweepingCache } from './namespace/sweep-cache.ts';
import { ScanRoom } from './search/scan-room.ts';
import { sqlComponents } from './search/sql/sql-components.ts';
import { BlockCache, BlockFetcher } from './storage/block-fetch.ts';
import { FreshObjects } from './storage/fresh-objects.ts';
import { noteOrderlyEnd, takeOrderlyEnd } from './storage/manifest-cache.ts';
import { openWarmCache } from './storage/warm-cache.ts';
import { QueryPatterns } from './text/query-pattern.ts';
import { KnownShares } from './thread/known-shares.ts';
import { MemoryBudget } from './thread/memory-budget.ts';
import { spentBefore } from './thread/spent.ts';
import { Turn } from './thread/turn.ts';
import { GraphFiles } from './vector/graph-files.ts';

/** Entry of an actor thread: build the components, top to bottom, and hand messages to the host until drained. */
export default async function serveActors(task: ActorWorkerTask): Promise<void> {
  standStillWhenAsked();
  boundGarbage(task.processMemoryBytes);
  keepBeating(systemClock, task.pulse, limits.threadBeatMs);
  const logger = createLogger(`actor-${task.index}`, task.logLevel);
  const store = await openObjectStore(task.store, systemClock, systemRandom);
  const warmCache = openWarmCache({
    folder: task.cacheFolder,
    bytesMax: task.cacheBytes,
    log: logger,
    random: systemRandom,
  });
  const memory = new MemoryBudget(task.memoryBytes, letGo);
  const threadLife = randomHex(systemRandom, 8);
  const fetcher = new BlockFetcher({
    store,
    warmCache,
    cache: new BlockCache(Math.floor(task.memoryBytes / 2), memory),
    fresh: new FreshObjects(memory, systemClock),
    yieldTurn: systemClock.yieldTurn,
    ...(task.store.kind === 'fs' ? { keptBytesOfQueryMax: limits.folderReadsKeptBytesMax } : {}),
  });

  const replay = new Replay();
  let host: ActorHost | null = null;
  let thread: Thread | null = null;
  const charges = new Charges();
  const cpuShares = new CpuShares();
  const calls = { tenants: 0, nobody: 0, upkeep: 0 };
  const logChannel = new PortChannel(
    task.log,
    { call: refuseCall, notice: (message) => onLogNotice(host, replay, message) },
    limits.messageInlineBytesMax,
  );
  const frontChannel: PortChannel = new PortChannel(
    task.front,
    { call: (message, respond) => serve(thread, message, respond), notice() {} },
    limits.messageInlineBytesMax,
  );
  const shares = new KnownShares(systemClock);
  const log = createLogClient(logChannel, task.identity, shares);
  const ownership = new Ownership(systemClock, task.standing);
  const place = new ThreadPlace(ownership, task);
  const components: ActorComponents = {
    store,
    clock: systemClock,
    random: systemRandom,
    logger,
    limits,
    log,
    lanes: remoteLanes(task.lanes),
    patterns: new QueryPatterns(),
    scanRoom: new ScanRoom(),
    shares,
    fetcher,
    warmCache,
    graphFiles: new GraphFiles({
      store,
      clock: systemClock,
      random: systemRandom,
      warmCache,
      scratchFolder: task.scratchFolder,
    }),
    memory,
    queryMemory: new ByteGate({
      max: Math.floor(task.memoryBytes / limits.queryMemoryPart),
      clock: systemClock,
      waitersMax: 0,
    }),
    sql: sqlComponents(memory, systemClock),
    directory: createDirectory(frontChannel),
    threadLife,
    orderlyEnd: takeOrderlyEnd(warmCache, task.predecessors),
    ownership,
    isOnOtherThread: (key) => place.isBeside(key),
    evidence: task.besideOthers ? new ReadEvidence(systemClock, log) : null,
    plans: task.plans as Plans,
    hasPayments: task.hasPayments,
    cursorKeys: task.cursorKeys,
    keyEncryptionKeys: task.keyEncryptionKeys,
  };
  host = new ActorHost(components, { threads: task.threads, index: task.index });
  thread = { host, logger, shares, channel: frontChannel, charges, calls, turnBegan: null };
  const serving = host;
  let stopSweeping = () => {};
  let stopSweepingCache = () => {};

  await new Promise<void>((resolve) => {
    const control: ActorControl = {
      async ready() {
        await replay.finished;
        // Recovery asks other actors, which may live on threads that are not ready yet: it is not waited for.
        serving.recover();
        // One thread for all: it asks the others through the router.
        if (task.index === 0) stopSweeping = keepSweeping(components);
        stopSweepingCache = keepSweepingCache(components);
      },
      adopt: async (standing) => serving.adopt(standing),
      flushMoving: (owners, withinMs) => serving.flushMoving(owners, withinMs),
      drainNamespaces: () => serving.drainNamespaces(),
      async drain() {
        stopSweeping();
        stopSweepingCache();
        await serving.drain();
        // What another server owned meanwhile may be older here than in the store.
        if (components.ownership.placement === task.standing.owners.placement)
          noteOrderlyEnd(warmCache, { logId: task.identity.logId, threadLife });
        setImmediate(resolve);
      },
      leave: () => warmCache.leave(),
      statistics: async () => ({
        ...serving.statistics(),
        busySeconds: busySeconds(),
        chargedMs: cpuShares.divide({
          cpuMs: threadCpuMs(),
          busyMs: busySeconds() * 1_000,
          charged: charges.ms,
          parts: { ...calls },
        }),
        longestTurn: charges.takeLongest(),
      }),
    };
    exposeControl(control, task.control);
  });
  frontChannel.close();
  logChannel.close();
  await warmCache.close();
  await store.close();
}

/** Whether the log has sent everything that was durable when this thread began. */
class Replay {
  readonly finished: Promise<void>;
  #finish = () => {};
  constructor() {
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }
  end(): void {
    this.#finish();
  }
}

function refuseCall(_message: Message, respond: Respond): void {
  respond(['refused']);
}

function onLogNotice(host: ActorHost | null, replay: Replay, message: Message): void {
  const [kind, ...rest] = message.head as [string, ...unknown[]];
  if (kind === logCalls.replayBegin) {
    const [standing, chain] = rest as [Standing, readonly Owners[]];
    host?.beginReplay(standing, chain);
  } else if (kind === logCalls.replayEnd) {
    const [placement] = rest as [number];
    host?.endReplay(placement);
    replay.end();
  } else if (kind === logCalls.replay) {
    host?.acceptReplay(replayedFromWire(rest, message.body ?? new Uint8Array()));
  } else if (kind === logCalls.flush) {
    const [tenantId, namespace, namespaceId] = rest as [number, string, string];
    // A flush that fails is asked for again by the log's next round.
    host?.flush(tenantId, namespace, namespaceId).catch(() => {});
  } else if (kind === logCalls.lookUp) {
    const [tenantId, namespace, namespaceId, logId] = rest as [number, string, string, string];
    // And so is a look that fails.
    host?.lookUp({ tenantId, namespace, namespaceId }, logId).catch(() => {});
  }
}

/** What serves the messages of the front. */
interface Thread {
  readonly host: ActorHost;
  readonly logger: Logger;
  readonly shares: KnownShares;
  readonly channel: PortChannel;
  readonly charges: Charges;
  /** Calls that came, by whose they were. */
  readonly calls: Record<ShareKind, number>;
  /** When the first message of this turn of the event loop was taken, on the monotonic scale; null between turns. */
  turnBegan: number | null;
}

function serve(thread: Thread | null, message: Message, respond: Respond): void {
  const call = actorCallFromWire(message.head);
  if (thread === null) return respondStarting(respond);
  const { host, logger, shares, channel, charges } = thread;
  thread.calls[call.caller.owner === noCaller.owner ? 'upkeep' : 'tenants']++;
  if (call.operation === 'getDocument' && serveWarm(host, logger, call, respond)) return;
  const beganAt = systemClock.monotonic();
  const { owner, weight } = call.caller;
  const turnOf = (share: Share) => new Turn({ share, beganAt, cause: call.operation, charges });
  // Others wait for what actors ask of each other: it takes microseconds, and has no turn of its own.
  if (owner === noCaller.owner)
    return begin(thread, { call, body: message.body, turn: turnOf(upkeepShare), respond });
  const turn = turnOf(shares.learn(call.tenantId, owner, weight));
  if (message.id !== undefined) channel.onCancel(message.id, () => turn.cancel());
  if (!mustWait(thread, beganAt)) return begin(thread, { call, body: message.body, turn, respond });
  void systemClock.yieldTurn(turn.share).then(() => {
    if (turn.cancelled) respondError(respond, logger, call, clientGone());
    else begin(thread, { call, body: message.body, turn, respond });
  });
}

interface Begun {
  readonly call: ActorCall;
  readonly body: Uint8Array | null;
  readonly turn: Turn;
  readonly respond: Respond;
}

/** What it does before it first gives way, reading the body above all, is charged like every later slice. */
function begin({ host, logger }: Thread, { call, body, turn, respond }: Begun): void {
  const beganAt = systemClock.monotonic();
  const answer = host.handle(call, body, turn);
  turn.charge(systemClock.monotonic() - beganAt);
  const bodyBytes = body?.byteLength ?? 0;
  answer.then(
    (reply) => respondReply(respond, reply),
    (error) => {
      // A body that went on to another thread can't be given back.
      const isWhole = (body?.byteLength ?? 0) === bodyBytes;
      if (error instanceof MovedAway && isWhole) respond(movedToWire(error.placement), body);
      else respondError(respond, logger, call, error);
    },
  );
}

/**
 * Whether a request that has just come must wait for its turn: others do, or the requests before it have had a slice of this
 * turn of the event loop already. Otherwise it begins at once.
 */
function mustWait(thread: Thread, now: number): boolean {
  if (thread.turnBegan === null) {
    thread.turnBegan = now;
    atEndOfTurn(() => {
      thread.turnBegan = null;
    });
  }
  return waitingTurns() > 0 || now - thread.turnBegan >= limits.timeSliceMs;
}

function clientGone(): ApiError {
  return new ApiError('unavailable', 'nobody waited for the answer any more; nothing was done', {
    retryAfter: 1,
  });
}

function respondStarting(respond: Respond): void {
  const error = new ApiError('unavailable', 'the server is starting', { retryAfter: 1 });
  respond(
    actorAnswerToWire({ status: error.status, headers: [['retry-after', '1']], meter: noMeter }),
    error.toBody(),
  );
}

/** Hot: most calls end here, without a promise. */
function serveWarm(host: ActorHost, logger: Logger, call: ActorCall, respond: Respond): boolean {
  try {
    const answer = host.getWarm(call);
    if (answer === null) return false;
    respond(warmAnswer, answer);
  } catch (error) {
    respondError(respond, logger, call, error);
  }
  return true;
}

const warmAnswer = actorAnswerToWire({ status: 200, headers: [], meter: noMeter });

function respondReply(respond: Respond, reply: ActorReply): void {
  const { documents, bytes, cpuMs, embedTokens, hostedTokens, tally, headers } = reply;
  const { storeGets, storeBytes } = tally;
  const meter = { documents, bytes, cpuMs, storeGets, storeBytes, embedTokens, hostedTokens };
  const body = reply.packed ?? ownBytes(reply.json);
  respond(actorAnswerToWire({ status: reply.status, headers, meter }), body);
}

/** A large answer is moved to the front, so it must not share its buffer. */
function ownBytes(json: string): Uint8Array {
  return Buffer.byteLength(json) > limits.messageInlineBytesMax
    ? new TextEncoder().encode(json)
    : Buffer.from(json);
}

function respondError(respond: Respond, logger: Logger, call: ActorCall, error: unknown): void {
  const shown = error instanceof ApiError ? error : internalError(logger, call, error);
  const headers = [...shown.headers];
  if (shown.retryAfter !== undefined) headers.push(['retry-after', String(shown.retryAfter)]);
  respond(actorAnswerToWire({ status: shown.status, headers, meter: spentBefore(error) }), shown.toBody());
}

function internalError(logger: Logger, call: ActorCall, error: unknown): ApiError {
  const { operation, caller } = call;
  logger.error('a request failed', {
    requestId: caller.requestId,
    operation,
    error: describeError(error),
  });
  return new ApiError('internal', 'the server failed to answer this request; it was logged');
}
