/**
 * `npm run measure -- ingest`: documents of 1 KB in batches of 1,000 from 16 connections into one namespace on the fs store, with an
 * open loop of document reads beside them. Ends with 1 where a bar is missed.
 *
 * The reads ask for a thousand documents that were written first and were read before: they begin in the memtable, move to
 * a segment with the first flush, and to another with each compaction. `TIDEBASE_…` settings of whoever starts this are not
 * the server's; `--seconds=N` measures for that long, `--cpu-prof=FOLDER` has the server write a profile of each of its threads there.
 */
import { bodyWriters } from './body-writers.ts';
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { latencyText, type OpenLoopResult, percentile, runOpenLoop } from './open-loop.ts';
import { numberOption, textOption } from './options.ts';
import { threadCpu, treeCpuSeconds } from './processes.ts';
import {
  type CountsByKind,
  putsTable,
  readStoreCounts,
  totalCounts,
  whenSegmentsRest,
} from './store-counts.ts';
import { textDocumentBytes, textDocumentId } from './text-batches.ts';

const connections = 16;
const batchDocuments = 1_000;
const warmUpSeconds = isQuick ? 2 : 10;
const seconds = numberOption('seconds', isQuick ? 5 : 60);
const readsPerSecond = 200;
const readConnections = 64;
const readDocuments = 1_000;
const readEvery = 10;
const namespace = 'ingest';
const path = `/v1/namespaces/${namespace}/docs`;

/** `mbPerSecondIndexed`: what is asked where every segment has its text index. Both bars are said until it has. */
const bars = { mbPerSecond: 25, mbPerSecondIndexed: 10, mbPerSecondAim: 40, readP99Ms: 25, putRatio: 4 };

await judged(async (judge) => {
  const profileFolder = textOption('cpu-prof');
  const nodeArguments =
    profileFolder === null
      ? []
      : ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${profileFolder}`];
  const server = await startMeasured({ nodeArguments });
  const run = await ingest(server);
  tellRates(judge, run);
  tellReads(judge, run.reads);
  await whenSegmentsRest(server.process);
  const counts = await readStoreCounts(server.process);
  await tellPuts(judge, server, { counts, documents: run.documentsInAll, seconds: run.secondsInAll });
});

interface Run {
  /** Acknowledged in each second of the measured time. */
  readonly documentsBySecond: readonly number[];
  readonly documentsInAll: number;
  readonly secondsInAll: number;
  readonly busy: number;
  readonly writeLatenciesMs: readonly number[];
  readonly reads: OpenLoopResult;
  readonly serverCpuSeconds: number;
  readonly ownCpuSeconds: number;
  readonly threads: readonly string[];
}

async function ingest(server: MeasuredServer): Promise<Run> {
  const { process: child, key } = server;
  const beganAt = performance.now();
  const writers = bodyWriters({ url: child.url, key, connections, batchDocuments }, () => path);
  const firstDocuments = readDocuments * readEvery;
  while (writers.documents < firstDocuments) await sleep(50);
  await sleep(warmUpSeconds * 1_000);
  const paths = Array.from(
    { length: readDocuments },
    (_, i) => `${path}/${textDocumentId((i * 7_919 * readEvery) % firstDocuments)}`,
  );
  const warm = new Connections(child.url, key, 1);
  for (const each of paths) await warm.get(each);
  warm.close();

  const cpuBefore = [treeCpuSeconds(child.processId), ownCpuSeconds(), threadCpu(child.processId)] as const;
  writers.resetLatencies();
  const reading = runOpenLoop({
    url: child.url,
    key,
    paths,
    ratePerSecond: readsPerSecond,
    seconds,
    connections: readConnections,
  });
  const documentsBySecond: number[] = [];
  const startedAt = performance.now();
  for (let second = 1, before = writers.documents; second <= seconds; second++) {
    await sleep(startedAt + second * 1_000 - performance.now());
    documentsBySecond.push(writers.documents - before);
    before = writers.documents;
  }
  const cpuAfter = [treeCpuSeconds(child.processId), ownCpuSeconds(), threadCpu(child.processId)] as const;
  const reads = await reading;
  await writers.stop();
  return {
    documentsBySecond,
    documentsInAll: writers.documents,
    secondsInAll: (performance.now() - beganAt) / 1_000,
    busy: writers.busy,
    writeLatenciesMs: writers.latenciesMs,
    reads,
    serverCpuSeconds: cpuAfter[0] - cpuBefore[0],
    ownCpuSeconds: cpuAfter[1] - cpuBefore[1],
    threads: busyThreads(cpuBefore[2], cpuAfter[2]),
  };
}

function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function busyThreads(before: ReturnType<typeof threadCpu>, after: ReturnType<typeof threadCpu>): string[] {
  const usedBefore = new Map(before.map(({ threadId, seconds: used }) => [threadId, used]));
  return after
    .map(({ threadId, name, seconds: used }, i) => ({
      name: `${name} ${i}`,
      used: used - (usedBefore.get(threadId) ?? 0),
    }))
    .filter(({ used }) => used / seconds > 0.01)
    .toSorted((a, b) => b.used - a.used)
    .map(({ name, used }) => `${name}: ${Math.round((used / seconds) * 100)} %`);
}

function tellRates({ tell, say }: Judge, run: Run): void {
  const toMb = (documents: number) => (documents * textDocumentBytes) / 1e6;
  const sum = run.documentsBySecond.reduce((all, documents) => all + documents, 0);
  const rate = toMb(sum) / seconds;
  const perSecond = run.documentsBySecond.map(toMb).toSorted((a, b) => a - b);
  const at = (share: number) => percentile(perSecond, share).toFixed(1);
  tell({
    name: `ingest, ${seconds} s, ${connections} connections`,
    value: `${rate.toFixed(1)} MB/s`,
    bar: `≥ ${bars.mbPerSecond}`,
    ok: rate >= bars.mbPerSecond,
    note:
      `aim ${bars.mbPerSecondAim}; with text indexes ≥ ${bars.mbPerSecondIndexed} ${rate >= bars.mbPerSecondIndexed ? 'holds' : 'is MISSED'}; ` +
      `${Math.round(sum / seconds)} documents a second of ${textDocumentBytes} bytes; single seconds ` +
      `${at(0)} to ${at(1)}, median ${at(0.5)}; batches: ${latencyText(run.writeLatenciesMs)}; ${run.busy} answers of 429`,
  });
  const cpuMs = ((run.serverCpuSeconds * 1_000) / toMb(sum)).toFixed(0);
  say(
    `    processor: ${cpuMs} ms of the server for each MB; server ${Math.round((run.serverCpuSeconds / seconds) * 100)} %, load generator ` +
      `${Math.round((run.ownCpuSeconds / seconds) * 100)} % of a core; the server's threads: ${run.threads.join(', ')}`,
  );
}

function tellReads({ tell }: Judge, { latenciesMs, startedAtS, failures }: OpenLoopResult): void {
  const p99 = percentile(latenciesMs, 0.99);
  const slow = startedAtS.filter((_, i) => (latenciesMs[i] ?? 0) > bars.readP99Ms);
  const slowSeconds = new Set(slow.map((at) => Math.floor(at))).size;
  tell({
    name: `warm reads beside it, ${readsPerSecond} a second`,
    value: `p99 ${p99.toFixed(1)} ms`,
    bar: `≤ ${bars.readP99Ms} ms`,
    ok: p99 <= bars.readP99Ms && failures === 0,
    note:
      `${latencyText(latenciesMs)}; ${slow.length} of ${latenciesMs.length} over the bar, in ${slowSeconds} of ${seconds} ` +
      `seconds; ${failures} failed`,
  });
}

async function tellPuts(
  { tell, say }: Judge,
  server: MeasuredServer,
  all: { readonly counts: CountsByKind; readonly documents: number; readonly seconds: number },
): Promise<void> {
  const written = all.documents * textDocumentBytes;
  const ratio = totalCounts(all.counts).putBytes / written;
  // Stopping flushes what is in memory; what the namespace takes is then its segments and its manifest.
  const again = await restartMeasured(server);
  const client = new Connections(again.process.url, again.key, 1);
  const described = JSON.parse(await client.get(`/v1/namespaces/${namespace}`)) as { stored_bytes: number };
  client.close();
  await again.process.stop();
  const segmentBytes = all.counts.get('ns/segment')?.putBytes ?? 0;
  tell({
    name: 'bytes PUT for each byte written',
    value: ratio.toFixed(2),
    bar: `≤ ${bars.putRatio}`,
    ok: ratio <= bars.putRatio,
    note:
      `${(written / 1e6).toFixed(0)} MB of documents in ${all.seconds.toFixed(0)} s with warm-up; they take ` +
      `${(described.stored_bytes / 1e6).toFixed(0)} MB in the store (${(described.stored_bytes / written).toFixed(2)} of their text); ` +
      `each byte of a segment was written ${(segmentBytes / described.stored_bytes).toFixed(2)} times (once by its flush)`,
  });
  for (const line of putsTable(all.counts, all.seconds)) say(line);
}
