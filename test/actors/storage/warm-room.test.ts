/** What a warm cache takes of the disk, measured on the disk. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openWarmCache, type WarmCache } from '../../../actors/storage/warm-cache.ts';
import { freeSpaceOf } from '../../../actors/storage/warm-folder.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { seededRandom } from '../../support/segments.ts';

const MiB = 1024 * 1024;
const plenty = { freeBytes: 1e12, totalBytes: 1e12 };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'warm-room-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return join(folder, 'cache');
}

function openIn(t: TestContext, folder: string, bytesMax: number, freeSpace = () => plenty): WarmCache {
  const cache = openWarmCache({ folder, bytesMax, log: silentLogger, freeSpace });
  t.after(() => cache.close());
  return cache;
}

const environmentOf = (folder: string) => join(folder, 'environment/data.mdb');

function takenBytes(folder: string): number {
  const files = readdirSync(join(folder, 'files')).map((file) => join(folder, 'files', file));
  const blocks = [environmentOf(folder), ...files].map(
    (path) => statSync(path, { throwIfNoEntry: false })?.blocks ?? 0,
  );
  return blocks.reduce((sum, count) => sum + count, 0) * 512;
}

/** Values of a segment's blocks, by size: small pages, document blocks, large sections. */
const sizes: Record<string, (random: () => number) => number> = {
  'pages up to 16 KB': (random) => 3_000 + random() * 13_000,
  'blocks up to 64 KB': (random) => 4_000 + random() * 60_000,
  'blocks and files': (random) => (random() < 0.1 ? 70_000 + random() * 500_000 : 100 + random() * 64_000),
};

/** Puts values of one kind until so many bytes were put, looking at the disk all the while. */
async function churn(
  cache: WarmCache,
  folder: string,
  options: { readonly size: (random: () => number) => number; readonly bytes: number; readonly seed: number },
): Promise<{ peakBytes: number; last: string }> {
  const random = seededRandom(options.seed);
  let put = 0;
  let peakBytes = 0;
  let last = '';
  for (let at = 0; put < options.bytes; at++) {
    const value = Buffer.alloc(Math.floor(options.size(random)), at);
    last = `segment-${options.seed}@${at}`;
    cache.put(last, value);
    put += value.length;
    if (at % 32 !== 0) continue;
    await cache.drained();
    peakBytes = Math.max(peakBytes, takenBytes(folder));
  }
  await cache.drained();
  return { peakBytes: Math.max(peakBytes, takenBytes(folder)), last };
}

for (const [name, size] of Object.entries(sizes)) {
  test(`four times its bound in ${name} never takes more of the disk than the bound`, async (t) => {
    // Smaller bounds are mostly what LMDB itself needs for a commit.
    const bytesMax = 16 * MiB;
    const folder = newFolder(t);
    const cache = openIn(t, folder, bytesMax);

    const { peakBytes, last } = await churn(cache, folder, { size, bytes: 4 * bytesMax, seed: 1 });

    t.diagnostic(`${(peakBytes / MiB).toFixed(1)} of ${bytesMax / MiB} MiB at most`);
    assert.ok(peakBytes <= bytesMax, `${peakBytes} of ${bytesMax} bytes`);
    assert.ok(peakBytes > bytesMax / 3, 'the bound is used');
    assert.notEqual(cache.get(last), undefined);
  });
}

test('values of one kind after another stay within the bound together', async (t) => {
  const bytesMax = 16 * MiB;
  const folder = newFolder(t);
  const cache = openIn(t, folder, bytesMax);
  // LMDB's file has grown to its share and keeps it: large values, in files, come on top. A look is due every 4 MiB.
  const slackBytes = 4 * MiB;

  await churn(cache, folder, { size: () => 30_000, bytes: 2 * bytesMax, seed: 2 });
  const { peakBytes, last } = await churn(cache, folder, {
    size: () => 300_000,
    bytes: 4 * bytesMax,
    seed: 3,
  });

  assert.ok(peakBytes <= bytesMax + slackBytes, `${peakBytes} of ${bytesMax} bytes`);
  assert.notEqual(cache.get(last), undefined);
  assert.ok(takenBytes(folder) <= bytesMax);
});

test('a bound that was lowered holds from the next opening on', async (t) => {
  const folder = newFolder(t);
  const large = openIn(t, folder, 32 * MiB);
  await churn(large, folder, { size: () => 30_000, bytes: 20 * MiB, seed: 4 });
  await large.close();

  const cache = openIn(t, folder, 8 * MiB);

  assert.ok(takenBytes(folder) <= 8 * MiB);
  cache.put('name', Buffer.alloc(10, 1));
  await cache.drained();
  assert.deepEqual(Buffer.from(cache.get('name') ?? []), Buffer.alloc(10, 1));
});

test('a folder that is deleted under a running cache is made anew, and answers stay right', async (t) => {
  const folder = newFolder(t);
  const cache = openIn(t, folder, 32 * MiB);
  cache.put('small', Buffer.alloc(1_000, 1));
  cache.put('large', Buffer.alloc(100_000, 2));
  await cache.drained();

  rmSync(folder, { recursive: true });

  for (const [name, length, fill] of [
    ['small', 1_000, 1],
    ['large', 100_000, 2],
  ] as const) {
    const found = cache.get(name);
    if (found !== undefined) assert.deepEqual(Buffer.from(found), Buffer.alloc(length, fill));
  }
  for (let at = 0; at < 400; at++) cache.put(`n${at}`, Buffer.alloc(30_000, at));
  await cache.drained();
  await new Promise((resolve) => setTimeout(resolve, 50));
  cache.put('after', Buffer.alloc(10, 3));
  await cache.drained();
  assert.ok(existsSync(environmentOf(folder)));
  assert.deepEqual(Buffer.from(cache.get('after') ?? []), Buffer.alloc(10, 3));
});

/** Why this machine gives no small disk; null where it does. */
function mountSmallDisk(folder: string, bytes: number): string | null {
  if (process.getuid?.() !== 0) return 'only root may mount a small disk';
  mkdirSync(folder);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], {
    encoding: 'utf8',
  });
  if (mounted.status !== 0) return `no small disk could be mounted: ${mounted.stderr.trim()}`;
  return null;
}

test('on a real small disk growth stops while half a gigabyte is free, and the cache goes on', async (t) => {
  const disk = newFolder(t);
  const refusal = mountSmallDisk(disk, 560 * MiB);
  if (refusal !== null) return t.skip(refusal);
  const folder = join(disk, 'cache');
  const cache = openWarmCache({ folder, bytesMax: 400 * MiB, log: silentLogger });
  try {
    const { last } = await churn(cache, folder, { size: () => 60_000, bytes: 120 * MiB, seed: 5 });

    // LMDB takes some pages more for what it replaces; below a quarter of a gigabyte nothing would be replaced.
    const { freeBytes } = freeSpaceOf(folder);
    assert.ok(freeBytes > 480 * MiB, `${freeBytes} bytes free`);
    assert.notEqual(cache.get(last), undefined);
  } finally {
    await cache.close();
    spawnSync('umount', ['-l', disk]);
  }
});
