/**
 * `npm run measure -- branches`: how long a branch takes of a namespace of 1,000 documents and of one of millions, in turn, in one run,
 * while both are written to. Told apart: branches as fast as they come, which spend what the log allows of groups before their time; a
 * branch that has a full memtable to flush first; what a branch costs of PUTs; and the first read of a branch. With `--far` the store is a
 * real S3 server behind 30 ms each way. Ends with 1 where a bar is missed.
 *
 *   --documents=4000000 --branches=40 --commit-ms=250 --threads=1 --far
 */
import { once } from 'node:events';
import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { limits } from '../protocol/limits.ts';
import { thousands } from './bench-report.ts';
import { startFarStore } from './cold-server.ts';
import { importFile } from './import-file.ts';
import { isQuick, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import { numberOption } from './options.ts';
import { temporaryFolder } from './server.ts';
import { readStoreCounts, totalCounts, whenSegmentsRest } from './store-counts.ts';

const documents = numberOption('documents', isQuick ? 50_000 : 4_000_000);
const branches = numberOption('branches', isQuick ? 10 : 40);
const isFar = process.argv.includes('--far');
const p50Ms = isFar ? 440 : 50;
const settings = {
  TIDEBASE_COMMIT_MS: String(numberOption('commit-ms', 250)),
  TIDEBASE_ACTOR_THREADS: String(numberOption('threads', 1)),
};
/** How much slower the large one may be. */
const ratioMax = 1.2;
const rowsPerFile = 1_000_000;
/** Bytes of documents that wait in memory: nearly a whole memtable. */
const memtableBytes = 30e6;
const flushesMeasured = 3;
const writeEveryMs = 50;
/** A branch begins so often: no oftener than one owner may have a group of the log early. */
const branchEveryMs = 1_000 / limits.earlyGroupsOfOwnerPerSecond;
const branchesInARow = 40;
const branchesCounted = 10;
const namespaces = [
  { name: 'small', documents: 1_000 },
  { name: 'large', documents },
] as const;

await judged(async ({ say, tell }) => {
  const far = isFar ? await startFarStore() : null;
  let server = await startMeasured({ env: { ...far?.nearEnv, ...settings } });
  for (const namespace of namespaces) await fill(server, namespace);
  await whenSegmentsRest(server.process);
  say(
    `${namespaces.map(({ name, documents: count }) => `${name} ${thousands(count)}`).join(', ')} documents, ` +
      `groups of the log every ${settings.TIDEBASE_COMMIT_MS} ms, ${settings.TIDEBASE_ACTOR_THREADS} actor threads\n`,
  );
  if (far !== null) server = await restartMeasured(server, { env: { ...far.farEnv, ...settings } });
  const client = new Connections(server.process.url, server.key, 4);
  const post = (path: string, body: object) =>
    client.post(`/v1/namespaces/${path}`, Buffer.from(JSON.stringify(body)));
  for (const { name } of namespaces) await post(`${name}/count`, { q: 'harbour 7 ' });
  const branchOf = async (name: string, source: string) => {
    const beganAt = performance.now();
    await post(`${name}/branch`, { source });
    return performance.now() - beganAt;
  };

  const putsBefore = totalCounts(await readStoreCounts(server.process)).puts;
  for (let at = 0; at < branchesCounted; at++) await branchOf(`counted-${at}`, 'large');
  const puts = totalCounts(await readStoreCounts(server.process)).puts - putsBefore;
  tell({
    name: 'PUTs of a branch',
    value: (puts / branchesCounted).toFixed(1),
    note: 'two manifests, and a group of the log; nothing else was written',
  });

  let writes = 0;
  let isOver = false;
  const writing = namespaces.map(async ({ name }) => {
    for (; !isOver; writes++) {
      await post(`${name}/docs`, { docs: [{ id: `w${writes % 500}`, text: `written ${writes}` }] });
      await sleep(writeEveryMs);
    }
  });
  const tookMs = { small: [] as number[], large: [] as number[] };
  let nextMs = performance.now();
  for (let at = 0; at < branches; at++)
    // In turn, each as often before the other as after it.
    for (const { name } of at % 2 === 0 ? namespaces : namespaces.toReversed()) {
      // At any moment of the time between two groups.
      await sleep(nextMs + Math.random() * (branchEveryMs / 2) - performance.now());
      nextMs = Math.max(nextMs + branchEveryMs, performance.now());
      tookMs[name].push(await branchOf(`${name}-${at}`, name));
    }
  const p50 = (latencies: readonly number[]) => percentile(latencies, 0.5);
  for (const { name } of namespaces)
    tell({
      name: `branch of ${name}`,
      value: `p50 ${p50(tookMs[name]).toFixed(1)} ms`,
      bar: `≤ ${p50Ms} ms`,
      ok: p50(tookMs[name]) <= p50Ms,
      note: latencyText(tookMs[name]),
    });
  const ratio = p50(tookMs.large) / p50(tookMs.small);
  tell({
    name: 'large against small',
    value: ratio.toFixed(2),
    bar: `≤ ${ratioMax}`,
    ok: ratio <= ratioMax,
    note: `${writes} writes went on beside them`,
  });
  const inARow: number[] = [];
  for (let at = 0; at < branchesInARow; at++) inARow.push(await branchOf(`row-${at}`, 'large'));
  tell({
    name: `${branchesInARow} branches in a row`,
    value: `p50 ${p50(inARow).toFixed(1)} ms`,
    note: `${latencyText(inARow)}; past ${limits.earlyGroupsOfOwnerAtOnceMax}, most wait for the log's next group`,
  });
  isOver = true;
  await Promise.all(writing);

  const text = 'a ship left the harbour at noon with crates '.repeat(200);
  for (const { name } of namespaces) {
    const flushed: number[] = [];
    for (let at = 0; at < flushesMeasured; at++) {
      const docs = Array.from({ length: memtableBytes / text.length }, (_, i) => ({
        id: `m${at}-${i}`,
        text,
      }));
      await post(`${name}/docs`, { docs });
      flushed.push(await branchOf(`${name}-flushed-${at}`, name));
    }
    tell({
      name: `branch of ${name} that flushes`,
      value: `p50 ${p50(flushed).toFixed(0)} ms`,
      note: `${(memtableBytes / 1e6).toFixed(0)} MB waited in memory`,
    });
  }
  const fields = /"count":\d+|"temperature":"\w+"|"store_gets":\d+/g;
  // What a merge has made since the first count nobody has read: a branch is near where its parent is.
  await post('large/count', { q: 'harbour 7 ' });
  for (const name of ['large-0', 'large-1', 'large-2', 'large-3']) {
    const readAt = performance.now();
    const first = await post(`${name}/count`, { q: 'harbour 7 ' });
    const isNear = !first.includes('"temperature":"cold"');
    tell({
      name: `first count in ${name}`,
      value: `${(performance.now() - readAt).toFixed(1)} ms`,
      bar: 'warm or local',
      ok: isNear,
      note: (first.match(fields) ?? []).join(' '),
    });
  }
  client.close();
  await server.process.stop();
  far?.proxy.close();
});

async function fill(
  server: MeasuredServer,
  { name, documents: count }: { readonly name: string; readonly documents: number },
): Promise<void> {
  const folder = temporaryFolder();
  for (let from = 0; from < count; from += rowsPerFile) {
    const file = join(folder, 'rows.csv');
    const out = createWriteStream(file);
    out.write('id,text\n');
    for (let row = from; row < Math.min(count, from + rowsPerFile); row++)
      if (!out.write(`${row},the ship of row ${row} left harbour ${row % 9_000} at dawn\n`))
        await once(out, 'drain');
    out.end();
    await once(out, 'finish');
    await importFile(server, `/v1/namespaces/${name}/import?id=id&text=text`, file);
    rmSync(file);
  }
}
