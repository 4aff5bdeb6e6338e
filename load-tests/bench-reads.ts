import { once } from 'node:events';
import { join } from 'node:path';
import { constantOf, rawAnswer, startBare } from './bare.ts';
import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { batchBody, documentIdOf } from './documents.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { temporaryFolder } from './server.ts';
import { requestsPerSecond, writePathScript } from './wrk.ts';

const documents = 10_000;
const batchDocuments = 1_000;
/** Different documents that are asked for, spread over all of them. */
const pathsAsked = 1_000;
const rounds = 4;
const roundSeconds = 4;
const warmUpSeconds = 2;
const ratioBar = 0.35;
const namespace = 'reads';

/**
 * Warm reads of single documents against a bare uWebSockets server that answers a constant: both get the same requests
 * and send the same headers and bytes, in turns, because the machine's speed drifts.
 */
export async function benchReads(): Promise<Measurement[]> {
  const server = await startMeasured();
  await writeDocuments(server);
  const fromMemtable = await compare(server, 'memtable');
  const restarted = await restartMeasured(server);
  const fromSegment = await compare(restarted, 'segment, after a restart');
  await restarted.process.stop();
  return [...fromMemtable, ...fromSegment];
}

async function writeDocuments({ process: server, key }: MeasuredServer): Promise<void> {
  const client = new Connections(server.url, key, 1);
  for (let first = 0; first < documents; first += batchDocuments) {
    await client.post(`/v1/namespaces/${namespace}/docs`, batchBody(first, batchDocuments));
  }
  client.close();
}

async function compare(server: MeasuredServer, where: string): Promise<Measurement[]> {
  const script = join(temporaryFolder(), 'paths.lua');
  const paths = Array.from({ length: pathsAsked }, (_, i) => documentPath((i * documents) / pathsAsked));
  writePathScript(script, paths);
  const path = paths[0] ?? '';
  // Once more, because the first answer after a restart says that it was not warm.
  for (let i = 0; i < 2; i++) await rawAnswer(server.process.url, path, server.key, 200);
  const answer = await rawAnswer(server.process.url, path, server.key, 200);
  const bare = await startBare(constantOf(answer));
  try {
    const bareBytes = (await rawAnswer(bare.url, path, server.key, 200)).length;
    const rates = await alternate(server, bare.url, script);
    return measurementsOf(where, rates, { bare: bareBytes, own: answer.length });
  } finally {
    bare.child.kill();
    await once(bare.child, 'exit');
  }
}

interface Rates {
  readonly bare: readonly number[];
  readonly own: readonly number[];
}

async function alternate(server: MeasuredServer, bareUrl: string, script: string): Promise<Rates> {
  const measure = (url: string, seconds: number) =>
    requestsPerSecond({ url, key: server.key, script, seconds });
  await measure(bareUrl, warmUpSeconds);
  await measure(server.process.url, warmUpSeconds);
  const bare: number[] = [];
  const own: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push(await measure(bareUrl, roundSeconds));
    own.push(await measure(server.process.url, roundSeconds));
  }
  return { bare, own };
}

function measurementsOf(
  where: string,
  { bare, own }: Rates,
  bytes: { bare: number; own: number },
): Measurement[] {
  const ratio = median(own) / median(bare);
  const ratios = own.map((rate, round) => rate / (bare[round] ?? Number.NaN));
  return [
    {
      name: `warm read, ${where}`,
      value: `${ratio.toFixed(2)} of bare`,
      bar: `≥ ${ratioBar}`,
      ok: ratio >= ratioBar,
      note:
        `${thousands(median(own))} a second (${bytes.own} bytes an answer) against ${thousands(median(bare))} ` +
        `(${bytes.bare} bytes); ratios of ${rounds} rounds ${spread(ratios, 2)}`,
    },
  ];
}

function documentPath(number: number): string {
  return `/v1/namespaces/${namespace}/docs/${documentIdOf(number)}`;
}
