import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { FolderInUse, lockFolder } from '../../../src/cluster/folder-lock.ts';

let folder: string;
const take = (waitMs = 0, path = folder) => lockFolder(path, { clock: systemClock, waitMs });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidebase-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a folder is one process’s until that lets it go, by whatever name it is called, and nothing lies in it', async () => {
  const release = await take();
  const other = `${folder}-other`;
  symlinkSync(folder, other);

  await assert.rejects(
    take(0, other),
    (error) => error instanceof FolderInUse && error.message.includes(other),
  );
  assert.deepEqual(readdirSync(folder), []);
  release();
  (await take())();
  rmSync(other);
});

test('who is about to end is waited for', async () => {
  const release = await take();
  setTimeout(release, 300);

  (await take(20_000))();
});

test('of many who ask at once one has it', async () => {
  const tries = await Promise.allSettled(Array.from({ length: 16 }, () => take()));

  const held = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  assert.equal(held.length, 1);
  for (const each of tries) if (each.status === 'rejected') assert.ok(each.reason instanceof FolderInUse);
  held[0]?.();
});
