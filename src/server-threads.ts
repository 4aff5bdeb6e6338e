/** The server's other threads, as server.ts starts them: the log's, the compute lanes, the actors'. */
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { limits } from '../protocol/limits.ts';
import type {
  ComputeThreadData,
  HashThreadData,
  LogControl,
  LogWorkerTask,
  PrepareTask,
  StoreSettings,
} from '../protocol/worker-tasks.ts';
import type { Plans } from './accounts/plans.ts';
import type { Charges } from './base/charges.ts';
import { systemClock } from './base/clock.ts';
import { type Remote, wrapControl } from './base/control.ts';
import { createLogger, describeError, type Logger } from './base/log.ts';
import { settledWithin } from './base/settled-within.ts';
import type { Share } from './base/share.ts';
import { askToStandStill } from './base/stand-still.ts';
import { createPulse, keepBeating, type Watchdog } from './base/watchdog.ts';
import { scratchFolderOf } from './cluster/cache-folder.ts';
import type { Joined } from './cluster/join.ts';
import type { Secrets } from './identity/secrets.ts';
import { ActorThread } from './router/actor-threads.ts';
import { ComputeLane } from './router/compute-lane.ts';
import type { RecentOwners } from './router/recent-owners.ts';
import type { Router } from './router/router.ts';
import { type ResidentThread, TaskPool, workerEntries } from './router/worker-pool.ts';
import type { Settings } from './settings.ts';

export function cacheFolderOf({ dataDir }: Settings): string {
  return join(dataDir, 'cache');
}

/**
 * How long threads may take to end where another process has taken this server's place, in milliseconds. It must be left at once, and
 * what the caches have under way would end the process by a signal.
 */
const leaveMsMax = 100;
/** How long threads get to stand still, in milliseconds: each hears of it at the end of its turn. */
const standStillMs = 50;

export async function leave(threads: readonly ActorThread[]): Promise<void> {
  const left = Promise.all(threads.map((thread) => thread.leave()));
  await settledWithin(systemClock, left, leaveMsMax);
  askToStandStill();
  await systemClock.sleep(standStillMs);
}

export interface LogThread {
  readonly control: Remote<LogControl>;
  /** Ends the thread, after it was drained and, where other servers go on, its log was sealed. */
  end(): Promise<void>;
}

/** `onDied`: the process must end, and may not wait for its other threads, which native code can hold for ever. */
export function startLogThread(
  thread: ResidentThread,
  store: StoreSettings,
  settings: Settings,
  watchdog: Watchdog,
  onDied: () => void,
): LogThread {
  const control = new MessageChannel();
  const [pulse, mainPulse] = [createPulse(), createPulse()];
  const stopBeating = keepBeating(systemClock, mainPulse, limits.threadBeatMs);
  const stopWatching = watchdog.watch('log', pulse);
  const task: LogWorkerTask = {
    control: control.port2,
    pulse,
    mainPulse,
    store,
    besideOthers: settings.peers !== null,
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
      onDied();
    });
  const remote = wrapControl<LogControl>(control.port1);
  return {
    control: remote,
    async end() {
      ending = true;
      await settledWithin(systemClock, Promise.all([remote.end(), running]), logEndMsMax);
      await thread.end();
      stopBeating();
    },
  };
}

/** A drained log thread has only its store to close. */
const logEndMsMax = 5_000;

export interface Lanes {
  readonly parse: ComputeLane;
  readonly build: ComputeLane;
  readonly merge: ComputeLane;
  readonly graph: ComputeLane;
  readonly match: ComputeLane;
  readonly scan: ComputeLane;
  readonly embed: ComputeLane;
  readonly model: ComputeLane;
  readonly import: ComputeLane;
  readonly importHelp: ComputeLane;
  readonly importBuild: ComputeLane;
  readonly hash: ComputeLane;
}

/**
 * How far they step back where the cores are busy, so that reads hardly feel them. Writers wait no less, but for flushes. Not further:
 * a thread that the kernel lets wait for long may hold a lock, and places rest besides (`compute-lane.ts`).
 */
const backgroundSteps = {
  parse: 6,
  build: 9,
  merge: 9,
  graph: 9,
  match: 9,
  scan: 9,
  model: 6,
  import: 9,
  hash: 10,
};

/** `charges`: where the lanes add up what their tasks have used. `recentOwners`: for whom their places rest. */
export function computeLanes(
  store: StoreSettings,
  settings: Settings,
  { charges, recentOwners }: { readonly charges: Charges; readonly recentOwners: RecentOwners },
): Lanes {
  const { computeThreads, memoryBytes, embeddingBaseUrls } = settings;
  const scratchFolder = scratchFolderOf(cacheFolderOf(settings));
  const onUsed = (share: Share, cpuMs: number) => charges.charge(share, cpuMs);
  const lane = (
    steps: number,
    threads: number,
    more: {
      queueMax?: number;
      tenantQueueMax?: number;
      tasksPerThread?: number;
      endsBetweenTasks?: true;
    } = {},
  ) => {
    const { queueMax = limits.laneWaitingMax, tenantQueueMax = limits.laneWaitingOfTenantMax } = more;
    const { tasksPerThread = 1, endsBetweenTasks = false } = more;
    const data: Omit<ComputeThreadData, 'ending'> = {
      store,
      scratchFolder,
      embeddingBaseUrls,
      backgroundSteps: steps,
      processMemoryBytes: memoryBytes,
    };
    const entry = workerEntries.compute;
    const pool = new TaskPool({ entry, threads, data, tasksPerThread, endsBetweenTasks });
    const rests = steps > 0 ? recentOwners : null;
    return new ComputeLane({
      pool,
      clock: systemClock,
      queueMax,
      tenantQueueMax,
      onUsed,
      recentOwners: rests,
    });
  };
  // No owner has all threads of a lane: with one more than there are cores, each still has as many as there are.
  const shared = computeThreads + 1;
  const embeddings = {
    queueMax: limits.embeddingsWaitingMax,
    tenantQueueMax: limits.embeddingsWaitingOfTenantMax,
  };
  return {
    parse: lane(backgroundSteps.parse, shared),
    build: lane(backgroundSteps.build, shared),
    merge: lane(backgroundSteps.merge, Math.ceil(computeThreads / 2) + 1),
    // One at a time: each holds a graph in memory.
    graph: lane(backgroundSteps.graph, 1, { endsBetweenTasks: true }),
    match: lane(backgroundSteps.match, shared, {
      queueMax: limits.matchesWaitingMax,
      tenantQueueMax: limits.matchesWaitingOfTenantMax,
    }),
    // Beside its actor, a scan has the other cores. A task takes two milliseconds: the next one is at its thread already.
    scan: lane(backgroundSteps.scan, Math.max(1, computeThreads - 1), {
      queueMax: limits.scansWaitingMax,
      tenantQueueMax: limits.scansWaitingOfTenantMax,
      tasksPerThread: 4,
    }),
    embed: lane(0, 1, { ...embeddings, tasksPerThread: 2 * limits.embeddingsInFlightMax }),
    model: lane(backgroundSteps.model, 1, { ...embeddings, endsBetweenTasks: true }),
    // A file is read by one thread, by a second one where that is idle, and another makes its segment.
    import: lane(backgroundSteps.import, limits.importsRunningMax),
    importHelp: lane(backgroundSteps.import, 1, computeThreads < 2 ? { queueMax: 0 } : {}),
    importBuild: lane(backgroundSteps.import, limits.importsRunningMax),
    hash: new ComputeLane({
      pool: new TaskPool({
        entry: workerEntries.hash,
        threads: 1,
        data: { backgroundSteps: backgroundSteps.hash } satisfies HashThreadData,
        tasksPerThread: 1,
      }),
      clock: systemClock,
      queueMax: limits.passwordsAtOnceMax - 1,
      tenantQueueMax: limits.passwordsAtOnceMax - 1,
      onUsed,
      // Somebody waits for it to sign in, and few may wait.
      recentOwners: null,
    }),
  };
}

/** Has the threads ready that import a file, while it is still on its way: to start them takes as long as to read some megabytes. */
export function prepareImport(
  lanes: Pick<Lanes, 'import' | 'importHelp' | 'importBuild'>,
  share: Share,
): void {
  const prepare = (next: PrepareTask['next']): PrepareTask => ({ task: 'prepare', next });
  lanes.import.prepare(prepare('read-import'), share);
  lanes.importHelp.prepare(prepare('read-import'), share);
  lanes.importBuild.prepare(prepare('build-import'), share);
}

/**
 * The part of TIDEBASE_MEMORY_BYTES that the actors keep. The rest is for what is on its way, which belongs to no actor: bodies on
 * the front and in the compute lanes, records in the log's queue, and buffers that no thread has collected yet.
 */
const residentShare = 0.5;

export function actorThreads(parts: {
  threads: readonly ResidentThread[];
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
  const count = parts.threads.length;
  return parts.threads.map(
    (thread, index) =>
      new ActorThread({
        thread,
        index,
        count,
        settings: {
          store: storeSettings,
          identity: joined.identity,
          besideOthers: settings.peers !== null,
          predecessors: joined.predecessors,
          cacheFolder: cacheFolderOf(settings),
          scratchFolder: scratchFolderOf(cacheFolderOf(settings)),
          standing: joined.standing,
          cacheBytes: Math.floor(settings.cacheBytes / count),
          memoryBytes: Math.floor((settings.memoryBytes * residentShare) / count),
          processMemoryBytes: settings.memoryBytes,
          plans,
          hasPayments: settings.stripe !== null,
          cursorKeys: secrets.cursorKeys,
          keyEncryptionKeys: secrets.keyEncryptionKeys,
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
