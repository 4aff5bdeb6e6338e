import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { noteCacheEnd, prepareCacheFolder } from '../../../src/cluster/cache-folder.ts';

/** A server that starts at a moment; answers whether it found what its threads had cached. */
function serverIn(t: TestContext) {
  const folder = join(mkdtempSync(join(tmpdir(), 'cache-folder-')), 'cache');
  t.after(() => rmSync(join(folder, '..'), { recursive: true, force: true }));
  const cached = join(folder, '0', 'something');
  const start = async (atMs: number, changes: { afterCrash?: boolean; actorThreads?: number } = {}) => {
    const clock = { ...systemClock, now: () => atMs };
    const given = { folder, actorThreads: 2, clock, log: silentLogger, afterCrash: false, ...changes };
    await prepareCacheFolder(given);
    const found = existsSync(cached);
    mkdirSync(join(folder, '0'), { recursive: true });
    writeFileSync(cached, 'x');
    return found;
  };
  return { folder, start, end: () => noteCacheEnd(folder) };
}

test('an orderly end and one abnormal end keep the cache', async (t) => {
  const { start, end } = serverIn(t);

  assert.equal(await start(0), false, 'nothing is there at first');
  await end();
  assert.equal(await start(1_000), true);
  // Killed.
  assert.equal(await start(2_000), true);
});

test('another number of threads empties it, since a namespace may live on another one', async (t) => {
  const { start, end } = serverIn(t);
  await start(0, { actorThreads: 3 });
  await end();

  assert.equal(await start(1_000, { actorThreads: 2 }), false);
  await end();
  assert.equal(await start(2_000, { actorThreads: 2 }), true);
});

test('two abnormal ends within a minute empty it, with more than a minute between them they do not', async (t) => {
  const { start } = serverIn(t);
  await start(0);
  await start(100_000);

  assert.equal(await start(170_000), true);
  assert.equal(await start(229_000), false);
});

test('an orderly end between two abnormal ones parts them', async (t) => {
  const { start, end } = serverIn(t);
  await start(0);
  await start(1_000);
  await end();
  await start(2_000);

  assert.equal(await start(3_000), true);
});

test('a crash of native code empties it at once', async (t) => {
  const { start, end } = serverIn(t);
  await start(0);
  await end();

  assert.equal(await start(1_000, { afterCrash: true }), false);
  assert.equal(await start(200_000), true);
});

test('only folders of threads are removed, those of threads that are no more among them', async (t) => {
  const { folder, start } = serverIn(t);
  await start(0);
  mkdirSync(join(folder, '3'));
  writeFileSync(join(folder, 'mine.txt'), 'of somebody else');

  await start(1_000, { actorThreads: 2 });
  assert.deepEqual(readdirSync(folder).sort(), ['0', 'ends.json', 'mine.txt']);

  await start(2_000, { afterCrash: true });
  assert.ok(existsSync(join(folder, 'mine.txt')));
});

test('a damaged note, or a folder in its place, is as good as none', async (t) => {
  const { folder, start } = serverIn(t);
  await start(0);
  writeFileSync(join(folder, 'ends.json'), '{"running":');
  assert.equal(await start(1_000), true);

  rmSync(join(folder, 'ends.json'));
  mkdirSync(join(folder, 'ends.json', 'below'), { recursive: true });
  assert.equal(await start(2_000), true);
  assert.equal(await start(3_000), true);
  assert.equal(await start(4_000), false, 'it counts again');
});

test('a folder that cannot be made stops nobody', async (t) => {
  const { folder, start } = serverIn(t);
  writeFileSync(folder, 'a file');

  await prepareCacheFolder({
    folder,
    actorThreads: 1,
    clock: systemClock,
    log: silentLogger,
    afterCrash: false,
  });
  await noteCacheEnd(folder);

  rmSync(folder);
  assert.equal(await start(0), false);
});
