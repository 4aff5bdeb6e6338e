import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openWarmCache, type WarmCache, type WarmCacheOptions } from '../../../actors/storage/warm-cache.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { eventually } from '../../support/eventually.ts';
import { findText } from '../../support/find-text.ts';
import { seededRandom } from '../../support/segments.ts';

const MiB = 1024 * 1024;
const plenty = { freeBytes: 1e12, totalBytes: 1e12 };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'warm-cache-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return join(folder, 'cache');
}

function openIn(t: TestContext, folder: string, options: Partial<WarmCacheOptions> = {}): WarmCache {
  const cache = openWarmCache({
    folder,
    bytesMax: 64 * MiB,
    log: silentLogger,
    freeSpace: () => plenty,
    ...options,
  });
  t.after(() => cache.close());
  return cache;
}

const bytesOf = (length: number, fill: number) => Buffer.alloc(length, fill);
const same = (found: Uint8Array | undefined, expected: Uint8Array) =>
  assert.deepEqual(found === undefined ? undefined : Buffer.from(found), Buffer.from(expected));

test('what was put is read at once, after its commit and after reopening, small and large', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder);
  const lengths = [0, 1, 31, 4028, 60_000, 65_536, 65_537, 3_000_000];
  const check = (from: WarmCache) => {
    for (const length of lengths) same(from.get(`a/b@${length}`), bytesOf(length, length % 251));
  };

  for (const length of lengths) cache.put(`a/b@${length}`, bytesOf(length, length % 251));
  check(cache);
  await cache.drained();
  check(cache);
  assert.equal(cache.stats().pendingBytes, 0);
  const { bytes } = cache.stats();
  await cache.close();
  const reopened = openIn(t, folder);

  check(reopened);
  assert.equal(reopened.stats().bytes, bytes);
  assert.equal(reopened.get('absent'), undefined);
});

test('the bytes are copied on the way in and on the way out', async (t) => {
  const cache = openIn(t, newFolder(t));
  const given = bytesOf(100, 1);

  cache.put('name', given);
  given.fill(2);
  await cache.drained();
  const first = cache.get('name');
  first?.fill(3);

  same(cache.get('name'), bytesOf(100, 1));
});

test('a name under meta is replaced, before and after its commit, inline by file and back', async (t) => {
  const cache = openIn(t, newFolder(t));
  for (const length of [100, 200, 100_000, 90_000, 50, 100_001]) {
    cache.put('meta/manifest', bytesOf(length, 1));
    cache.put('meta/manifest', bytesOf(length, 2));
    same(cache.get('meta/manifest'), bytesOf(length, 2));
    await cache.drained();
    same(cache.get('meta/manifest'), bytesOf(length, 2));
  }
  cache.remove('meta/manifest');
  assert.equal(cache.get('meta/manifest'), undefined);
  await cache.drained();
  assert.equal(cache.get('meta/manifest'), undefined);
  assert.equal(cache.stats().bytes, 0);
});

test('random operations answer as a map does', async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const folder = newFolder(t);
  const twin = new Map<string, Buffer>();
  let cache = openIn(t, folder);
  for (let step = 0; step < 2000; step++) {
    const name = `n${Math.floor(random() * 40)}`;
    const what = random();
    if (what < 0.4) {
      const value = bytesOf(Math.floor(random() * (random() < 0.2 ? 100_000 : 5000)), step % 256);
      cache.put(name, value);
      twin.set(name, value);
    } else if (what < 0.5) {
      cache.remove(name);
      twin.delete(name);
    } else if (what < 0.55) {
      await cache.drained();
    } else if (what < 0.56) {
      await cache.close();
      cache = openIn(t, folder);
    } else {
      assert.deepEqual(cache.get(name) && Buffer.from(cache.get(name) ?? []), twin.get(name));
    }
  }
  await cache.close();
  cache = openIn(t, folder);
  for (const [name, value] of twin) same(cache.get(name), value);
  assert.ok(cache.stats().bytes > 0);
  for (const name of twin.keys()) cache.remove(name);
  assert.equal(cache.stats().bytes, 0);
});

test('the bytes stay within their bound, the oldest go first, the used ones stay longer', async (t) => {
  const cache = openIn(t, newFolder(t), { bytesMax: 1 * MiB });
  for (let at = 0; at < 400; at++) {
    cache.put(`n${at}`, bytesOf(8000, at % 256));
    if (at > 0) assert.ok(cache.get('n0') !== undefined, `after ${at}`);
    if (at % 10 === 0) await cache.drained();
    assert.ok(cache.stats().bytes <= 1 * MiB);
  }
  await cache.drained();

  assert.equal(cache.get('n1'), undefined);
  same(cache.get('n399'), bytesOf(8000, 399 % 256));
  const kept = Array.from({ length: 400 }, (_, at) => cache.get(`n${at}`)).filter(
    (value) => value !== undefined,
  );
  assert.ok(kept.length > 80, `${kept.length} kept`);
});

/** Random words after the marker, so that each value is another one. */
const secretBytes = (length: number, random: () => number) => {
  const bytes = Buffer.alloc(length, 'the secret text, ');
  for (let at = 100; at < length; at += 50) bytes[at] = random() * 256;
  return bytes;
};
const marker = 'the secret text';

test('what is removed, replaced or evicted can be read from no page and no file of the folder', async (t) => {
  const random = seededRandom(5);
  const folder = newFolder(t);
  const cache = openIn(t, folder, { bytesMax: 4 * MiB, inlineBytesMax: 40_000 });
  for (const length of [50, 900, 3_000, 9_000, 60_000]) {
    cache.put(`small@${length}`, Buffer.from('nothing'));
    cache.put(`removed@${length}`, secretBytes(length, random));
    cache.put(`replaced@${length}`, secretBytes(length, random));
  }
  await cache.drained();
  assert.ok(findText(folder, marker).length >= 10, 'the search finds what is there');
  assert.equal(readFileSync(join(folder, 'environment/data.mdb')).includes(marker), false, 'sealed');
  for (const length of [50, 900, 3_000, 9_000, 60_000]) {
    cache.remove(`removed@${length}`);
    cache.put(`replaced@${length}`, Buffer.from('nothing'));
    cache.put(`evicted@${length}`, secretBytes(length, random));
    // Before its commit: what never came to the disk must not come later.
    cache.put(`at once@${length}`, secretBytes(length, random));
    cache.remove(`at once@${length}`);
  }
  for (let at = 0; at < 600; at++) {
    cache.put(`other@${at}`, bytesOf(9_000, at % 256));
    if (at % 50 === 0) await cache.drained();
  }
  assert.equal(cache.get('evicted@9000'), undefined);
  await cache.drained();
  assert.deepEqual(findText(folder, marker), []);
  await cache.close();
  assert.deepEqual(findText(folder, marker), []);
});

test('a namespace and an object are forgotten with all their names, for good, and their neighbours stay', async (t) => {
  const random = seededRandom(6);
  const folder = newFolder(t);
  // With room for all: what is not there was forgotten and not evicted.
  const cache = openIn(t, folder, { bytesMax: 256 * MiB });
  const names = (id: string) => [
    paths.namespaceManifest(id),
    ...Array.from({ length: 700 }, (_, at) => `${paths.namespaceSegment(id, 'first')}@${at * 9_000}`),
    `${paths.namespaceSegment(id, 'second')}@0`,
  ];
  const ids = Array.from({ length: 4 }, (_, at) => `${at}${'0'.repeat(31)}`);
  for (const id of ids) for (const name of names(id)) cache.put(name, secretBytes(300, random));
  await cache.drained();
  const [gone = '', pending = '', half = '', kept = ''] = ids;
  // Of these much is still on its way.
  for (const name of names(pending)) cache.put(name, secretBytes(80_000, random));
  const isThere = (id: string) => names(id).filter((name) => cache.get(name) !== undefined).length;
  assert.equal(isThere(kept), 702);

  await Promise.all([cache.forgetNamespace(gone), cache.forgetNamespace(pending)]);
  await cache.forgetObject(paths.namespaceSegment(half, 'first'));

  assert.deepEqual([gone, pending, half, kept].map(isThere), [0, 0, 2, 702]);
  assert.deepEqual(
    [...cache.objectKeys()].sort(),
    [
      paths.namespaceManifest(half),
      paths.namespaceSegment(half, 'second'),
      paths.namespaceManifest(kept),
      paths.namespaceSegment(kept, 'first'),
      paths.namespaceSegment(kept, 'second'),
    ].sort(),
  );
  // A read that was under way brings it.
  const late = [...names(gone).slice(0, 3), `${paths.namespaceSegment(half, 'first')}@1`];
  for (const name of late) cache.put(name, bytesOf(10, 1));
  const graph = join(folder, 'graph');
  writeFileSync(graph, 'graph');
  const file = { path: graph, length: 5, checksum: 1n };
  assert.equal(await cache.adopt(paths.namespaceGraph(gone, 'late'), file), false);
  assert.deepEqual(
    late.map((name) => cache.get(name)),
    late.map(() => undefined),
  );
  await cache.removeObject(paths.namespaceSegment(half, 'second'));
  cache.put(`${paths.namespaceSegment(half, 'second')}@0`, bytesOf(10, 1));
  assert.equal(isThere(half), 2);

  for (const id of [half, kept]) await cache.forgetNamespace(id);
  assert.equal(cache.stats().bytes, 0);
  await cache.close();
  assert.deepEqual(findText(folder, marker), []);
  assert.deepEqual(readdirSync(join(folder, 'files')), []);
});

test('keys that crashes left without a value do not pile up', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder, { bytesMax: 1 * MiB });
  cache.put('name', bytesOf(10, 1));
  await cache.close();
  writeFileSync(join(folder, 'keys'), Buffer.alloc(16 * 300, 1), { flag: 'a' });

  const second = openIn(t, folder, { bytesMax: 1 * MiB });
  assert.equal(second.get('name'), undefined, 'it starts empty');
  second.put('name', bytesOf(10, 2));
  same(second.get('name'), bytesOf(10, 2));
  assert.ok(readFileSync(join(folder, 'keys')).length <= 16);
});

test('evicted files are unlinked', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder, { bytesMax: 1 * MiB });
  for (let at = 0; at < 50; at++) {
    cache.put(`n${at}`, bytesOf(100_000, at));
    await cache.drained();
  }
  const files = () => readdirSync(join(folder, 'files')).length;
  await eventually(
    () => files() <= 10,
    () => `${files()} files are left`,
  );
  same(cache.get('n49'), bytesOf(100_000, 49));
});

test('files that no entry names are removed at the next opening', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder);
  cache.put('large', bytesOf(100_000, 1));
  await cache.close();
  writeFileSync(join(folder, 'files', '9999'), 'stray');
  writeFileSync(join(folder, 'files', '7.part'), 'half');

  const reopened = openIn(t, folder);

  assert.equal(readdirSync(join(folder, 'files')).length, 1);
  same(reopened.get('large'), bytesOf(100_000, 1));
});

test('a nearly full disk stops growth and not service', async (t) => {
  let free = plenty;
  const cache = openIn(t, newFolder(t), { freeSpace: () => free });
  for (let at = 0; at < 20; at++) cache.put(`n${at}`, bytesOf(5000, at));
  await cache.drained();
  const { bytes } = cache.stats();

  for (free of [
    { freeBytes: 300 * MiB, totalBytes: 1000 * MiB },
    { freeBytes: 4000 * MiB, totalBytes: 100_000 * MiB },
  ]) {
    // The look at the disk is due after some megabytes of puts.
    for (let at = 0; at < 3000; at++) {
      cache.put(`more${at % 1000}`, bytesOf(5000, at % 256));
      if (at % 100 === 0) await cache.drained();
    }
    assert.ok(cache.stats().bytes < bytes + 6 * MiB, `${cache.stats().bytes} bytes`);
  }
  same(cache.get('more999'), bytesOf(5000, 2999 % 256));
  free = { freeBytes: 100 * MiB, totalBytes: 1000 * MiB };
  cache.put('none', bytesOf(5000, 1));
  assert.equal(cache.get('none'), undefined, 'a disk that is all but full is left alone');
});

test('more bytes on their way than the disk takes are dropped', async (t) => {
  const cache = openIn(t, newFolder(t), { bytesMax: 500 * MiB });

  for (let at = 0; at < 200; at++) cache.put(`n${at}`, bytesOf(1 * MiB, at));

  assert.ok(cache.stats().pendingBytes <= 65 * MiB);
  await cache.drained();
  cache.put('n199', bytesOf(1 * MiB, 199));
  same(cache.get('n199'), bytesOf(1 * MiB, 199));
  await cache.drained();
});

test('values that never fit are not kept', (t) => {
  const cache = openIn(t, newFolder(t), { bytesMax: 100_000 });

  cache.put('larger than the cache', bytesOf(200_000, 1));
  cache.put('n'.repeat(2000), bytesOf(10, 1));

  assert.equal(cache.get('larger than the cache'), undefined);
  assert.equal(cache.get('n'.repeat(2000)), undefined);
});

test('wiping forgets everything and goes on', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder);
  cache.put('small', bytesOf(10, 1));
  cache.put('large', bytesOf(100_000, 1));

  await cache.wipe();

  assert.equal(cache.get('small'), undefined);
  assert.equal(cache.get('large'), undefined);
  assert.deepEqual(readdirSync(join(folder, 'files')), []);
  cache.put('small', bytesOf(10, 2));
  await cache.drained();
  same(cache.get('small'), bytesOf(10, 2));
});

test('a closed cache finds nothing, keeps nothing and closes twice', async (t) => {
  const cache = openIn(t, newFolder(t));
  await cache.close();

  cache.put('name', bytesOf(10, 1));

  assert.equal(cache.get('name'), undefined);
  assert.equal(cache.stats().serving, false);
  await cache.close();
});

test('a folder that cannot be made leaves a cache that keeps nothing', async (t) => {
  const folder = newFolder(t);
  writeFileSync(folder, 'a file where the folder should be');
  chmodSync(folder, 0o400);

  const cache = openIn(t, join(folder, 'below'));

  cache.put('name', bytesOf(10, 1));
  assert.equal(cache.get('name'), undefined);
  assert.equal(cache.stats().serving, false);
  await cache.wipe();
});

test('a start of the machine after an unclean end empties the folder; after a clean one it does not', async (t) => {
  const folder = newFolder(t);
  const marker = join(folder, 'marker.json');
  const otherBoot = (closedInOrder: boolean) =>
    writeFileSync(marker, JSON.stringify({ format: 2, boot: 'another', closedInOrder }));
  const cache = openIn(t, folder);
  cache.put('name', bytesOf(10, 1));
  await cache.close();

  otherBoot(true);
  const second = openIn(t, folder);
  same(second.get('name'), bytesOf(10, 1));
  await second.close();

  otherBoot(false);
  assert.equal(openIn(t, folder).get('name'), undefined);
});

/** What one life with a folder found in it. */
interface Found {
  readonly hits: number;
  readonly wrong: number;
  readonly storeGets: number;
}

interface ChildResult {
  readonly signal: string | null;
  /** A life each, up to the one that native code ended. */
  readonly found: readonly Found[];
}

/** A process lasts about a second; native code that walks a circle of damaged pages lasts for ever. */
const lifeMsMax = 20_000;

/**
 * A process that opens, uses and closes each of the folders. Only native code may end it early: by a crash, or by never
 * coming back, where whoever watches the process has to end it.
 */
function live(folders: readonly string[], end: 'close' | 'kill' = 'close'): ChildResult {
  const script = fileURLToPath(new URL('../../support/warm-cache-child.js', import.meta.url));
  const limit = { timeout: lifeMsMax, killSignal: 'SIGKILL' } as const;
  const child = spawnSync(process.execPath, [script, end, ...folders], { encoding: 'utf8', ...limit });
  const lines = child.stdout.split('\n').filter((line) => line !== '');
  if (child.signal === null) assert.equal(child.status, 0, child.stderr);
  else assert.ok(['SIGBUS', 'SIGSEGV', 'SIGABRT', 'SIGKILL'].includes(child.signal), child.signal);
  return { signal: child.signal, found: lines.map((line) => JSON.parse(line) as Found) };
}

test('a killed process leaves a cache that the next one uses', (t) => {
  const folder = newFolder(t);

  const first = live([folder], 'kill');
  const second = live([folder]);

  assert.deepEqual(
    first.found.map(({ hits, wrong }) => [hits, wrong]),
    [[0, 0]],
  );
  assert.deepEqual(second.found, [{ hits: 200, wrong: 0, storeGets: 0 }]);
});

type Damage = (folder: string, random: () => number) => void;

function edited(path: string, edit: (bytes: Buffer) => void): void {
  const bytes = readFileSync(path);
  edit(bytes);
  writeFileSync(path, bytes);
}

const data = (folder: string) => join(folder, 'environment/data.mdb');
const filesOf = (folder: string) =>
  readdirSync(join(folder, 'files')).map((file) => join(folder, 'files', file));
const randomAt = (bytes: Buffer, random: () => number, from = 0) =>
  from + Math.floor(random() * (bytes.length - from));

/** What native code maps: it may end the process, so each gets one of its own. */
const damagesOfEnvironment: Record<string, Damage> = {
  'the environment is empty': (folder) => truncateSync(data(folder), 0),
  'the environment is cut to one page and a half': (folder) => truncateSync(data(folder), 6000),
  'the environment is cut in half': (folder) =>
    truncateSync(data(folder), Math.floor(readFileSync(data(folder)).length / 2)),
  'the environment lacks its last pages': (folder) =>
    truncateSync(data(folder), readFileSync(data(folder)).length - 30 * 4096),
  'a head of the environment is overwritten': (folder, random) =>
    edited(data(folder), (bytes) => bytes.fill(random() * 256, 16, 200)),
  'single bits of the environment are flipped': (folder, random) =>
    edited(data(folder), (bytes) => {
      for (let i = 0; i < 300; i++) {
        const at = randomAt(bytes, random, 8192);
        bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random() * 8));
      }
    }),
  'pages of the environment are zero': (folder, random) =>
    edited(data(folder), (bytes) => {
      for (let i = 0; i < 20; i++) {
        const at = randomAt(bytes, random, 8192) & ~4095;
        bytes.fill(0, at, at + 4096);
      }
    }),
  'pages of the environment are swapped': (folder, random) =>
    edited(data(folder), (bytes) => {
      for (let i = 0; i < 50; i++) {
        const [a, b] = [randomAt(bytes, random, 8192) & ~4095, randomAt(bytes, random, 8192) & ~4095];
        const page = Buffer.from(bytes.subarray(a, a + 4096));
        bytes.copyWithin(a, b, b + 4096);
        page.copy(bytes, b);
      }
    }),
};

/** What our own code reads: one process looks at all of them. */
const damagesOfFiles: Record<string, Damage> = {
  'the folder is gone': (folder) => rmSync(folder, { recursive: true, maxRetries: 10, retryDelay: 50 }),
  'the environment is gone': (folder) =>
    rmSync(join(folder, 'environment'), { recursive: true, maxRetries: 10, retryDelay: 50 }),
  'the files are gone': (folder) =>
    rmSync(join(folder, 'files'), { recursive: true, maxRetries: 10, retryDelay: 50 }),
  'the marker is rubbish': (folder) => writeFileSync(join(folder, 'marker.json'), '{'),
  'single bits of the files are flipped': (folder, random) => {
    for (const file of filesOf(folder)) {
      edited(file, (bytes) => {
        const at = randomAt(bytes, random);
        bytes[at] = (bytes[at] as number) ^ 4;
      });
    }
  },
  'the files are each other': (folder) => {
    const files = filesOf(folder);
    const contents = files.map((file) => readFileSync(file));
    files.forEach((file, at) => {
      writeFileSync(file, contents[(at + 1) % files.length] as Buffer);
    });
  },
  'the files are cut': (folder) => {
    for (const file of filesOf(folder)) truncateSync(file, 1000);
  },
};

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));

/** A folder that one life has filled; each damage has a copy of it. */
let filled = '';
before(() => {
  filled = join(mkdtempSync(join(tmpdir(), 'warm-cache-')), 'cache');
  assert.deepEqual(
    live([filled]).found.map(({ wrong }) => wrong),
    [0],
  );
});
after(() => rmSync(join(filled, '..'), { recursive: true, force: true }));

function damagedFolder(t: TestContext, damage: Damage): string {
  t.diagnostic(`seed ${seed}`);
  const folder = newFolder(t);
  cpSync(filled, folder, { recursive: true });
  damage(folder, seededRandom(seed));
  return folder;
}

function assertNoneWrong({ found }: ChildResult): void {
  for (const { wrong } of found) assert.equal(wrong, 0);
}

for (const [name, damage] of Object.entries(damagesOfEnvironment)) {
  test(`never a wrong answer where ${name}`, (t) => {
    const folder = damagedFolder(t, damage);

    const life = live([folder, folder]);
    assertNoneWrong(life);

    if (life.signal !== null) {
      t.diagnostic(`the process ended by ${life.signal}`);
      // What the supervisor does after a second abnormal end: start without the folder.
      if (live([folder]).signal !== null)
        rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
      const last = live([folder]);
      assert.equal(last.signal, null);
      assertNoneWrong(last);
    }
    assert.ok(existsSync(data(folder)));
  });
}

test(`never a wrong answer where ${Object.keys(damagesOfFiles).join(', ')}`, (t) => {
  const folders = Object.values(damagesOfFiles).map((damage) => damagedFolder(t, damage));

  const lives = live(folders.flatMap((folder) => [folder, folder]));

  assert.equal(lives.signal, null, 'nothing here is native code');
  assert.equal(lives.found.length, 2 * folders.length);
  assertNoneWrong(lives);
  for (const folder of folders) assert.ok(existsSync(data(folder)));
});
