import { constants, readFileSync } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { limits } from '../protocol/limits.ts';
import type { ClusterTask } from '../protocol/placement.ts';
import type { StoreSettings } from '../protocol/worker-tasks.ts';
import { PlansError, parsePlans } from './accounts/parse-plans.ts';
import { builtInPlans, type Plans } from './accounts/plans.ts';
import type { Cached } from './auth/key-cache.ts';
import { Charges } from './base/charges.ts';
import { systemClock } from './base/clock.ts';
import { boundGarbage } from './base/garbage.ts';
import { createLogger, describeError, type Logger } from './base/log.ts';
import { closeToOthers } from './base/private-folder.ts';
import { systemRandom } from './base/random.ts';
import { settledWithin } from './base/settled-within.ts';
import { SingleFlight } from './base/single-flight.ts';
import { guardThreads } from './base/watchdog.ts';
import { noteCacheEnd, prepareCacheFolder } from './cluster/cache-folder.ts';
import { keepCollectingDead } from './cluster/collect-dead.ts';
import { lockFolder } from './cluster/folder-lock.ts';
import { joinCluster } from './cluster/join.ts';
import { loadServerId } from './cluster/server-id.ts';
import { addressAlone } from './cluster/view.ts';
import { ClientAddresses } from './front/client-address.ts';
import { type FrontDoor, openDoor } from './front/door.ts';
import { fileOfPeer } from './front/file-of-peer.ts';
import type { RunningParts } from './front/gather-metrics.ts';
import { HeldBytes } from './front/held-bytes.ts';
import type { HttpEngine } from './front/http.ts';
import type { ServerState } from './front/metrics.ts';
import type { UsageMeter } from './front/usage-meter.ts';
import { AttemptCounts } from './identity/attempt-counts.ts';
import type { MailQueue } from './identity/mail-queue.ts';
import { loadSecrets } from './identity/secrets.ts';
import { keepSweepingClients } from './oauth/sweep-clients.ts';
import { keepTidy } from './object-store/fs-tidy.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import { openObjectStore } from './object-store/open-object-store.ts';
import { probeObjectStore } from './object-store/probe.ts';
import { createSharedCounters } from './object-store/store-counters.ts';
import type { ActorThread } from './router/actor-threads.ts';
import { RecentOwners } from './router/recent-owners.ts';
import type { ResidentThreads } from './router/worker-pool.ts';
import { billingOf, openPayments } from './server-billing.ts';
import { ServerCluster } from './server-cluster.ts';
import {
  frontComponents,
  frontOf,
  handlerOf,
  mailQueueOf,
  metricsOf,
  observersOf,
  usageWaitMs,
} from './server-front.ts';
import { withOauth } from './server-oauth.ts';
import {
  actorThreads,
  cacheFolderOf,
  computeLanes,
  type Lanes,
  type LogThread,
  leave,
  prepareImport,
  startLogThread,
} from './server-threads.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings-values.ts';
import { storeSettingsOf } from './store-settings.ts';

/**
 * The whole server, composed by hand, top to bottom: settings → store → log → membership → actors → front.
 * Stopping goes the other way: no new requests, running ones finish, actors flush, the log drains.
 */
export interface Server {
  /** Where it listens. */
  readonly url: string;
  /** Null where it was not asked for. */
  readonly metricsUrl: string | null;
  /** Resolves once everything accepted is durable and every thread has ended. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** The threads that last as long as the server. They load their code already; `startServer` gives each its task. */
  readonly threads: ResidentThreads;
  /** The HTTP server that must serve; tests say so. */
  readonly engine?: HttpEngine;
  /**
   * Another process ended this one's log: it must go, and quickly. `replaced`: because it has taken this server's place; `removed`: because
   * this server was taken for dead by another one, and may come back.
   */
  readonly onSealed: (why: 'replaced' | 'removed') => void;
  /** Nothing can be acknowledged any more: the process must end at once, with a failure's code. */
  readonly onLogDied: () => void;
  /** Native code ended the process before this one. */
  readonly afterCrash?: boolean;
}

export async function startServer(settings: Settings, options: ServerOptions): Promise<Server> {
  const logger = createLogger('front', settings.logLevel);
  boundGarbage(settings.memoryBytes);
  // Before anything is opened: a server that cannot start must not have taken over the log of one that serves.
  const plans = plansOf(settings);
  const payments = await openPayments(settings.stripe, plans, logger);
  await makeDataFolder(settings.dataDir);
  const unlockFolder = await lockFolder(settings.dataDir, {
    clock: systemClock,
    waitMs: limits.folderLockWaitMs,
  });
  const counters = createSharedCounters();
  const storeSettings = { ...storeSettingsOf(settings), counters };
  const [store, secrets, serverId] = await Promise.all([
    openObjectStore(storeSettings, systemClock, systemRandom),
    loadSecrets({ ...settings, random: systemRandom }),
    loadServerId(settings.dataDir, systemRandom),
  ]);
  // Before anything is joined: a port that is taken must not cost a log each time it is tried.
  const clientAddresses = new ClientAddresses(settings.trustedProxies);
  const { observer, requests, audit, mcp } = observersOf({ settings, secrets, clientAddresses, logger });
  const door = await openDoor(settings, options.engine ?? 'auto', logger, (answer) =>
    observer.ownAnswer(answer),
  );
  let running: RunningParts | null = null;
  let state = (): ServerState => 'joining';
  const recentOwners = new RecentOwners(systemClock);
  const held = new HeldBytes(settings.memoryBytes, systemClock, recentOwners);
  const metrics = await metricsOf(settings, {
    door,
    requests,
    mcp,
    held,
    counters,
    running: () => running,
    state: () => state(),
  });
  const watchdog = guardThreads(systemClock, 'front', {
    everyMs: limits.threadBeatMs,
    silentMsMax: limits.threadSilentMsMax,
  });
  const log = startLogThread(options.threads.log, storeSettings, settings, watchdog, options.onLogDied);
  const laneCharges = new Charges();
  const lanes = computeLanes(storeSettings, settings, { charges: laneCharges, recentOwners });
  const { router, authenticator, allowances, usageMeter, people } = frontOf({
    plans,
    secrets,
    store,
    lanes,
    recentOwners,
    isAlone: settings.peers === null,
    logger,
  });
  const { peers } = settings;
  const forget = (cached: Cached) => authenticator.forget(cached);
  const attempts = new AttemptCounts({ limits: plans.attempts, clock: systemClock });
  const cluster =
    peers && new ServerCluster({ settings, peers, serverId, store, router, forget, attempts, logger });
  // All of what may refuse the start, before anything is joined; side by side, since others wait for whoever starts again after a crash.
  await Promise.all([probeObjectStore(store, systemClock, systemRandom), cluster?.open()]);
  const joined = await joinCluster(
    { store, clock: systemClock, random: systemRandom, log: log.control, besideOthers: cluster !== null },
    serverId,
    peers?.address ?? addressAlone(settings.host, settings.port),
  );
  await log.control.open(joined.identity, joined.standing);
  logger.info('this process has its log', {
    logId: joined.identity.logId,
    replays: joined.standing.removed.length,
  });

  await prepareCacheFolder({
    folder: cacheFolderOf(settings),
    actorThreads: settings.actorThreads,
    clock: systemClock,
    log: logger,
    afterCrash: options.afterCrash ?? false,
  });
  const threads = actorThreads({
    threads: options.threads.actors,
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
  running = { threads, log: log.control, lanes: { ...lanes }, laneCharges, cluster };
  const over = new SingleFlight<string, void>();
  const onOver = () =>
    void over.run('', async () => {
      // They are about to stand still because they are asked to.
      watchdog.stop();
      const [isReplaced] = await Promise.all([cluster?.isReplaced() ?? true, leave(threads)]);
      options.onSealed(isReplaced ? 'replaced' : 'removed');
    });
  void log.control.whenSealed().then(onOver);
  cluster?.follow({ joined, threads, log: log.control, onRemoved: onOver });
  await Promise.all(threads.map((thread) => thread.start()));

  const isMine = (task: ClusterTask) => cluster?.doesTask(task) ?? true;
  const common = { store, clock: systemClock, logger };
  const stopCollecting = keepCollectingDead({
    ...common,
    log: log.control,
    isMine: () => isMine('ended-logs'),
  });
  const stopSweeping = keepSweepingClients({ ...common, isMine: () => isMine('unused-clients') });
  const stopTidying = keepStoreTidy(storeSettings, logger);

  const cacheFolder = cacheFolderOf(settings);
  const metering = { allowances, meter: usageMeter };
  const mails = mailQueueOf(settings, door.baseUrl, logger);
  const billing = billingOf(payments, { store, tenants: people.tenants, baseUrl: door.baseUrl, logger });
  const front = frontComponents({
    settings,
    door,
    plans,
    store,
    router,
    authenticator,
    people,
    billing,
    mails,
    clientAddresses,
    countAttempt: cluster?.countAttempt ?? ((ask) => attempts.take(ask)),
    metering,
    cacheFolder,
    observer,
    held,
    fileComes: (share) => prepareImport(lanes, share),
    logger,
  });
  const handler = handlerOf(front, { authenticator, metrics: mcp });
  const stopBilling = billing?.keep(() => isMine('billing')) ?? (() => {});
  door.serve(withOauth(handler, { front, people, store, secrets, audit }));
  cluster?.keep(fileOfPeer(front.files, systemClock));
  state = () => cluster?.state ?? 'active';
  const stopping = {
    door,
    mails,
    usageMeter,
    threads,
    log,
    lanes,
    cluster,
    store,
    cacheFolder,
    logger,
    stopCollecting: () => {
      stopCollecting();
      stopSweeping();
      stopBilling();
      stopTidying();
    },
  };
  return {
    url: door.url,
    metricsUrl: metrics?.url ?? null,
    async stop() {
      state = () => 'leaving';
      await stop(stopping);
      await audit.close();
      watchdog.stop();
      metrics?.close();
      billing?.close();
      unlockFolder();
    },
  };
}

async function makeDataFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    await closeToOthers(folder);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SettingsError(`TIDEBASE_DATA_DIR: ${folder} can't be made or written (${reason})`);
  }
}

/** Nothing to do for a store that is no folder of ours. */
function keepStoreTidy(settings: StoreSettings, logger: Logger): () => void {
  if (settings.kind !== 'fs') return () => {};
  const { folder } = settings;
  return keepTidy({
    folder,
    clock: systemClock,
    random: systemRandom,
    logger,
    everyMs: limits.folderTidyEveryMs,
  });
}

function plansOf({ plansFile }: Settings): Plans {
  return plansFile === null ? builtInPlans : parsePlans(readPlansFile(plansFile));
}

function readPlansFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new PlansError(`the plans file ${file} cannot be read: ${describeError(cause)}`, { cause });
  }
}

/** How often a stopping server looks whether its last requests have ended. */
const drainLookMs = 20;

async function stop(parts: {
  door: FrontDoor;
  usageMeter: UsageMeter;
  mails: MailQueue;
  threads: readonly ActorThread[];
  log: LogThread;
  lanes: Lanes;
  cluster: ServerCluster | null;
  store: ObjectStore;
  cacheFolder: string;
  logger: Logger;
  stopCollecting: () => void;
}): Promise<void> {
  const { door, threads, log, lanes, cluster, store, cacheFolder, logger } = parts;
  parts.stopCollecting();
  await cluster?.flushBeforeLeave();
  door.stopListening();
  // What it is still asked goes to others from here on.
  await cluster?.leave();
  const until = systemClock.monotonic() + limits.drainMs;
  while (door.inFlight() > 0 && systemClock.monotonic() < until) await systemClock.sleep(drainLookMs);
  await settledWithin(systemClock, parts.usageMeter.flush(), usageWaitMs);
  // What a mail is made of may still have to be read from the store, and nobody waits for the mail.
  await Promise.all([parts.mails.stop(), ...threads.map((thread) => thread.drainNamespaces())]);
  await Promise.all(threads.map((thread) => thread.drain()));
  await log.control.drain();
  await cluster?.end();
  await door.close();
  await Promise.all(threads.map((thread) => thread.end()));
  await Promise.all([...Object.values(lanes).map((lane) => lane.end()), log.end()]);
  cluster?.close();
  await store.close();
  await noteCacheEnd(cacheFolder);
  logger.info('drained');
}
