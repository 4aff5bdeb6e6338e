/**
 * `npm run measure -- idle`: what a server that nobody asks anything costs, as `npm start` runs it, supervisor included: PUTs by kind,
 * GETs, and processor time and memory of the whole process tree. First an empty one, then one with a thousand open namespaces that were
 * written before its last start. Ends with 1 where a bar is missed.
 */
import { rmSync } from 'node:fs';
import { megabytes } from './bench-report.ts';
import { batchBody, documentIdOf } from './documents.ts';
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { treeCpuSeconds, treeResidentBytes } from './processes.ts';
import { countsBetween, putsTable, readStoreCounts, totalCounts } from './store-counts.ts';

const namespaces = isQuick ? 20 : 1_000;
const connections = 16;
/** Past the first sweep for orphans, a minute after the start; the next one is six hours later. */
const settleSeconds = isQuick ? 3 : 80;
const seconds = isQuick ? 10 : 90;
const cpuPercentMax = 1;

await judged(async (judge) => {
  const empty = await startMeasured({ supervised: true });
  await measureIdle(judge, empty, 'empty');
  const names = Array.from({ length: namespaces }, (_, i) => `idle-${i}`);
  await forEach(empty, names, (client, name) => client.post(`/v1/namespaces/${name}/docs`, batchBody(0, 10)));
  const full = await restartMeasured(empty, { supervised: true });
  await forEach(full, names, (client, name) => client.get(`/v1/namespaces/${name}/docs/${documentIdOf(3)}`));
  await measureIdle(judge, full, `${namespaces} open namespaces`);
  await full.process.stop();
  rmSync(full.process.folder, { recursive: true, force: true });
});

async function forEach(
  { process: server, key }: MeasuredServer,
  names: readonly string[],
  work: (client: Connections, name: string) => Promise<unknown>,
): Promise<void> {
  const client = new Connections(server.url, key, connections);
  await Promise.all(names.map((name) => work(client, name)));
  client.close();
}

async function measureIdle(
  { tell, say }: Judge,
  { process: server }: MeasuredServer,
  what: string,
): Promise<void> {
  await sleep(settleSeconds * 1_000);
  const before = await readStoreCounts(server);
  const cpuBefore = treeCpuSeconds(server.processId);
  const beganAt = performance.now();
  await sleep(seconds * 1_000);
  const measured = (performance.now() - beganAt) / 1_000;
  const percent = ((treeCpuSeconds(server.processId) - cpuBefore) / measured) * 100;
  const counts = countsBetween(before, await readStoreCounts(server));
  const unwanted = [...counts].filter(([kind, { puts }]) => puts > 0 && kind !== 'cluster/lease');
  tell(
    {
      name: `idle, ${what}: PUTs beside the lease`,
      value: String(unwanted.reduce((sum, [, { puts }]) => sum + puts, 0)),
      bar: '0',
      ok: unwanted.length === 0,
    },
    {
      name: `idle, ${what}: processor`,
      value: `${percent.toFixed(2)} % of a core`,
      bar: `< ${cpuPercentMax} %`,
      ok: percent < cpuPercentMax,
      note:
        `${measured.toFixed(0)} s; ${totalCounts(counts).gets} GETs; ${megabytes(treeResidentBytes(server.processId))} resident, ` +
        `of which its supervisor has ${megabytes(server.residentBytes())}`,
    },
  );
  for (const line of putsTable(counts, measured)) say(line);
}
