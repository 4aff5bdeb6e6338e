/**
 * `npm run measure -- restart`: how soon a server serves again after `kill -9`. It holds 1 GB in the fs store, in several namespaces,
 * and a log of writes that no segment has yet. Measured from the start of the process to `GET /healthz` = 200 and to the
 * first document that is read. Three times, with new writes before each kill. Ends with 1 where the bar is missed.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { median, spread } from './bench-report.ts';
import { bodyWriters } from './body-writers.ts';
import { isQuick, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { type RunningServer, startServer } from './server.ts';
import { textDocumentId } from './text-batches.ts';

const storedBytesMin = isQuick ? 20e6 : 1e9;
const rounds = isQuick ? 1 : 3;
const namespaces = 8;
const connections = 8;
const batchDocuments = 1_000;
/** Before each further kill. */
const writeSeconds = isQuick ? 1 : 5;
const barMs = 3_000;
const nameOf = (number: number) => `restart-${number % namespaces}`;
const lookMs = 500;

await judged(async ({ tell }) => {
  let server = await startMeasured();
  const healthy: number[] = [];
  const answered: number[] = [];
  const logs: string[] = [];
  for (let round = 0; round < rounds; round++) {
    await write(server, round === 0 ? storedBytesMin : 0);
    const { folder } = server.process;
    await server.process.kill();
    logs.push(`${(bytesBelow(join(folder, 'objects/log')) / 1e6).toFixed(0)} MB`);
    const times = await timedStart(server, folder);
    healthy.push(times.healthyMs);
    answered.push(times.answeredMs);
    server = { process: times.process, key: server.key };
  }
  const stored = `${(bytesBelow(join(server.process.folder, 'objects/ns')) / 1e9).toFixed(2)} GB`;
  await server.process.stop();
  for (const [what, times] of [
    ['healthz = 200', healthy],
    ['first read answered', answered],
  ] as const) {
    tell({
      name: `start after kill -9 to ${what}`,
      value: `${Math.round(median(times))} ms (median)`,
      bar: `≤ ${barMs} ms`,
      ok: Math.max(...times) <= barMs,
      note: `${rounds} starts: ${spread(times, 0)} ms; ${stored} in segments, files of logs: ${logs.join(', ')}`,
    });
  }
});

/** Until the store holds that much, and for some seconds at least. */
async function write({ process: server, key }: MeasuredServer, bytes: number): Promise<void> {
  const options = { url: server.url, key, connections, batchDocuments };
  const writers = bodyWriters(options, (batch) => `/v1/namespaces/${nameOf(batch)}/docs`);
  await sleep(writeSeconds * 1_000);
  while (bytesBelow(join(server.folder, 'objects/ns')) < bytes) await sleep(lookMs);
  await writers.stop();
}

async function timedStart(
  { key }: MeasuredServer,
  folder: string,
): Promise<{ readonly process: RunningServer; readonly healthyMs: number; readonly answeredMs: number }> {
  const beganAt = performance.now();
  const process = await startServer({ folder });
  const health = await fetch(`${process.url}/healthz`);
  if (health.status !== 200) throw new Error(`healthz answered ${health.status}`);
  const healthyMs = performance.now() - beganAt;
  const client = new Connections(process.url, key, 1);
  await client.get(`/v1/namespaces/${nameOf(0)}/docs/${textDocumentId(17)}`);
  const answeredMs = performance.now() - beganAt;
  client.close();
  return { process, healthyMs, answeredMs };
}

/** 0 where the folder is missing; what is deleted meanwhile does not count. */
function bytesBelow(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0);
}
