/**
 * `npm run measure -- cold`: the first read of a namespace whose data is far away. A real S3 server stands behind a proxy that delays
 * every byte by 30 ms each way, so each GET takes 60 ms and more. Namespaces are written and flushed to segments, the
 * server is stopped, its cache folder is deleted, and a new one answers one document of each namespace, one after the
 * other; then, after the same again, one search of each. Ends with 1 where the bar is missed.
 */
import { bodyWriters } from './body-writers.ts';
import { delayMs, startCold, startFarStore } from './cold-server.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import { textDocumentBytes, textDocumentId } from './text-batches.ts';

const namespaces = isQuick ? 4 : 40;
/** Batches of 1,000 documents: a namespace has about 2 MB, in one segment. */
const batchesPerNamespace = 2;
const batchDocuments = 1_000;
const connections = 4;
const readP50Ms = 250;
const nameOf = (number: number) => `cold-${number}`;

await judged(async ({ tell, say }) => {
  const store = await startFarStore();
  const bucketSays = `${namespaces} namespaces of ${batchesPerNamespace * batchDocuments} documents of ${textDocumentBytes} bytes`;
  let server = await startMeasured({ env: store.nearEnv });
  await fill(server);
  say(`${bucketSays} are stored`);

  server = await startCold(server, store);
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

  server = await startCold(server, store);
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
  store.proxy.close();
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

async function firstAnswers(
  { process: server, key }: MeasuredServer,
  ask: (client: Connections, namespace: number) => Promise<string>,
): Promise<{ readonly latenciesMs: readonly number[]; readonly gets: string }> {
  const client = new Connections(server.url, key, 1);
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
