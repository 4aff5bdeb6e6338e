import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DataError } from '../../../src/base/assert.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { FsObjectStore } from '../../../src/object-store/fs-object-store.ts';
import { tidyFolder } from '../../../src/object-store/fs-tidy.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { counterBody, readCounter } from '../../support/counter-object.ts';

const childScript = fileURLToPath(new URL('../../support/fs-store-child.js', import.meta.url));
const key = 'counters/a';
/** How often writers are killed, put to sleep and raced; the suite does a few. */
const rounds = Number(process.env.FS_STORE_ROUNDS ?? 6);

describe('the folder store', { timeout: 120_000 }, () => {
  let folder: string;
  let store: FsObjectStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidebase-fs-'));
    store = await FsObjectStore.open(folder, systemClock, systemRandom);
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.process.kill('SIGKILL');
      await child.ended;
    }
    await store.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  });

  const startCounter = async () => {
    const created = await store.putIfAbsent(key, [counterBody(0)]);
    assert.equal(created.kind, 'stored');
  };

  /** Adds one; false where somebody else was faster. */
  const increment = async () => {
    const { value, etag } = await readCounter(store, key);
    return (await store.putIfMatch(key, [counterBody(value + 1)], etag)).kind === 'stored';
  };

  const incrementTimes = async (times: number) => {
    for (let done = 0; done < times; ) if (await increment()) done++;
  };

  const put = async (name: string, text: string) => {
    const stored = await store.putIfAbsent(name, [Buffer.from(text)]);
    assert.ok(stored.kind === 'stored');
    return stored;
  };
  const update = async (name: string, text: string, etag: string) => {
    const stored = await store.putIfMatch(name, [Buffer.from(text)], etag);
    assert.ok(stored.kind === 'stored');
    return stored.etag;
  };
  const etagOf = async (name: string) => (await store.get(name))?.etag ?? '';
  const textOf = async (name: string) => Buffer.from((await store.get(name))?.bytes ?? []).toString();
  const tidy = () =>
    tidyFolder(folder, systemRandom, {
      isOver: () => false,
      onDamage: (error) => assert.fail(error),
    });

  describe('shared by processes', () => {
    it('loses no update of four processes that count up one object', async () => {
      await startCounter();
      const counters = Array.from({ length: 4 }, () => startChild(folder, 30));
      await Promise.all(counters.map((child) => child.ended));
      const counted = counters.flatMap((child) => child.acknowledged()).sort((a, b) => a - b);
      assert.deepEqual(
        counted,
        Array.from({ length: 120 }, (_, i) => i + 1),
      );
      assert.equal((await readCounter(store, key)).value, 120);
    });

    it('keeps every acknowledged update when writers are killed, and goes on', async () => {
      await startCounter();
      for (let round = 0; round < rounds; round++) {
        const before = (await readCounter(store, key)).value;
        const writers = [startChild(folder, 100_000), startChild(folder, 100_000)];
        await Promise.all(writers.map((child) => child.firstLine));
        await pause(Math.random() * 30);
        for (const child of writers) child.process.kill('SIGKILL');
        await Promise.all(writers.map((child) => child.ended));

        const acknowledged = writers.flatMap((child) => child.acknowledged());
        assert.equal(new Set(acknowledged).size, acknowledged.length, 'two writers won the same version');
        const { value } = await readCounter(store, key);
        assert.ok(
          value >= Math.max(...acknowledged),
          `round ${round}: acknowledged ${acknowledged.at(-1)}, found ${value}`,
        );
        // Each killed writer may have stored one update that it could not tell of.
        const untold = value - before - acknowledged.length;
        assert.ok(untold >= 0 && untold <= 2, `round ${round}: ${untold} updates from nowhere`);
        await incrementTimes(1);
      }
      const [incarnation = ''] = await readdir(`${folder}/${key}@`);
      assert.ok(
        (await readdir(`${folder}/${key}@/${incarnation}`)).length <= 4,
        'killed writers leave heaps behind',
      );
    });

    it('never lets a writer win that slept while others went on', async () => {
      await startCounter();
      const child = startChild(folder, 100_000);
      await child.firstLine;
      let own = 0;
      for (let round = 0; round < 2 * rounds; round++) {
        child.process.kill('SIGSTOP');
        await incrementTimes(3);
        own += 3;
        const { value } = await readCounter(store, key);
        child.process.kill('SIGCONT');
        // Lines from before its sleep may still come; one above proves that it woke and went on.
        while (!child.acknowledged().some((line) => line > value)) await pause(1);
        await pause(Math.random() * 5);
      }
      child.process.kill('SIGKILL');
      await child.ended;
      const untold = (await readCounter(store, key)).value - own - child.acknowledged().length;
      assert.ok(untold === 0 || untold === 1, `${untold} updates lost or made up`);
    });

    it('shows readers whole versions that never go back while another process writes', async () => {
      await startCounter();
      const child = startChild(folder, 150);
      const hammer = async () => {
        for (let last = 0; last < 150; ) {
          const { value } = await readCounter(store, key);
          assert.ok(value >= last, `version ${value} after ${last}`);
          last = value;
        }
      };
      await Promise.all([child.ended, hammer(), hammer(), hammer()]);
    });

    it('never brings back an object that is deleted, re-created and updated in races', async () => {
      const other = await FsObjectStore.open(folder, systemClock, systemRandom);
      for (let round = 0; round < 5 * rounds; round++) {
        const first = await store.putIfAbsent(key, [counterBody(1)]);
        assert.ok(first.kind === 'stored');
        if (round % 2 === 0) await store.putIfMatch(key, [counterBody(2)], first.etag);
        const { etag } = await readCounter(store, key);
        const update = other.putIfMatch(key, [counterBody(3)], etag).catch(unknownOnly);
        await pause(Math.random() * 3);
        await store.delete(key);
        assert.equal(await store.get(key), null, 'the delete came back undone');
        await update;
        assert.equal(await store.get(key), null, `round ${round}: an update undid the delete`);
      }
      assert.deepEqual(await readdir(`${folder}/counters`), []);
      await other.close();
    });
  });

  describe('on the disk', () => {
    it('keeps an object that never changed as one file, and no temporary one', async () => {
      await store.putIfAbsent('log/x/1', [Buffer.from('hello')]);
      assert.deepEqual(await readdir(`${folder}/log/x`), ['1']);
      assert.equal((await readFile(`${folder}/log/x/1`)).subarray(32).toString(), 'hello');
      assert.deepEqual(await readdir(`${folder}/.tmp`), []);
    });

    it('keeps one version of an object that changed often', async () => {
      await startCounter();
      await incrementTimes(30);
      const [incarnation = '', ...others] = await readdir(`${folder}/${key}@`);
      assert.deepEqual(others, []);
      assert.equal((await readdir(`${folder}/${key}@/${incarnation}`)).length, 2);
    });

    it('keeps nothing of what an update replaced, the first version included', async () => {
      let { etag } = await put('record', 'hash-of-an-old-password');
      for (const next of ['second', 'third']) {
        etag = await update('record', next, etag);
        const left = await bytesUnder(folder);
        assert.equal(left.includes('old-password'), false, `the first version is there after "${next}"`);
        assert.equal(left.includes('second'), next === 'second');
        assert.equal(await textOf('record'), next);
        assert.equal((await store.list('', { limit: 10 })).objects[0]?.size, next.length);
      }
      assert.equal(await store.getIfChanged('record', etag), 'unchanged');
      const tail = await store.get('record', { range: { offset: 2, length: 9 } });
      assert.equal(Buffer.from(tail?.bytes ?? []).toString(), 'ird');
      assert.equal(tail?.size, 5);
    });

    it('removes first versions that an earlier release kept, with the next update and by tidying', async () => {
      for (const name of ['updated', 'idle', 'deleted', 'never-updated']) await put(name, `first of ${name}`);
      for (const name of ['updated', 'idle', 'deleted']) {
        const first = await readFile(`${folder}/${name}`);
        await update(name, `second of ${name}`, await etagOf(name));
        // As it was left before updates removed it.
        first.set(Buffer.from('more'), 4);
        await writeFile(`${folder}/${name}`, first);
        assert.equal(await textOf(name), `second of ${name}`);
      }
      // A process that was killed between the two steps of a delete.
      await rm(`${folder}/deleted`);
      const other = await FsObjectStore.open(folder, systemClock, systemRandom);
      await other.putIfMatch('updated', [Buffer.from('third')], await etagOf('updated'));
      await other.close();
      assert.equal((await bytesUnder(folder)).includes('first of updated'), false);
      await tidy();
      const left = await bytesUnder(folder);
      for (const text of ['first of idle', 'of deleted']) assert.equal(left.includes(text), false, text);
      assert.equal(await textOf('updated'), 'third');
      assert.equal(await textOf('idle'), 'second of idle');
      assert.equal(await textOf('never-updated'), 'first of never-updated');
      assert.equal(await store.get('deleted'), null);
    });

    it('removes what a killed writer superseded when the folder is tidied, while others write', async () => {
      await startCounter();
      for (let round = 0; round < rounds; round++) {
        const child = startChild(folder, 100_000);
        await child.firstLine;
        await Promise.all([tidy(), incrementTimes(3), tidy()]);
        child.process.kill('SIGKILL');
        await child.ended;
        await tidy();
        const acknowledged = child.acknowledged();
        assert.ok((await readCounter(store, key)).value >= Math.max(...acknowledged));
        const [incarnation = ''] = await readdir(`${folder}/${key}@`);
        const names = await readdir(`${folder}/${key}@/${incarnation}`);
        // What it had written of the next version is no superseded one; the next writer removes it.
        const current = names.find((name) => name.startsWith('current.'))?.slice('current.'.length) ?? '';
        assert.ok(names.includes(current), names.join(' '));
        const older = names.filter((name) => name < current);
        assert.deepEqual(older, [], 'superseded versions');
        assert.equal((await readFile(`${folder}/${key}`)).length, 32);
      }
    });

    it('says so where the versions of an updated object are gone', async () => {
      await startCounter();
      await incrementTimes(1);
      await rm(`${folder}/${key}@`, { recursive: true });
      await assert.rejects(store.get(key), (error) => error instanceof DataError);
    });

    it('leaves nothing of a deleted object but its folder', async () => {
      await startCounter();
      await incrementTimes(3);
      await store.delete(key);
      assert.deepEqual(await readdir(`${folder}/counters`), []);
    });

    it('reads and updates an object whose first update was cut off after its mark', async () => {
      await startCounter();
      await setMark(`${folder}/${key}`);
      const { value, etag } = await readCounter(store, key);
      assert.equal(value, 0);
      assert.equal(await store.getIfChanged(key, etag), 'unchanged');
      await incrementTimes(2);
      assert.equal((await readCounter(store, key)).value, 2);
    });

    it('passes over and removes the bytes of a killed writer', async () => {
      await startCounter();
      await incrementTimes(2);
      const [incarnation = ''] = await readdir(`${folder}/${key}@`);
      const versions = `${folder}/${key}@/${incarnation}`;
      await writeFile(`${versions}/${'4'.padStart(20, '0')}.0123456789abcdef`, 'half');
      assert.equal((await readCounter(store, key)).value, 2);
      await incrementTimes(1);
      assert.equal((await readCounter(store, key)).value, 3);
      assert.equal((await readdir(versions)).length, 2);
    });

    it('does not take up what a cut-off delete left beside the key', async () => {
      await startCounter();
      await incrementTimes(2);
      const stale = (await readCounter(store, key)).etag;
      await rm(`${folder}/${key}`);
      assert.equal(await store.get(key), null);
      assert.deepEqual(await store.list('', { limit: 10 }), { objects: [], more: false });
      assert.equal((await store.putIfMatch(key, [counterBody(9)], stale)).kind, 'refused');
      await startCounter();
      assert.equal((await store.putIfMatch(key, [counterBody(9)], stale)).kind, 'refused');
      await incrementTimes(1);
      assert.equal((await readCounter(store, key)).value, 1);
      await store.delete(key);
      assert.deepEqual(await readdir(`${folder}/counters`), []);
    });

    it('removes temporary files and folders older than an hour when it is opened', async () => {
      const hourAgo = Date.now() / 1000 - 3700;
      await writeFile(`${folder}/.tmp/old`, 'x');
      await writeFile(`${folder}/.tmp/young`, 'x');
      await mkdir(`${folder}/.tmp/old-folder`);
      await writeFile(`${folder}/.tmp/old-folder/bytes`, 'x');
      for (const name of ['old', 'old-folder']) await utimes(`${folder}/.tmp/${name}`, hourAgo, hourAgo);
      await (await FsObjectStore.open(folder, systemClock, systemRandom)).close();
      assert.deepEqual(await readdir(`${folder}/.tmp`), ['young']);
    });

    it('survives the removal of its folders by hand', async () => {
      await store.putIfAbsent('log/x/1', [Buffer.from('1')]);
      await rm(`${folder}/log`, { recursive: true, maxRetries: 10, retryDelay: 50 });
      assert.equal((await store.putIfAbsent('log/x/1', [Buffer.from('2')])).kind, 'stored');
    });

    it('names the file and the place where an object ends early or is no object', async () => {
      await store.putIfAbsent('a/cut', [Buffer.alloc(100_000)]);
      await truncate(`${folder}/a/cut`, 50_000);
      await writeFile(`${folder}/a/foreign`, 'not made by this store, whatever it is');
      await writeFile(`${folder}/a/empty`, '');
      for (const name of ['cut', 'foreign', 'empty'])
        await assert.rejects(store.get(`a/${name}`), (error) => {
          assert.ok(error instanceof DataError);
          return error.place.endsWith(name);
        });
    });

    it('finds any damage of the header of a file', async () => {
      const header = 32;
      await store.putIfAbsent('a/object', [Buffer.from('object')]);
      const intact = await readFile(`${folder}/a/object`);
      for (let at = 0; at < header; at++) {
        for (const change of [0x01, 0x80, intact[at] ?? 0]) {
          if (change === 0) continue;
          const damaged = Buffer.from(intact);
          damaged[at] = (damaged[at] ?? 0) ^ change;
          await writeFile(`${folder}/a/object`, damaged);
          await assert.rejects(store.get('a/object'), DataError, `byte ${at}`);
        }
      }
      await writeFile(`${folder}/a/object`, intact);
      assert.notEqual(await store.get('a/object'), null);
    });

    it('reads bytes that were appended behind an object as not there', async () => {
      await store.putIfAbsent('a/longer', [Buffer.from('object')]);
      await appendFile(`${folder}/a/longer`, 'more');
      assert.equal(Buffer.from((await store.get('a/longer'))?.bytes ?? []).toString(), 'object');
      const tail = await store.get('a/longer', { range: { offset: 4, length: 10 } });
      assert.equal(Buffer.from(tail?.bytes ?? []).toString(), 'ct');
    });
  });

  it('answers a call that takes too long, and says that a write may still be stored', async () => {
    const impatient: Clock = {
      ...systemClock,
      after(_ms, run) {
        queueMicrotask(run);
        return () => {};
      },
    };
    const hasty = await FsObjectStore.open(folder, impatient, systemRandom);
    const timedOut = (outcome: string) => (error: unknown) =>
      error instanceof StoreError && error.reason === 'timeout' && error.outcome === outcome;
    await assert.rejects(hasty.putIfAbsent(key, [counterBody(0)]), timedOut('unknown'));
    await assert.rejects(hasty.get(key), timedOut('not-applied'));
    await hasty.close();
  });

  it('ends calls in flight when it is closed', async () => {
    const put = store.putIfAbsent(key, [counterBody(0)]);
    const get = store.get(key);
    await Promise.all([
      assert.rejects(put, (error) => error instanceof StoreError && error.outcome === 'unknown'),
      assert.rejects(get, (error) => error instanceof StoreError && error.outcome === 'not-applied'),
      store.close(),
    ]);
  });
});

/** All bytes of all files below a folder, one after the other. */
async function bytesUnder(folder: string): Promise<Buffer> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Buffer.concat(
    await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name)))),
  );
}

function unknownOnly(error: unknown): void {
  assert.ok(error instanceof StoreError && error.outcome === 'unknown', String(error));
}

async function setMark(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes.set(Buffer.from('more'), 4);
  await writeFile(file, bytes);
}

/** All that were started, so that a failed test leaves none behind. */
const children: Child[] = [];

interface Child {
  readonly process: ChildProcess;
  readonly firstLine: Promise<unknown>;
  readonly ended: Promise<unknown>;
  acknowledged(): number[];
}

function startChild(folder: string, increments: number): Child {
  const child = spawn(process.execPath, [childScript, folder, key, String(increments)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  const started: Child = {
    process: child,
    firstLine: once(child.stdout, 'data'),
    ended: once(child, 'close'),
    acknowledged: () =>
      output
        .slice(0, output.lastIndexOf('\n') + 1)
        .split('\n')
        .filter(Boolean)
        .map(Number),
  };
  children.push(started);
  return started;
}
