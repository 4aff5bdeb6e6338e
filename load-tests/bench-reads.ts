import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConstantAnswer } from './bare-server.ts';
import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { batchBody, documentIdOf } from './documents.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { temporaryFolder } from './server.ts';
import { requestsPerSecond, writePathScript } from './wrk.ts';

/**
 * Warm reads of single documents against a bare uWebSockets server that answers a constant: both get the same requests
 * and send the same headers and bytes, in turns, because the machine's speed drifts.
 */
const documents = 10_000;
const batchDocuments = 1_000;
/** Different documents that are asked for, spread over all of them. */
const pathsAsked = 1_000;
const rounds = 4;
const roundSeconds = 4;
const warmUpSeconds = 2;
const ratioBar = 0.35;
const namespace = 'reads';

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
  for (let i = 0; i < 2; i++) await rawAnswer(server.process.url, path, server.key);
  const answer = await rawAnswer(server.process.url, path, server.key);
  const bare = await startBare(constantOf(answer));
  try {
    const bareBytes = (await rawAnswer(bare.url, path, server.key)).length;
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

const rawAnswerMsMax = 5_000;

/** The answer's bytes as they travel. */
async function rawAnswer(url: string, path: string, key: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setTimeout(rawAnswerMsMax, () => socket.destroy());
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  let text = '';
  for await (const part of socket.setEncoding('latin1')) {
    text += String(part);
    const headEnd = text.indexOf('\r\n\r\n') + 4;
    const length = /^content-length: (\d+)\r$/im.exec(text)?.[1];
    if (headEnd >= 4 && text.length >= headEnd + Number(length)) break;
  }
  if (!text.startsWith('HTTP/1.1 200 '))
    throw new Error(`${path} was not answered well: ${text.slice(0, 500)}`);
  return text;
}

function constantOf(answer: string): ConstantAnswer {
  const headEnd = answer.indexOf('\r\n\r\n');
  const [status = '', ...headers] = answer.slice(0, headEnd).split('\r\n');
  const others = headers.filter((line) => !/^(?:content-length|date):/i.test(line));
  return {
    head: [status.slice('HTTP/1.1 '.length), ...others].join('\r\n'),
    body: answer.slice(headEnd + 4),
  };
}

const bareFile = fileURLToPath(new URL('./bare-server.js', import.meta.url));

async function startBare(
  answer: ConstantAnswer,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [bareFile, JSON.stringify(answer)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => child.kill());
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${Number(port.toString())}`, child };
}
