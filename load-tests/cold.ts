import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bodyWriters } from './body-writers.ts';
import { startDelayProxy } from './delay-proxy.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import { s3Settings } from './s3-settings.ts';
import { startServer } from './server.ts';
import { textDocumentBytes, textDocumentId } from './text-batches.ts';

/**
 * `npm run cold`: the first read of a namespace whose data is far away. A real S3 server stands behind a proxy that delays
 * every byte by 30 ms each way, so each GET takes 60 ms and more. Namespaces are written and flushed to segments, the
 * server is stopped, its cache folder is deleted, and a new one answers one document of each namespace, one after the
 * other; then, after the same again, one search of each. Ends with 1 where the bar is missed.
 */
const namespaces = isQuick ? 4 : 40;
/** Of 1,000 documents: a namespace has about 2 MB, in one segment. */
const batchesPerNamespace = 2;
const batchDocuments = 1_000;
const connections = 4;
const delayMs = 30;
const readP50Ms = 250;
const nameOf = (number: number) => `cold-${number}`;

await judged(async ({ tell, say }) => {
  const s3 = s3Settings();
  const proxy = await startDelayProxy(s3.S3_ENDPOINT ?? '', delayMs);
  const env = {
    ...s3,
    S3_ENDPOINT: proxy.url,
    TIDEBASE_OBJECT_STORE: 's3',
    TIDEBASE_LOGIN_TOKEN_KEY: randomBytes(32).toString('base64'),
    TIDEBASE_KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  };
  const bucketSays = `${namespaces} namespaces of ${batchesPerNamespace * batchDocuments} documents of ${textDocumentBytes} bytes`;
  let server = await startMeasured({ env: { ...env, S3_ENDPOINT: s3.S3_ENDPOINT ?? '' } });
  await fill(server);
  say(`${bucketSays} are stored`);

  server = await startCold(server, env);
  const reads = await firstAnswers(server, (client, number) =>
    client.get(`/v1/namespaces/${nameOf(number)}/docs/${documentIn(number)}`),
  );
  tell({
    name: `cold first read, GETs of ${delayMs * 2} ms`,
    value: `p50 ${percentile(reads.latenciesMs, 0.5).toFixed(0)} ms`,
    bar: `≤ ${readP50Ms} ms`,
    ok: percentile(reads.latenciesMs, 0.5) <= readP50Ms,
    note: `${latencyText(reads.latenciesMs)}; GETs of each: ${reads.gets}`,
  });

  server = await startCold(server, env);
  const search = Buffer.from(JSON.stringify({ q: 'export function', limit: 10 }));
  const searches = await firstAnswers(server, (client, number) =>
    client.post(`/v1/namespaces/${nameOf(number)}/search`, search),
  );
  tell({
    name: `cold first search, GETs of ${delayMs * 2} ms`,
    value: `p50 ${percentile(searches.latenciesMs, 0.5).toFixed(0)} ms`,
    note: `${latencyText(searches.latenciesMs)}; GETs of each: ${searches.gets}`,
  });
  await server.process.stop();
  proxy.close();
});

async function fill({ process: server, key }: MeasuredServer): Promise<void> {
  const pathOf = (batch: number) => `/v1/namespaces/${nameOf(batch % namespaces)}/docs`;
  const options = { url: server.url, key, connections, batchDocuments };
  const writers = bodyWriters({ ...options, batchesMax: namespaces * batchesPerNamespace }, pathOf);
  await writers.finished;
}

/** A document of the first batch that went to the namespace. */
function documentIn(namespace: number): string {
  return textDocumentId(namespace * batchDocuments + 17);
}

/** Nothing of what was read before is near: a new process and an empty cache. */
async function startCold(
  { process: server, key }: MeasuredServer,
  env: Readonly<Record<string, string>>,
): Promise<MeasuredServer> {
  await server.stop();
  rmSync(join(server.folder, 'cache'), { recursive: true, force: true });
  return { process: await startServer({ folder: server.folder, env }), key };
}

async function firstAnswers(
  { process: server, key }: MeasuredServer,
  ask: (client: Connections, namespace: number) => Promise<string>,
): Promise<{ readonly latenciesMs: readonly number[]; readonly gets: string }> {
  const client = new Connections(server.url, key, 1);
  // The key and its tenant are known from here on; no namespace is.
  await client.get('/v1/namespaces?limit=1');
  const latenciesMs: number[] = [];
  const gets = new Map<number, number>();
  for (let namespace = 0; namespace < namespaces; namespace++) {
    const askedAt = performance.now();
    const answer = await ask(client, namespace);
    latenciesMs.push(performance.now() - askedAt);
    const count = Number(/"store_gets":(\d+)/.exec(answer)?.[1] ?? Number.NaN);
    gets.set(count, (gets.get(count) ?? 0) + 1);
  }
  client.close();
  const told = [...gets].map(([count, times]) => `${count} (${times} times)`);
  return { latenciesMs, gets: told.join(', ') };
}
