/**
 * `npm run measure -- branches`: how long a branch takes of a namespace of 1,000 documents and of one of millions, in turn, in one run,
 * while both are written to. Told apart: a branch that has a memtable to flush first, and the first read of a branch. With `--far` the
 * store is a real S3 server behind 30 ms each way. Ends with 1 where a bar is missed.
 *
 * A branch's name waits for the next group of the log like any write. With the folder store the groups follow each other in 10 ms here, or
 * nothing but that wait would be seen; `--commit-ms=250` shows what clients see by default.
 *
 *   --documents=4000000 --branches=40 --commit-ms=10 --far
 */
import { once } from 'node:events';
import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { thousands } from './bench-report.ts';
import { startFarStore } from './cold-server.ts';
import { importFile } from './import-file.ts';
import { isQuick, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import { numberOption } from './options.ts';
import { temporaryFolder } from './server.ts';

const documents = numberOption('documents', isQuick ? 50_000 : 4_000_000);
const branches = numberOption('branches', isQuick ? 10 : 40);
const isFar = process.argv.includes('--far');
const commitMs = numberOption('commit-ms', isFar ? 250 : 10);
const p50Ms = isFar ? 440 : 50;
const commitEnv = { TIDEBASE_COMMIT_MS: String(commitMs) };
/** How much slower the large one may be. */
const ratioMax = 1.2;
const rowsPerFile = 1_000_000;
/** Bytes of documents that wait in memory: less than a memtable, far more than a manifest takes. */
const memtableBytes = 16e6;
const writeEveryMs = 50;
const namespaces = [
  { name: 'small', documents: 1_000 },
  { name: 'large', documents },
] as const;

await judged(async ({ say, tell }) => {
  const far = isFar ? await startFarStore() : null;
  let server = await startMeasured({ env: { ...far?.nearEnv, ...commitEnv } });
  for (const namespace of namespaces) await fill(server, namespace);
  say(
    `${namespaces.map(({ name, documents: count }) => `${name} ${thousands(count)}`).join(', ')} documents\n`,
  );
  if (far !== null) server = await restartMeasured(server, { env: { ...far.farEnv, ...commitEnv } });
  const client = new Connections(server.process.url, server.key, 4);
  const post = (path: string, body: object) =>
    client.post(`/v1/namespaces/${path}`, Buffer.from(JSON.stringify(body)));
  for (const { name } of namespaces) await post(`${name}/count`, { q: 'harbour 7 ' });

  let writes = 0;
  let isOver = false;
  const writing = namespaces.map(async ({ name }) => {
    for (; !isOver; writes++) {
      await post(`${name}/docs`, { docs: [{ id: `w${writes % 500}`, text: `written ${writes}` }] });
      await sleep(writeEveryMs);
    }
  });
  const tookMs = { small: [] as number[], large: [] as number[] };
  const branchOf = async (name: string, source: string) => {
    const beganAt = performance.now();
    await post(`${name}/branch`, { source });
    return performance.now() - beganAt;
  };
  for (let at = 0; at < branches; at++)
    for (const { name } of namespaces) tookMs[name].push(await branchOf(`${name}-${at}`, name));
  const { small, large } = tookMs;
  const p50 = (latencies: readonly number[]) => percentile(latencies, 0.5);
  for (const { name } of namespaces)
    tell({
      name: `branch of ${name}`,
      value: `p50 ${p50(tookMs[name]).toFixed(1)} ms`,
      bar: `≤ ${p50Ms} ms`,
      ok: p50(tookMs[name]) <= p50Ms,
      note: latencyText(tookMs[name]),
    });
  const ratio = p50(large) / p50(small);
  tell({
    name: 'large against small',
    value: ratio.toFixed(2),
    bar: `≤ ${ratioMax}`,
    ok: ratio <= ratioMax,
    note: `${writes} writes went on beside them`,
  });
  isOver = true;
  await Promise.all(writing);

  const text = 'a ship left the harbour at noon with crates '.repeat(200);
  const docs = Array.from({ length: memtableBytes / text.length }, (_, i) => ({ id: `m${i}`, text }));
  await post('large/docs', { docs });
  const flushed = await branchOf('flushed', 'large');
  tell({
    name: 'branch that flushes first',
    value: `${flushed.toFixed(0)} ms`,
    note: `${(memtableBytes / 1e6).toFixed(0)} MB waited in memory`,
  });
  const readAt = performance.now();
  const first = await post('large-0/count', { q: 'harbour 7 ' });
  const fields = /"count":\d+|"temperature":"\w+"|"store_gets":\d+/g;
  tell({
    name: 'first count in a branch',
    value: `${(performance.now() - readAt).toFixed(1)} ms`,
    note: (first.match(fields) ?? []).join(' '),
  });
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
