import { constants, readFileSync } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { limits } from '../protocol/limits.ts';
import { buildOpenApi } from '../protocol/openapi.ts';
import { operationNames } from '../protocol/operations.ts';
import type {
  ComputeThreadData,
  HashThreadData,
  LogControl,
  LogWorkerTask,
  StoreSettings,
} from '../protocol/worker-tasks.ts';
import { PlansError, parsePlans } from './accounts/parse-plans.ts';
import { builtInPlans, type Plans } from './accounts/plans.ts';
import { Authenticator } from './auth/authenticate.ts';
import { systemClock } from './base/clock.ts';
import { type Remote, wrapControl } from './base/control.ts';
import { boundGarbage } from './base/garbage.ts';
import { createLogger, describeError, type Logger } from './base/log.ts';
import { TurnDelays } from './base/process-load.ts';
import { systemRandom } from './base/random.ts';
import { settledWithin } from './base/settled-within.ts';
import { askToStandStill } from './base/stand-still.ts';
import { createPulse, guardThreads, keepBeating, type Watchdog } from './base/watchdog.ts';
import { noteCacheEnd, prepareCacheFolder, scratchFolderOf } from './cluster/cache-folder.ts';
import { keepCollectingDead } from './cluster/collect-dead.ts';
import { loadServerId } from './cluster/server-id.ts';
import { type Joined, joinCluster } from './cluster/view.ts';
import { accountOperations } from './front/account-operations.ts';
import { Allowances } from './front/allowances.ts';
import { AuditLog } from './front/audit.ts';
import { ClientAddresses } from './front/client-address.ts';
import { type FrontDoor, openDoor } from './front/door.ts';
import { gatherMetrics, type RunningParts } from './front/gather-metrics.ts';
import { createHandler } from './front/handle.ts';
import type { HttpEngine } from './front/http.ts';
import { requestMemory } from './front/idempotency.ts';
import type { Metering } from './front/metering.ts';
import { type MetricsDoor, openMetrics } from './front/metrics.ts';
import { RequestObserver } from './front/observe.ts';
import { FileReceiver } from './front/receive-file.ts';
import { RequestMetrics } from './front/request-metrics.ts';
import { tenantOperations } from './front/tenant-operations.ts';
import { UsageMeter } from './front/usage-meter.ts';
import { Attempts } from './identity/attempts.ts';
import { loginTokens } from './identity/login-token.ts';
import { MailQueue } from './identity/mail-queue.ts';
import { smtpCarrier } from './identity/mailer.ts';
import { outboxCarrier } from './identity/outbox.ts';
import { tooManyPasswords } from './identity/password-gate.ts';
import { type PasswordHasher, type People, preparePeople } from './identity/people.ts';
import { readPerson } from './identity/person-record.ts';
import { deriveKey, loadSecrets, type Secrets } from './identity/secrets.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import { openObjectStore } from './object-store/open-object-store.ts';
import { probeObjectStore } from './object-store/probe.ts';
import { createSharedCounters, type SharedCounters } from './object-store/store-counters.ts';
import { ActorThread } from './router/actor-threads.ts';
import { Router } from './router/router.ts';
import { creatorOf, directoryOf, tenantsThrough } from './router/tenants.ts';
import { ComputeLane, ResidentThread, workerEntries } from './router/worker-pool.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings-values.ts';

/**
 * The whole server, composed by hand, top to bottom: settings → store → log → membership → actors → front.
 * Stopping goes the other way: no new requests, running ones finish, actors flush, the log drains.
 */
export interface Server {
  readonly url: string;
  /** Null where it was not asked for. */
  readonly metricsUrl: string | null;
  /** Resolves once everything accepted is durable and every thread has ended. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** For tests: which HTTP server must serve. */
  readonly engine?: HttpEngine;
  /** Another process ended this one's log: it must go, and quickly. */
  readonly onSealed: () => void;
  /** Native code ended the process before this one. */
  readonly afterCrash?: boolean;
}

export async function startServer(settings: Settings, options: ServerOptions): Promise<Server> {
  const logger = createLogger('front', settings.logLevel);
  boundGarbage(settings.memoryBytes);
  // Before anything is opened: a server that cannot start must not have taken over the log of one that serves.
  const plans = plansOf(settings);
  await makeDataFolder(settings.dataDir);
  const counters = createSharedCounters();
  const storeSettings = { ...storeSettingsOf(settings), counters };
  const [store, secrets, serverId] = await Promise.all([
    openObjectStore(storeSettings, systemClock, systemRandom),
    loadSecrets({ ...settings, random: systemRandom }),
    loadServerId(settings.dataDir, systemRandom),
  ]);
  // Before anything is joined: a port that is taken must not cost a log each time it is tried.
  const clientAddresses = new ClientAddresses(settings.trustedProxies);
  const { observer, requests, audit } = observersOf({ settings, secrets, clientAddresses, logger });
  const door = await openDoor(settings, options.engine ?? 'auto', logger, (answer) =>
    observer.ownAnswer(answer),
  );
  let running: RunningParts | null = null;
  const metrics = await metricsOf(settings, { door, requests, counters, running: () => running });
  const watchdog = guardThreads(systemClock, 'front', {
    everyMs: limits.threadBeatMs,
    silentMsMax: limits.threadSilentMsMax,
  });
  const log = startLogThread(storeSettings, settings, watchdog);
  await probeObjectStore(store, systemClock, systemRandom);
  const address = `${settings.host}:${settings.port}`;
  const components = { store, clock: systemClock, random: systemRandom, log: log.control };
  const joined = await joinCluster(components, serverId, address);
  await log.control.open(joined.identity, joined.sealedLogs);
  logger.info('this process has its log', {
    logId: joined.identity.logId,
    replays: joined.sealedLogs.length,
  });

  await prepareCacheFolder({
    folder: cacheFolderOf(settings),
    actorThreads: settings.actorThreads,
    clock: systemClock,
    log: logger,
    afterCrash: options.afterCrash ?? false,
  });
  const lanes = computeLanes(storeSettings, settings);
  const { router, authenticator, allowances, usageMeter, people } = frontOf({
    plans,
    secrets,
    store,
    lanes,
    logger,
  });
  const threads = actorThreads({
    settings,
    storeSettings,
    plans,
    secrets,
    joined,
    log: log.control,
    lanes,
    router,
    logger,
    watchdog,
  });
  router.use(threads);
  running = { threads, log: log.control, lanes: { ...lanes } };
  void log.control.whenSealed().then(() => {
    // They are about to stand still because they are asked to.
    watchdog.stop();
    return leave(threads).then(options.onSealed);
  });
  await Promise.all(threads.map((thread) => thread.start()));

  const stopCollecting = keepCollectingDead({ store, clock: systemClock, logger, log: log.control });

  const cacheFolder = cacheFolderOf(settings);
  const metering = { allowances, meter: usageMeter };
  const mails = mailQueueOf(settings, door.baseUrl, logger);
  door.serve(
    requestHandler({
      door,
      plans,
      store,
      router,
      authenticator,
      people,
      mails,
      clientAddresses,
      metering,
      cacheFolder,
      observer,
      logger,
    }),
  );
  const stopping = {
    door,
    mails,
    usageMeter,
    threads,
    log,
    lanes,
    store,
    cacheFolder,
    logger,
    stopCollecting,
  };
  return {
    url: door.baseUrl,
    metricsUrl: metrics?.url ?? null,
    async stop() {
      await stop(stopping);
      await audit.close();
      watchdog.stop();
      metrics?.close();
    },
  };
}

/** Who hears of every answer. */
function observersOf(parts: {
  settings: Settings;
  secrets: Secrets;
  clientAddresses: ClientAddresses;
  logger: Logger;
}) {
  const { settings, secrets, clientAddresses, logger } = parts;
  const requests = new RequestMetrics(operationNames);
  const audit = new AuditLog({
    clock: systemClock,
    logger,
    folder: join(settings.dataDir, 'audit'),
    key: deriveKey(secrets.loginTokenKey, 'tidebase audit v1'),
    addressOf: (exchange) => clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for')),
  });
  const logsRequests = settings.logLevel === 'debug';
  const observer = new RequestObserver({
    clock: systemClock,
    logger,
    metrics: requests,
    audit,
    logsRequests,
  });
  return { observer, requests, audit };
}

async function metricsOf(
  { host, metricsPort: port }: Settings,
  sources: {
    readonly door: FrontDoor;
    readonly requests: RequestMetrics;
    readonly counters: SharedCounters;
    readonly running: () => RunningParts | null;
  },
): Promise<MetricsDoor | null> {
  if (port === null) return null;
  const { door, ...others } = sources;
  const turnDelays = new TurnDelays();
  const own = { clock: systemClock, turnDelays, inFlight: door.inFlight, engine: door.engine };
  const metrics = await openMetrics({ host, port }, () => gatherMetrics({ ...others, ...own }));
  return {
    url: metrics.url,
    close() {
      turnDelays.stop();
      metrics.close();
    },
  };
}

function mailQueueOf({ smtpUrl, mailFrom, dataDir }: Settings, baseUrl: string, logger: Logger): MailQueue {
  // A mail server may refuse a sender that it does not know: then MAIL_FROM has to be set.
  const { hostname } = new URL(baseUrl);
  const domain = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : 'localhost';
  const from = mailFrom ?? `Tidebase <no-reply@${domain}>`;
  const carrier =
    smtpUrl === null
      ? outboxCarrier({
          folder: join(dataDir, 'outbox'),
          from,
          clock: systemClock,
          random: systemRandom,
          logger,
        })
      : smtpCarrier({ url: smtpUrl, from });
  return new MailQueue({ carrier, clock: systemClock, logger });
}

function cacheFolderOf({ dataDir }: Settings): string {
  return join(dataDir, 'cache');
}

/** A place that was taken must be left at once; what the caches have under way would end the process by a signal. */
const leaveMsMax = 100;
/** A thread hears of it at the end of its turn. */
const standStillMs = 50;

async function leave(threads: readonly ActorThread[]): Promise<void> {
  const left = Promise.all(threads.map((thread) => thread.leave()));
  await settledWithin(systemClock, left, leaveMsMax);
  askToStandStill();
  await systemClock.sleep(standStillMs);
}

async function makeDataFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SettingsError(`TIDEBASE_DATA_DIR: ${folder} can't be made or written (${reason})`);
  }
}

function storeSettingsOf(settings: Settings): StoreSettings {
  if (settings.s3 === null) return { kind: 'fs', folder: join(settings.dataDir, 'objects') };
  const { endpoint, credentials, ...s3 } = settings.s3;
  return { kind: 's3', ...s3, endpoint: endpoint ?? undefined, ...credentials };
}

interface LogThread {
  readonly control: Remote<LogControl>;
  /** After it was drained. */
  end(): Promise<void>;
}

function startLogThread(store: StoreSettings, settings: Settings, watchdog: Watchdog): LogThread {
  const thread = new ResidentThread(workerEntries.log);
  const control = new MessageChannel();
  const [pulse, mainPulse] = [createPulse(), createPulse()];
  const stopBeating = keepBeating(systemClock, mainPulse, limits.threadBeatMs);
  const stopWatching = watchdog.watch('log', pulse);
  const task: LogWorkerTask = {
    control: control.port2,
    pulse,
    mainPulse,
    store,
    commitMs: settings.commitMs,
    processMemoryBytes: settings.memoryBytes,
    logLevel: settings.logLevel,
  };
  let ending = false;
  const running = thread
    .run(task, [control.port2])
    .finally(stopWatching)
    .catch((error) => {
      if (ending) return;
      // Without its log the server can acknowledge nothing; the supervisor starts a new process with a log of its own.
      createLogger('front', 'error').error('the log thread died; the process ends', {
        error: describeError(error),
      });
      process.exit(1);
    });
  return {
    control: wrapControl<LogControl>(control.port1),
    async end() {
      ending = true;
      await settledWithin(systemClock, running, logEndMsMax);
      await thread.end();
      stopBeating();
    },
  };
}

/** A drained log thread has only its store to close. */
const logEndMsMax = 5_000;

interface Lanes {
  readonly parse: ComputeLane;
  readonly build: ComputeLane;
  readonly merge: ComputeLane;
  readonly graph: ComputeLane;
  readonly match: ComputeLane;
  readonly embed: ComputeLane;
  readonly model: ComputeLane;
  readonly import: ComputeLane;
  readonly importBuild: ComputeLane;
  readonly hash: ComputeLane;
}

/** How far they step back where the cores are busy, so that reads hardly feel them. Writers wait no less, but for flushes. */
const backgroundSteps = {
  parse: 6,
  build: 12,
  merge: 15,
  graph: 15,
  match: 12,
  model: 6,
  import: 6,
  hash: 10,
};

function computeLanes(store: StoreSettings, settings: Settings): Lanes {
  const { computeThreads, memoryBytes, embeddingBaseUrls } = settings;
  const scratchFolder = scratchFolderOf(cacheFolderOf(settings));
  const lane = (
    steps: number,
    threads: number,
    more: { queueMax?: number; tasksPerThread?: number } = {},
  ) => {
    const data: ComputeThreadData = {
      store,
      scratchFolder,
      embeddingBaseUrls,
      backgroundSteps: steps,
      processMemoryBytes: memoryBytes,
    };
    return new ComputeLane({ entry: workerEntries.compute, threads, data, ...more });
  };
  return {
    parse: lane(backgroundSteps.parse, computeThreads),
    build: lane(backgroundSteps.build, computeThreads),
    merge: lane(backgroundSteps.merge, Math.ceil(computeThreads / 2)),
    // One at a time: each holds a graph in memory.
    graph: lane(backgroundSteps.graph, 1),
    match: lane(backgroundSteps.match, computeThreads, { queueMax: limits.matchesWaitingMax }),
    embed: lane(0, 1, {
      queueMax: limits.embeddingsWaitingMax,
      tasksPerThread: limits.embeddingsInFlightMax,
    }),
    model: lane(backgroundSteps.model, 1, { queueMax: limits.embeddingsWaitingMax }),
    // One at a time: a file is read by one thread, and another makes its segment.
    import: lane(backgroundSteps.import, 1, { queueMax: limits.importsAtOnceMax }),
    importBuild: lane(backgroundSteps.import, 1, { queueMax: limits.importsAtOnceMax }),
    hash: new ComputeLane({
      entry: workerEntries.hash,
      threads: 1,
      data: { backgroundSteps: backgroundSteps.hash } satisfies HashThreadData,
      queueMax: limits.passwordsAtOnceMax - 1,
    }),
  };
}

function frontOf(parts: {
  plans: Plans;
  secrets: Secrets;
  store: ObjectStore;
  lanes: Lanes;
  logger: Logger;
}) {
  const { secrets, store, lanes, logger } = parts;
  const tokens = loginTokens(secrets.loginTokenKey, systemClock, systemRandom);
  const router = new Router({ forgetTenant: (tenantId) => authenticator.invalidateTenant(tenantId) });
  const tenants = tenantsThrough(router);
  const allowances = new Allowances(parts.plans, systemClock);
  const usageMeter = new UsageMeter({
    clock: systemClock,
    logger,
    tell: (tenantId, notes) => tenants.noteUsage(tenantId, notes),
    learn: (standing) => allowances.learn(standing),
  });
  const authenticator = new Authenticator(
    {
      objectStore: store,
      tenants: directoryOf(tenants, allowances),
      loginTokens: tokens,
      plans: parts.plans,
      clock: systemClock,
    },
    null,
  );
  const emailOf = async (personId: number) => (await readPerson(store, personId as never))?.email ?? '';
  let prepared: Promise<People> | null = null;
  const people = () => {
    prepared ??= preparePeople({
      objectStore: store,
      clock: systemClock,
      random: systemRandom,
      hasher: laneHasher(lanes.hash),
      tenantCreator: creatorOf(tenants, emailOf),
      ownerVerified: (tenantId) => tenants.ownerVerified(tenantId),
      logger,
    }).catch((error: unknown) => {
      // A failure is this request's alone: the next one tries again.
      prepared = null;
      throw error;
    });
    return prepared;
  };
  return { router, authenticator, allowances, usageMeter, people: { people, tokens, tenants, emailOf } };
}

function plansOf({ plansFile }: Settings): Plans {
  return plansFile === null ? builtInPlans : parsePlans(readPlansFile(plansFile));
}

function readPlansFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new PlansError(`The plans file ${file} cannot be read: ${describeError(cause)}.`, { cause });
  }
}

function laneHasher(lane: ComputeLane): PasswordHasher {
  const run = async (task: object): Promise<unknown> => {
    if (lane.isFull) throw tooManyPasswords();
    return lane.run(task);
  };
  return {
    hash: (password) => run({ task: 'hash', password }) as Promise<string>,
    verify: (hash, password) =>
      run({ task: 'verify', hash, password }) as ReturnType<PasswordHasher['verify']>,
  };
}

/**
 * Of TIDEBASE_MEMORY_BYTES: what the actors keep. The rest is for what is on its way, which belongs to no actor: bodies on
 * the front and in the build lanes, records in the log's queue, and buffers that no thread has collected yet.
 */
const residentShare = 0.5;

function actorThreads(parts: {
  settings: Settings;
  storeSettings: StoreSettings;
  plans: Plans;
  secrets: Secrets;
  joined: Joined;
  log: Remote<LogControl>;
  lanes: Lanes;
  router: Router;
  logger: Logger;
  watchdog: Watchdog;
}): ActorThread[] {
  const { settings, storeSettings, plans, secrets, joined, log, lanes, router, logger, watchdog } = parts;
  const count = settings.actorThreads;
  return Array.from(
    { length: count },
    (_, index) =>
      new ActorThread({
        index,
        count,
        settings: {
          store: storeSettings,
          identity: joined.identity,
          predecessors: joined.predecessors,
          cacheFolder: cacheFolderOf(settings),
          scratchFolder: scratchFolderOf(cacheFolderOf(settings)),
          logsOfView: [joined.identity.logId, ...joined.sealedLogs.map(({ logId }) => logId)],
          cacheBytes: Math.floor(settings.cacheBytes / count),
          memoryBytes: Math.floor((settings.memoryBytes * residentShare) / count),
          processMemoryBytes: settings.memoryBytes,
          plans,
          cursorKey: secrets.cursorKey,
          keyEncryptionKey: secrets.keyEncryptionKey,
          logLevel: settings.logLevel,
        },
        log,
        lanes,
        logger,
        watchdog,
        handler: router.handler(),
      }),
  );
}

function requestHandler(parts: {
  door: FrontDoor;
  plans: Plans;
  store: ObjectStore;
  router: Router;
  authenticator: Authenticator;
  people: ReturnType<typeof frontOf>['people'];
  mails: MailQueue;
  clientAddresses: ClientAddresses;
  metering: Metering;
  cacheFolder: string;
  observer: RequestObserver;
  logger: Logger;
}) {
  const { door, plans, store, router, authenticator, people, mails, metering, cacheFolder } = parts;
  const { clientAddresses, observer, logger } = parts;
  const { tenants } = people;
  const persons = { objectStore: store, clock: systemClock, random: systemRandom };
  const ofAccounts = accountOperations({
    people: people.people,
    loginTokens: people.tokens,
    tenants,
    attempts: new Attempts({
      limits: plans.attempts,
      clock: systemClock,
      sparesLoopback: !clientAddresses.hasProxies,
    }),
    mails,
    baseUrl: door.baseUrl,
    forgetLogins: (personId) => authenticator.invalidatePerson(personId),
    store,
  });
  const operations = new Map([...ofAccounts, ...tenantOperations({ tenants, persons })]);
  let openApi: string | null = null;
  return createHandler({
    authenticator,
    admission: door.admission,
    router,
    plans,
    logger,
    operations,
    openApi: () => {
      openApi ??= JSON.stringify(buildOpenApi(door.baseUrl));
      return openApi;
    },
    emailOf: people.emailOf,
    clientAddresses,
    files: new FileReceiver(scratchFolderOf(cacheFolder), systemRandom),
    memory: requestMemory(tenants, systemRandom),
    metering,
    settled: (work) => settledWithin(systemClock, work, usageWaitMs),
    observer,
  });
}

/** How long an answer about usage, or the end of the server, waits for what was counted to be durable. */
const usageWaitMs = 2_000;

/** How often a stopping server looks whether its last requests have ended. */
const drainLookMs = 20;

async function stop(parts: {
  door: FrontDoor;
  usageMeter: UsageMeter;
  mails: MailQueue;
  threads: readonly ActorThread[];
  log: LogThread;
  lanes: Lanes;
  store: ObjectStore;
  cacheFolder: string;
  logger: Logger;
  stopCollecting: () => void;
}): Promise<void> {
  const { door, threads, log, lanes, store, cacheFolder, logger } = parts;
  parts.stopCollecting();
  door.stopListening();
  const until = systemClock.monotonic() + limits.drainMs;
  while (door.inFlight() > 0 && systemClock.monotonic() < until) await systemClock.sleep(drainLookMs);
  await settledWithin(systemClock, parts.usageMeter.flush(), usageWaitMs);
  // What a mail is made of may still have to be read from the store, and nobody waits for the mail.
  await Promise.all([parts.mails.stop(), ...threads.map((thread) => thread.drainNamespaces())]);
  await Promise.all(threads.map((thread) => thread.drain()));
  await log.control.drain();
  await door.close();
  await Promise.all(threads.map((thread) => thread.end()));
  await Promise.all([...Object.values(lanes).map((lane) => lane.end()), log.end()]);
  await store.close();
  await noteCacheEnd(cacheFolder);
  logger.info('drained');
}
