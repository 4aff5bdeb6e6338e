/**
 * `npm run measure -- many-namespaces`: more data than memory, against the real server. Each scenario writes its namespaces, then
 * touches each in turn with a read and a search, twice. Judged: no request fails, and memory stays inside
 * TIDEBASE_MEMORY_BYTES, which bounds data, plus what the idle server takes. Pages of the local cache's files, which are
 * mapped, are told and not judged: the kernel takes them back as it likes.
 */
import { allocator } from '../src/cli/supervise.ts';
import { type Measurement, machineLines, measurementLine, thousands } from './bench-report.ts';
import { inParallel } from './in-parallel.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';

interface Scenario {
  readonly name: string;
  readonly namespaces: number;
  /** The bytes of all documents of the `number`th namespace. */
  readonly bytesOf: (number: number) => number;
  readonly documentBytes: number;
  /** Connections that write: bodies of small ones are small. */
  readonly writers: number;
}

const MiB = 2 ** 20;
const memoryBytes = Number(process.env.MEMORY_BYTES ?? 256 * MiB);
const connections = Number(process.env.CONNECTIONS ?? 8);
const sampleEveryMs = 250;
const tellEveryMs = 10_000;

const scenarios: readonly Scenario[] = [
  {
    name: 'small',
    namespaces: Number(process.env.NAMESPACES ?? 10_000),
    // 2 KB to 100 KB, as many of each magnitude: 25 KB on average.
    bytesOf: (number) => Math.round(2_000 * 50 ** ((number % 100) / 99)),
    documentBytes: 2_000,
    writers: 32,
  },
  {
    name: 'large',
    namespaces: Number(process.env.LARGE_NAMESPACES ?? 300),
    bytesOf: () => 4_000_000,
    documentBytes: 20_000,
    writers: 8,
  },
];

const say = (line: string) => process.stdout.write(`${line}\n`);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

const words = 'tide harbour noon dusk water moon rock sand wind sail rope mast hull keel deck anchor'.split(
  ' ',
);

function textOf(number: number, bytes: number): string {
  let text = '';
  for (let i = number; text.length < bytes; i += 7) text += `${words[(i * 31 + (i >> 3)) % words.length]} `;
  return text.slice(0, bytes);
}

/** The bodies of a namespace's writes, 2 MB at most each. */
function* bodiesOf(scenario: Scenario, number: number): Generator<Buffer> {
  let left = scenario.bytesOf(number);
  for (let id = 0; left > 0; ) {
    const docs: string[] = [];
    for (let bytes = 0; left > 0 && bytes < 2_000_000; id++) {
      const size = Math.min(scenario.documentBytes, left);
      docs.push(`{"id":"d${id}","text":"n${number}-${id} ${textOf(number + id, size)}"}`);
      bytes += size;
      left -= size;
    }
    yield Buffer.from(`{"docs":[${docs.join(',')}]}`);
  }
}

class Memory {
  readonly #server: MeasuredServer['process'];
  readonly #timer: NodeJS.Timeout;
  #toldAt = Date.now();
  /** Without pages of files. */
  max = 0;
  residentMax = 0;

  constructor(server: MeasuredServer['process']) {
    this.#server = server;
    this.#timer = setInterval(() => this.#sample(), sampleEveryMs);
  }

  #sample(): void {
    const bytes = this.#server.anonymousBytes();
    const resident = this.#server.residentBytes();
    this.max = Math.max(this.max, bytes);
    this.residentMax = Math.max(this.residentMax, resident);
    if (Date.now() - this.#toldAt < tellEveryMs) return;
    this.#toldAt = Date.now();
    const most = `most ${megabytes(this.max)} and ${megabytes(this.residentMax)}`;
    say(`    memory ${megabytes(bytes)}, with pages of files ${megabytes(resident)}; ${most}`);
  }

  end(): void {
    this.#sample();
    clearInterval(this.#timer);
  }
}

interface Touches {
  readonly ms: number[];
  errors: number;
  /** First reads that did not find their namespace open. */
  reopened: number;
}

/** Waits as it is told: write_busy is an answer, not an error. */
async function put(client: Connections, path: string, body: Buffer): Promise<number> {
  for (let waits = 0; ; waits++) {
    try {
      await client.post(path, body);
      return waits;
    } catch (error) {
      // A server whose bodies in flight are too many refuses before it has read one, and closes the connection.
      if (!/write_busy|rate_limited|EPIPE|ECONNRESET/.test(String(error)) || waits > 600) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

async function touch(client: Connections, scenario: Scenario, number: number, told: Touches): Promise<void> {
  const path = `/v1/namespaces/${scenario.name}-${number}`;
  const began = performance.now();
  try {
    const document = await client.get(`${path}/docs/d0`);
    const found = await client.post(`${path}/search`, Buffer.from(`{"q":"n${number}-0 ","limit":1}`));
    told.ms.push(performance.now() - began);
    if (!document.includes('"temperature":"warm"')) told.reopened++;
    if (!document.includes(`"text":"n${number}-0 `) || !found.includes('"id":"d0"'))
      throw new Error(`a wrong answer: ${document.slice(0, 200)} ${found.slice(0, 200)}`);
  } catch (error) {
    told.errors++;
    if (told.errors <= 3) say(`    ${String(error).slice(0, 300)}`);
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function run(scenario: Scenario): Promise<Measurement[]> {
  const server = await startMeasured({ env: { TIDEBASE_MEMORY_BYTES: String(memoryBytes), ...allocator } });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const idle = server.process.residentBytes();
  const memory = new Memory(server.process);
  const writing = new Connections(server.process.url, server.key, scenario.writers);
  const bytes = Array.from({ length: scenario.namespaces }, (_, i) => scenario.bytesOf(i)).reduce(
    (a, b) => a + b,
  );
  say(`${scenario.name}: ${thousands(scenario.namespaces)} namespaces, ${megabytes(bytes)} of documents`);
  say(`    budget ${megabytes(memoryBytes)}, idle server ${megabytes(idle)}`);
  const began = performance.now();
  let waits = 0;
  await inParallel(scenario.namespaces, scenario.writers, async (number) => {
    for (const body of bodiesOf(scenario, number))
      waits += await put(writing, `/v1/namespaces/${scenario.name}-${number}/docs`, body);
  });
  writing.close();
  const seconds = (performance.now() - began) / 1_000;
  say(`    written in ${seconds.toFixed(0)} s, ${waits} times told to wait, most ${megabytes(memory.max)}`);
  const reading = new Connections(server.process.url, server.key, connections);
  const told: Touches = { ms: [], errors: 0, reopened: 0 };
  for (let round = 1; round <= 2; round++) {
    const before = told.reopened;
    await inParallel(scenario.namespaces, connections, (number) => touch(reading, scenario, number, told));
    say(`    round ${round}: ${told.reopened - before} of ${scenario.namespaces} had been put away`);
  }
  reading.close();
  memory.end();
  await server.process.stop();
  const bar = memoryBytes + idle;
  const name = (what: string) => `${scenario.name}: ${what}`;
  return [
    {
      name: name('most memory'),
      value: megabytes(memory.max),
      bar: `<= ${megabytes(bar)}`,
      ok: memory.max <= bar,
    },
    { name: name('most memory with pages of files'), value: megabytes(memory.residentMax) },
    { name: name('touches that failed'), value: String(told.errors), bar: '0', ok: told.errors === 0 },
    { name: name('namespaces opened again'), value: thousands(told.reopened) },
    {
      name: name('a touch, p50 and p99'),
      value: `${percentile(told.ms, 0.5).toFixed(1)} and ${percentile(told.ms, 0.99).toFixed(1)} ms`,
    },
  ];
}

for (const line of machineLines()) say(line);
const all: Measurement[] = [];
for (const scenario of scenarios) {
  if (scenario.namespaces === 0) continue;
  const measured = await run(scenario);
  for (const measurement of measured) say(measurementLine(measurement));
  all.push(...measured);
}
process.exitCode = all.every(({ ok }) => ok !== false) ? 0 : 1;
