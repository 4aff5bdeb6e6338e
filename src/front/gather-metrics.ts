import { temperatures } from '../../protocol/document.ts';
import { wireVersion } from '../../protocol/version.ts';
import type { ActorStatistics, LogControl, LogStatistics } from '../../protocol/worker-tasks.ts';
import {
  type ChargedMs,
  type Charges,
  type CpuShares,
  nothingCharged,
  type ShareKind,
  type ThreadTime,
} from '../base/charges.ts';
import type { Clock } from '../base/clock.ts';
import type { Remote } from '../base/control.ts';
import { counter, exposition, type Family, gauge, type Sample, summary } from '../base/exposition.ts';
import { busySeconds, processFamilies, type TurnDelays } from '../base/process-load.ts';
import { threadCpuMs } from '../base/thread-cpu.ts';
import { type KindOfCalls, readCounters, type SharedCounters } from '../object-store/store-counters.ts';
import type { ActorThread } from '../router/actor-threads.ts';
import type { ComputeLane } from '../router/compute-lane.ts';
import type { McpMetrics } from './mcp/mcp-metrics.ts';
import type { RequestMetrics } from './request-metrics.ts';

export interface MetricsSources {
  readonly clock: Clock;
  readonly requests: RequestMetrics;
  readonly mcp: McpMetrics;
  readonly bounds: { readonly memoryBytes: number; readonly cacheBytes: number };
  /** Requests that were admitted and not answered yet. */
  readonly inFlight: () => number;
  /** What bodies and answers on their way hold. */
  readonly heldBytes: () => number;
  readonly engine: string;
  readonly counters: SharedCounters;
  readonly turnDelays: TurnDelays;
  /** Whose the front thread's time was, and that of threads that only Node knows. */
  readonly cpuShares: { readonly front: CpuShares; readonly others: CpuShares };
  /** What there is once the server has started. */
  readonly running: () => RunningParts | null;
}

export interface RunningParts {
  readonly threads: readonly ActorThread[];
  readonly log: Remote<LogControl>;
  readonly lanes: Readonly<Record<string, ComputeLane>>;
  readonly laneCharges: Charges;
  /** Null for a server that is alone. */
  readonly cluster: { families(): readonly Family[] } | null;
}

/** A thread that does long work, or restarts, is left out of a scrape and not waited for: scrapers give up after ten seconds. */
const threadAnswerMsMax = 2_000;

/** All that `/metrics` tells, gathered when it is asked for: whoever counts has no more to do than to count. */
export async function gatherMetrics(sources: MetricsSources): Promise<string> {
  const running = sources.running();
  const within = <T>(answer: Promise<T>) => answerWithin(sources.clock, answer, threadAnswerMsMax);
  const [threads, log, process] = await Promise.all([
    Promise.all((running?.threads ?? []).map((thread) => within(thread.statistics()))),
    running === null ? null : within(running.log.statistics()),
    processFamilies(),
  ]);
  return exposition([
    ...aboutFamilies(sources),
    ...sources.requests.families(),
    ...sources.mcp.families(),
    gauge('tidebase_requests_in_flight', 'Requests that are being worked on', sources.inFlight()),
    gauge('tidebase_front_held_bytes', 'What bodies and answers on their way hold', sources.heldBytes()),
    ...threadFamilies(threads, log),
    ...shareFamilies(sources, { threads, log, lanes: running?.laneCharges.ms ?? nothingCharged }),
    ...logFamilies(log),
    ...laneFamilies(running?.lanes ?? {}),
    ...storeFamilies(readCounters(sources.counters)),
    ...(running?.cluster?.families() ?? []),
    ...process,
  ]);
}

/** Null where it fails or takes longer. */
async function answerWithin<T>(clock: Clock, answer: Promise<T>, ms: number): Promise<T | null> {
  let cancel = () => {};
  const late = new Promise<null>((resolve) => {
    cancel = clock.after(ms, () => resolve(null));
  });
  const first = await Promise.race([answer.catch(() => null), late]);
  cancel();
  return first;
}

function aboutFamilies({ engine, turnDelays, bounds }: MetricsSources): Family[] {
  const labels = { version: wireVersion, node: process.versions.node, http: engine };
  return [
    gauge('tidebase_build_info', 'What runs: version of the interface, Node, HTTP server', [
      { labels, value: 1 },
    ]),
    gauge('tidebase_memory_limit_bytes', 'TIDEBASE_MEMORY_BYTES, or its default', bounds.memoryBytes),
    gauge('tidebase_cache_limit_bytes', 'TIDEBASE_CACHE_BYTES, or its default', bounds.cacheBytes),
    summary(
      'tidebase_front_turn_delay_seconds',
      'How late turns of the front thread came; quantiles since the last scrape, 1 is the latest',
      turnDelays.take(),
    ),
  ];
}

type Threads = readonly (ActorStatistics | null)[];

function threadFamilies(threads: Threads, log: LogStatistics | null): Family[] {
  const each = (value: (statistics: ActorStatistics) => number): Sample[] =>
    threads.flatMap((statistics, index) =>
      statistics === null ? [] : [{ labels: { thread: `actor-${index}` }, value: value(statistics) }],
    );
  const sum = (value: (statistics: ActorStatistics) => number): number =>
    threads.reduce((total, statistics) => total + (statistics === null ? 0 : value(statistics)), 0);
  const busy = [
    { labels: { thread: 'front' }, value: busySeconds() },
    ...each((statistics) => statistics.busySeconds),
    ...(log === null ? [] : [{ labels: { thread: 'log' }, value: log.busySeconds }]),
  ];
  const resident = threads.flatMap((statistics, index) =>
    Object.entries(statistics?.residentBytesBy ?? {}).map(([kind, value]) => ({
      labels: { thread: `actor-${index}`, kind },
      value,
    })),
  );
  const up = threads.map((statistics, index) => ({
    labels: { thread: `actor-${index}` },
    value: statistics === null ? 0 : 1,
  }));
  return [
    gauge('tidebase_thread_up', 'Whether an actor thread has answered this scrape in time', up),
    counter('tidebase_thread_busy_seconds_total', 'Time in which a thread waited for nothing', busy),
    gauge(
      'tidebase_open_namespaces',
      'Namespaces that are open',
      each((of) => of.openNamespaces),
    ),
    gauge(
      'tidebase_open_tenants',
      'Tenants that are open',
      each((of) => of.openTenants),
    ),
    counter(
      'tidebase_evictions_total',
      'Actors put away because memory, or the number of open ones, asked for it',
      each((of) => of.evictions),
    ),
    gauge('tidebase_resident_bytes', 'What actors hold in memory, by what it is', resident),
    counter('tidebase_blocks_read_total', 'Stored blocks that were not in memory, by where they were found', [
      { labels: { from: 'disk' }, value: sum(({ blocks }) => blocks.fromDisk) },
      { labels: { from: 'store' }, value: sum(({ blocks }) => blocks.fromStore) },
    ]),
    counter(
      'tidebase_namespaces_found_total',
      'Reads by where their namespace was found: in memory, on the local disk, or in the object store',
      temperatures.map((temperature) => ({
        labels: { temperature },
        value: sum(({ foundAs }) => foundAs[temperature]),
      })),
    ),
    gauge(
      'tidebase_copies_open',
      'Copies of namespaces whose owners are out of reach, for eventual reads',
      each(({ copies }) => copies.open),
    ),
    counter(
      'tidebase_stale_reads_total',
      'Eventual reads that a copy has answered',
      sum(({ copies }) => copies.reads),
    ),
    counter(
      'tidebase_stale_reads_age_seconds_total',
      'How old those answers were together',
      sum(({ copies }) => copies.ageMs) / 1_000,
    ),
    gauge(
      'tidebase_cache_bytes',
      'What the cache on the local disk holds',
      each(({ cache }) => cache.bytes),
    ),
    gauge(
      'tidebase_cache_up',
      'Whether the cache on the local disk is in use; a disk that fails, or is full, turns it off',
      each(({ cache }) => (cache.serving ? 1 : 0)),
    ),
    gauge(
      'tidebase_vectors_indexed',
      'Vectors of open namespaces that graphs find',
      sum(({ vectors }) => vectors.indexed),
    ),
    gauge(
      'tidebase_vectors_waiting',
      'Vectors of open namespaces whose graphs are not built yet: they are searched one by one',
      sum(({ vectors }) => vectors.waiting),
    ),
  ];
}

/** Whose shares paid for what the process did: what no request or task was charged with is divided as its thread's requests were. */
function shareFamilies(
  { requests, cpuShares }: MetricsSources,
  from: { readonly threads: Threads; readonly log: LogStatistics | null; readonly lanes: ChargedMs },
): Family[] {
  const charged = new Map<string, ChargedMs>([
    [
      'front',
      cpuShares.front.divide({
        cpuMs: threadCpuMs(),
        busyMs: busySeconds() * 1_000,
        charged: nothingCharged,
        parts: { ...requests.byShare },
      }),
    ],
    ['lanes', from.lanes],
  ]);
  if (from.log !== null) charged.set('log', { ...nothingCharged, tenants: from.log.cpuMs });
  from.threads.forEach((statistics, index) => {
    if (statistics !== null) charged.set(`actor-${index}`, statistics.chargedMs);
  });
  // Where a thread has not answered, its time would be taken for theirs.
  if (from.log !== null && !from.threads.includes(null))
    charged.set('others', cpuShares.others.divide(timeOfOthers([...charged.values()])));
  const seconds = [...charged].flatMap(([thread, byShare]) =>
    Object.entries(byShare).map(([share, ms]) => ({ labels: { thread, share }, value: ms / 1_000 })),
  );
  const longest = from.threads.flatMap((statistics, index) => {
    if (statistics === null) return [];
    const { ms, cause } = statistics.longestTurn;
    return [{ labels: { thread: `actor-${index}`, cause }, value: ms / 1_000 }];
  });
  return [
    counter(
      'tidebase_share_cpu_seconds_total',
      'CPU time that shares were charged with, by thread and whose they are',
      seconds,
    ),
    gauge(
      'tidebase_longest_turn_seconds',
      'The longest stretch of a thread without a yield since the last scrape, and what it was',
      longest,
    ),
  ];
}

/** What Node's own threads do for all others, collecting garbage, compiling and calling the disk: divided as the time of those is. */
function timeOfOthers(told: readonly ChargedMs[]): ThreadTime {
  const { user, system } = process.cpuUsage();
  const sum = (kind: ShareKind) => told.reduce((ms, charged) => ms + charged[kind], 0);
  const charged = { tenants: sum('tenants'), nobody: sum('nobody'), upkeep: sum('upkeep') };
  const toldMs = charged.tenants + charged.nobody + charged.upkeep;
  return { cpuMs: (user + system) / 1_000 - toldMs, busyMs: toldMs, charged, parts: nothingCharged };
}

function logFamilies(log: LogStatistics | null): Family[] {
  if (log === null) return [];
  return [
    counter('tidebase_log_records_total', 'Records that became durable in the log', log.records),
    counter('tidebase_log_record_bytes_total', 'Bytes of records that became durable', log.recordBytes),
    counter('tidebase_log_groups_total', 'Objects that records went into together', log.groups),
    gauge('tidebase_log_waiting_bytes', 'Bytes of records that are not durable yet', log.waitingBytes),
    gauge('tidebase_log_above_floor_bytes', 'What a restart would read of the log', log.aboveFloorBytes),
    counter(
      'tidebase_cluster_handovers_total',
      'How often data has come from other servers',
      log.handOvers.count,
    ),
    counter(
      'tidebase_cluster_handover_seconds_total',
      'How long it took until such data could be opened, all together',
      log.handOvers.seconds,
    ),
  ];
}

function laneFamilies(lanes: Readonly<Record<string, ComputeLane>>): Family[] {
  const waiting = Object.entries(lanes).map(([lane, { waiting: value }]) => ({ labels: { lane }, value }));
  return [gauge('tidebase_lane_waiting_tasks', 'Tasks that wait for a compute thread, by lane', waiting)];
}

const storeMetrics: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (calls: KindOfCalls) => number;
}[] = [
  { name: 'puts', help: 'PUTs of objects, refused ones included', value: ({ puts }) => puts },
  { name: 'put_bytes', help: 'Bytes that PUTs carried', value: ({ putBytes }) => putBytes },
  { name: 'gets', help: 'GETs of objects and of parts of them', value: ({ gets }) => gets },
  { name: 'deletes', help: 'Deleted objects', value: ({ deletes }) => deletes },
  { name: 'lists', help: 'Pages of listings', value: ({ lists }) => lists },
  {
    name: 'failures',
    help: 'Calls that failed; whoever made them may have made them again',
    value: ({ failures }) => failures,
  },
];

/** Calls of the object store by kind of object. */
export function storeFamilies(kinds: readonly KindOfCalls[]): Family[] {
  return storeMetrics.map(({ name, help, value }) =>
    counter(
      `tidebase_store_${name}_total`,
      help,
      kinds.map((calls) => ({ labels: { kind: calls.kind }, value: value(calls) })),
    ),
  );
}
