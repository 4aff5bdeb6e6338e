import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { batchBody, documentBytes, documentJson } from './documents.ts';
import { Connections, type MeasuredServer } from './measured-server.ts';

/** How many documents a second are acknowledged, and how long a lone write takes. */
const connections = 16;
const batchDocuments = 1_000;
const batches = 200;
const rounds = 3;
const rateBar = 15_000;

export async function benchBatches({ process: server, key }: MeasuredServer): Promise<Measurement> {
  const bodies = Array.from({ length: batches }, (_, i) => batchBody(i * batchDocuments, batchDocuments));
  const client = new Connections(server.url, key, connections);
  const rates: number[] = [];
  const latencies: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const seconds = await writeAll(client, `/v1/namespaces/batches-${round}/docs`, bodies, latencies);
    rates.push((batches * batchDocuments) / seconds);
  }
  client.close();
  const rate = median(rates);
  const sorted = latencies.toSorted((a, b) => a - b);
  return {
    name: `batches of ${batchDocuments}, ${connections} connections`,
    value: `${thousands(rate)} documents/s`,
    bar: `≥ ${thousands(rateBar)}`,
    ok: rate >= rateBar,
    note:
      `${rounds} rounds of ${thousands(batches * batchDocuments)} documents of ${documentBytes} bytes: ${spread(rates, 0)} ` +
      `a second; a batch took ${Math.round(median(latencies))} ms (median), ${Math.round(sorted.at(-1) ?? 0)} ms (longest)`,
  };
}

async function writeAll(
  client: Connections,
  path: string,
  bodies: readonly Buffer[],
  latencies: number[],
): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const worker = async () => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const sentAt = performance.now();
      await client.post(path, body);
      latencies.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return (performance.now() - begin) / 1_000;
}

const idleMs = 1_000;
const idleWrites = 9;
const idleBarMs = 30;

/** One document after a pause, to a namespace that is open. */
export async function benchFirstWrites({ process: server, key }: MeasuredServer): Promise<Measurement> {
  const client = new Connections(server.url, key, 1);
  const path = '/v1/namespaces/idle/docs';
  const body = (number: number) => Buffer.from(`{"docs":[${documentJson(number)}]}`);
  await client.post(path, body(0));
  const times: number[] = [];
  for (let i = 1; i <= idleWrites; i++) {
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    const sentAt = performance.now();
    await client.post(path, body(i));
    times.push(performance.now() - sentAt);
  }
  client.close();
  return {
    name: `first write after ${idleMs / 1_000} s idle`,
    value: `${median(times).toFixed(1)} ms (median)`,
    bar: `≤ ${idleBarMs} ms`,
    ok: median(times) <= idleBarMs,
    note: `${idleWrites} writes: ${spread(times, 1)} ms`,
  };
}
