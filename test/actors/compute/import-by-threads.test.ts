import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { buildImport } from '../../../actors/compute/build-import.ts';
import { type ImportThreads, importByThreads } from '../../../actors/compute/import-by-threads.ts';
import type { ImportFileTask, ReadImportTask } from '../../../actors/compute/lanes.ts';
import { readImport } from '../../../actors/compute/read-import.ts';
import { FileRanges } from '../../../actors/import/file-ranges.ts';
import { importRequest } from '../../../actors/import/import-request.ts';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { putTriesMax } from '../../../src/object-store/put-once.ts';
import { Oracle } from '../../support/duckdb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Help, ImportFolder, never } from '../../support/imported-segments.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
/** Ranges are so short that each file has several. */
const rangeRows = 7;
const folder = new ImportFolder();
after(() => folder.close());

function randomCsv(random: () => number, rows: number): string {
  const end = random() < 0.5 ? '\r\n' : '\n';
  const texts = ['plain', '"a, b"', '"two\nlines"', '"a ""word"""', '', 'größe', '"\r\n"'];
  const lines = Array.from({ length: rows }, (_, at) => {
    const text = texts[Math.floor(random() * texts.length)];
    return `${random() < 0.1 ? end : ''}${at * 3},${text},${(random() * 100).toFixed(2)}`;
  });
  return `${random() < 0.5 ? '\ufeff' : ''}number,note,share${end}${lines.join(end)}${random() < 0.5 ? end : ''}`;
}

function randomLines(random: () => number, rows: number): string {
  return Array.from({ length: rows }, (_, at) => {
    const object = {
      number: at,
      note: 'x'.repeat(random() * 90),
      ...(random() < 0.2 ? { seldom: [at, null] } : {}),
    };
    return `${random() < 0.1 ? ' \n\n' : ''}${JSON.stringify(object)}${random() < 0.3 ? ' \r' : ''}`;
  }).join('\n');
}

/** Help that begins at once or some milliseconds later, and counts the ranges that it gives. */
class CountedHelp {
  ranges = 0;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  readonly help: Help = async (task) => {
    const { parts } = task;
    const post = parts.postMessage.bind(parts);
    parts.postMessage = (message, moved?: never) => {
      if (message.kind === 'range') this.ranges++;
      post(message, moved);
    };
    if (this.#random() < 0.5) await setTimeout(this.#random() * 4);
    await readImport(task);
  };
}

test('two readers make the segment that one makes, byte by byte', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  let [ranges, given] = [0, 0];
  for (let round = 0; round < 20; round++) {
    const rows = 1 + Math.floor(random() * 400);
    for (const [format, content] of [
      ['csv', randomCsv(random, rows)],
      ['ndjson', randomLines(random, rows)],
    ] as const) {
      const path = folder.fileOf(`random.${format}`, content);
      const few = 1 + Math.floor(random() * 40);
      const query = `format=${format}&text=note`;
      const counted = new CountedHelp(random);

      const alone = await folder.import(path, query, { rangeRows: few });
      const helped = await folder.import(path, query, { rangeRows: few, help: counted.help });

      assert.deepEqual(helped.built, alone.built);
      assert.equal(alone.built.rowCount, rows);
      assert.ok(helped.segment.equals(alone.segment), `${format}, ${rows} rows in ranges of ${few}`);
      ranges += Math.ceil(rows / few);
      given += counted.ranges;
    }
  }
  t.diagnostic(`help gave ${given} of ${ranges} ranges`);
  assert.ok(given > 0 && given < ranges);
});

test('two readers make of a Parquet file what one makes: each takes row groups', async () => {
  const path = join(folder.path, 'groups.parquet');
  const oracle = await Oracle.open();
  const rows = "SELECT i AS number, 'note ' || (i % 7) AS note FROM range(200_000) r(i)";
  await oracle.rows(`COPY (${rows}) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`);
  oracle.close();
  const counted = new CountedHelp(() => 1);

  const alone = await folder.import(path, 'format=parquet&text=note');
  const helped = await folder.import(path, 'format=parquet&text=note', { help: counted.help });

  assert.equal(alone.built.rowCount, 200_000);
  assert.deepEqual(helped.built, alone.built);
  assert.ok(helped.segment.equals(alone.segment));
  assert.ok(counted.ranges > 0 && counted.ranges < 4, `help gave ${counted.ranges} ranges of 65,536 rows`);
});

test('help leaves a Parquet file alone whose pages may be more than it may hold, small as they are in the file', async () => {
  const path = join(folder.path, 'flags.parquet');
  const oracle = await Oracle.open();
  const flags = Array.from({ length: 95 }, (_, at) => `(i + ${at}) % 3 = 0 AS f${at}`);
  const rows = `SELECT ${flags.join(', ')} FROM range(245_760) r(i)`;
  await oracle.rows(`COPY (${rows}) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 122_880)`);
  oracle.close();
  const counted = new CountedHelp(() => 1);

  const { built } = await folder.import(path, 'format=parquet', { help: counted.help });

  assert.deepEqual([built.rowCount, counted.ranges], [245_760, 0]);
});

test('of several mistakes the first one in the file is told, with its row, whoever finds it', async () => {
  const lines = Array.from({ length: 100 }, (_, at) => (at === 61 || at === 79 ? `${at},x,more` : `${at},x`));
  const path = folder.fileOf('mistakes.csv', `number,note\n${lines.join('\n')}\n`);
  const random = seededRandom(seed);

  for (let round = 0; round < 20; round++) {
    const { help } = new CountedHelp(random);
    assert.match(await folder.refusal(path, 'format=csv', { rangeRows, help }), /row 62: it has 3 fields/u);
  }
});

test('a value of another kind begins the import anew, by one reader, that knows all values', async () => {
  const lines = Array.from({ length: 12_000 }, (_, at) => (at === 11_990 ? 'x' : String(at)));
  const path = folder.fileOf('kinds.csv', `number\n${lines.join('\n')}\n`);
  let helps = 0;
  const help: Help = (task) => {
    helps++;
    return readImport(task);
  };

  const alone = await folder.import(path, 'format=csv', { rangeRows: 1_000 });
  const helped = await folder.import(path, 'format=csv', { rangeRows: 1_000, help });

  assert.deepEqual(helped.built.textKeys, ['number']);
  assert.deepEqual([alone.readings, helped.readings, helps], [2, 2, 1]);
  assert.ok(helped.segment.equals(alone.segment));
});

test('a column that some rows have is there, and one that none has is refused, whoever reads them', async () => {
  const lines = Array.from({ length: 60 }, (_, at) =>
    JSON.stringify({ number: at, ...(at === 41 ? { seldom: 1 } : {}) }),
  );
  const path = folder.fileOf('seldom.ndjson', lines.join('\n'));

  const { built } = await folder.import(path, 'format=ndjson&columns=seldom', {
    rangeRows,
    help: readImport,
  });

  assert.equal(built.rowCount, 60);
  const told = await folder.refusal(path, 'format=ndjson&columns=seldom,nowhere', {
    rangeRows,
    help: readImport,
  });
  assert.match(told, /no column "nowhere"/u);
  assert.equal(told, await folder.refusal(path, 'format=ndjson&columns=seldom,nowhere', { rangeRows }));
});

test('a reader that ends in the middle of a range ends the import; one that never begins, or can do nothing, does not', async () => {
  const path = folder.fileOf(
    'ends.csv',
    `number\n${Array.from({ length: 100 }, (_, at) => at).join('\n')}\n`,
  );
  const ends: Help = async (task: ReadImportTask) => {
    const ranges = new FileRanges(task.ranges);
    const range = ranges.take(7, ({ start }) => ({ end: start + 20, rowCount: 10 }));
    task.parts.postMessage({ kind: 'range', number: range?.number ?? 0 });
    task.parts.close();
  };
  const vanishes: Help = async (task) => {
    new FileRanges(task.ranges).take(7, ({ start }) => ({ end: start + 20, rowCount: 10 }));
    task.parts.close();
  };
  const leaves: Help = async (task) => task.parts.close();
  const fails: Help = (task) => readImport({ ...task, path: join(folder.path, 'nothing') });

  for (const help of [ends, vanishes])
    await assert.rejects(
      folder.import(path, 'format=csv', { rangeRows, help }),
      /a thread that reads the file has ended/u,
    );

  for (const help of [never, leaves, fails])
    assert.equal((await folder.import(path, 'format=csv', { rangeRows, help })).built.rowCount, 100);
});

/** Some megabytes of lines, whose upload begins while they are read. */
const longLines = (rows: number) =>
  Array.from({ length: rows }, (_, at) => `${at},${createHash('sha512').update(String(at)).digest('hex')}`);

/** A store that lets uploads wait, or fail. */
class WaitingStore extends MemoryObjectStore {
  begun = 0;
  ended = 0;
  /** Holds uploads up until a test lets them go. */
  go: Promise<void> = Promise.resolve();
  /** So many more uploads fail. */
  failures = 0;

  override async putStream(...[key, chunks]: Parameters<MemoryObjectStore['putStream']>) {
    this.begun++;
    await this.go;
    try {
      if (this.failures-- > 0) throw new StoreError('stream', key, 'not-applied', 'failed');
      return await super.putStream(key, chunks);
    } finally {
      this.ended++;
    }
  }
}

test('a wrong row is told at once, though the store does not answer, and nothing of the file stays', async () => {
  const path = folder.fileOf('late.csv', `number,note\n${longLines(20_000).join('\n')}\n1,2,3\n`);
  const store = new WaitingStore();
  let go = () => {};
  store.go = new Promise((resolve) => {
    go = resolve;
  });

  assert.match(await folder.refusal(path, 'format=csv', { store }), /row 20001: it has 3 fields/u);
  assert.deepEqual([store.begun, store.ended], [1, 0]);
  go();
  await eventually(
    () => store.ended === 1 && readdirSync(folder.path).every((name) => !name.startsWith('segment')),
    'the upload has ended and its file is gone',
  );
  assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
});

test('a store that was in trouble until all rows were there has the segment in the end', async () => {
  const path = folder.fileOf('trouble.csv', `number,note\n${longLines(2_000).join('\n')}\n`);
  const [troubled, well] = [new WaitingStore(), new WaitingStore()];
  troubled.failures = putTriesMax;

  const whole = await folder.import(path, 'format=csv', { store: troubled });
  const wanted = await folder.import(path, 'format=csv', { store: well });

  assert.deepEqual([troubled.begun, well.begun], [putTriesMax + 1, 1]);
  assert.ok(whole.segment.length > 0 && whole.segment.equals(wanted.segment));
  troubled.failures = 2 * putTriesMax;
  await assert.rejects(folder.import(path, 'format=csv', { store: troubled }), StoreError);
});

/** A task as another thread gets it: its ports are moved, which fails where one is closed. */
function arrived<T extends object>(task: T, ports: readonly MessagePort[]): T {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(task, [...ports]);
  const { message } = receiveMessageOnPort(port2) as { message: T };
  port1.close();
  return message;
}

/** An import of a CSV file that is long enough for help, by what it says of itself. */
function longImport(path: string, key: string): ImportFileTask {
  const bytes = limits.importHelpedBytesMin;
  return { ...importRequest('format=csv'), path, bytes, dims: null, firstSequence: 5, writtenAt: 1e15, key };
}

test('who builds may begin long after who would help has found nothing to do', async () => {
  const path = folder.fileOf('short.csv', `number,note\n${longLines(50).join('\n')}\n`);
  const store = new MemoryObjectStore(systemClock);
  let helps = 0;
  const threads: ImportThreads = {
    read: (task, ports) => readImport(arrived(task, ports)),
    help: (task, ports) => {
      helps++;
      return readImport(arrived(task, ports));
    },
    build: async (task, ports) => {
      await setTimeout(100);
      const components = { store, clock: systemClock, scratchFolder: folder.path };
      return buildImport(components, arrived(task, ports));
    },
  };
  const asked = longImport(path, 'ns/ab/n/segment/late');

  const built = await importByThreads(threads, asked);

  assert.deepEqual([built.rowCount, helps], [50, 1]);
});

test('where nobody can build, who has begun to read ends too; where nobody can read, nothing stays open', async () => {
  const path = folder.fileOf('nobody.csv', `number,note\n${longLines(50).join('\n')}\n`);
  const asked = longImport(path, 'ns/ab/n/segment/nobody');
  const refuses = () => Promise.reject(new Error('no thread is free'));
  const openPorts = () => process.getActiveResourcesInfo().filter((kind) => kind === 'MessagePort').length;
  const before = openPorts();
  let helps = 0;
  let reading: Promise<void> = Promise.resolve();
  const threads: ImportThreads = {
    read: (task, ports) => {
      reading = readImport(arrived(task, ports));
      return reading;
    },
    help: async () => {
      helps++;
    },
    build: refuses,
  };

  await assert.rejects(importByThreads(threads, asked), /no thread is free/u);
  await reading;
  await assert.rejects(importByThreads({ ...threads, read: refuses }, asked), /no thread is free/u);
  await eventually(() => openPorts() <= before, 'all ports are closed');
  assert.equal(helps, 0);
});
