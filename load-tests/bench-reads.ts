import { once } from 'node:events';
import { join } from 'node:path';
import { constantOf, rawAnswer, startBare } from './bare.ts';
import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { batchBody, documentIdOf } from './documents.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { type ThreadCpu, threadCpu } from './processes.ts';
import { temporaryFolder } from './server.ts';
import { requestsPerSecond, writePathScript } from './wrk.ts';

const documents = 10_000;
const batchDocuments = 1_000;
/** Different documents that are asked for, spread over all of them. */
const pathsAsked = 1_000;
const rounds = 4;
const roundSeconds = 4;
const warmUpSeconds = 2;
const ratioBar = 0.6;
const namespace = 'reads';
/** So many threads are told of: the front's, which is the first, and the actor's. */
const threadsTold = 2;

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
    const rates = await alternate(server, { url: bare.url, processId: bare.child.pid ?? 0 }, script);
    return measurementsOf(where, rates, { bare: bareBytes, own: answer.length });
  } finally {
    bare.child.kill();
    await once(bare.child, 'exit');
  }
}

interface Rates {
  readonly bare: readonly number[];
  readonly own: readonly number[];
  readonly bareCpu: CpuOfReads;
  readonly ownCpu: CpuOfReads;
}

interface Process {
  readonly url: string;
  readonly processId: number;
}

async function alternate(server: MeasuredServer, bareProcess: Process, script: string): Promise<Rates> {
  const measure = ({ url }: Process, seconds: number) =>
    requestsPerSecond({ url, key: server.key, script, seconds });
  await measure(bareProcess, warmUpSeconds);
  await measure(server.process, warmUpSeconds);
  const bare: number[] = [];
  const own: number[] = [];
  const bareCpu = new CpuOfReads(bareProcess.processId);
  const ownCpu = new CpuOfReads(server.process.processId);
  const round = async (process: Process, rates: number[], cpu: CpuOfReads) => {
    cpu.begin();
    const rate = await measure(process, roundSeconds);
    cpu.end(rate * roundSeconds);
    rates.push(rate);
  };
  for (let at = 0; at < rounds; at++) {
    await round(bareProcess, bare, bareCpu);
    await round(server.process, own, ownCpu);
  }
  return { bare, own, bareCpu, ownCpu };
}

/** The processor time of a process's threads while it answered reads. */
class CpuOfReads {
  readonly #processId: number;
  /** Seconds of user and system time by thread. */
  readonly #used = new Map<string, { user: number; system: number }>();
  #before = new Map<string, ThreadCpu>();
  #reads = 0;

  constructor(processId: number) {
    this.#processId = processId;
  }

  begin(): void {
    this.#before = new Map(threadCpu(this.#processId).map((thread) => [thread.threadId, thread]));
  }

  end(reads: number): void {
    this.#reads += reads;
    for (const { threadId, userSeconds, systemSeconds } of threadCpu(this.#processId)) {
      const used = this.#used.get(threadId) ?? { user: 0, system: 0 };
      const before = this.#before.get(threadId);
      used.user += userSeconds - (before?.userSeconds ?? 0);
      used.system += systemSeconds - (before?.systemSeconds ?? 0);
      this.#used.set(threadId, used);
    }
  }

  /** Tells the microseconds of a read: all threads together, then those that took most, user + system; the first thread of a process has its id. */
  toString(): string {
    const micros = (seconds: number) => (seconds / this.#reads) * 1e6;
    const threads = [...this.#used].map(([threadId, { user, system }]) => ({ threadId, user, system }));
    const all = threads.reduce((sum, { user, system }) => sum + user + system, 0);
    const most = threads.toSorted((a, b) => b.user + b.system - a.user - a.system).slice(0, threadsTold);
    const told = most.map(({ threadId, user, system }) => {
      const name = Number(threadId) === this.#processId ? 'first thread' : 'another';
      return `${name} ${micros(user).toFixed(1)} + ${micros(system).toFixed(1)}`;
    });
    return `${micros(all).toFixed(1)} µs of processor time (${told.join(', ')}; user + system)`;
  }
}

function measurementsOf(
  where: string,
  { bare, own, bareCpu, ownCpu }: Rates,
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
        `(${bytes.bare} bytes); ratios of ${rounds} rounds ${spread(ratios, 2)}; a read takes ${ownCpu}, the bare server's ${bareCpu}`,
    },
  ];
}

function documentPath(number: number): string {
  return `/v1/namespaces/${namespace}/docs/${documentIdOf(number)}`;
}
