/**
 * A process that is killed between any two steps of a namespace's upkeep: flush, merge, and the deletion of what was merged. Each
 * call for an object of the namespace is the last one in its turn; actors/README.md tells what becomes of what it leaves.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeManifest } from '../../../actors/storage/manifest.ts';
import { objectsOfManifest } from '../../../actors/storage/shared-objects.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';

const hourMs = 3_600_000;
const flushMs = 330_000;
/** Flushes until neighbouring segments are merged (compaction-policy.ts). */
const flushesUntilMerge = 4;

/** Larger than the manifest's tail, so that a flush makes a segment of it. */
const large = (id: string, word: string) => ({ id, text: `${word} ${'tide '.repeat(60_000)}` });

async function keysOf(store: MemoryObjectStore, prefix = ''): Promise<string[]> {
  return (await store.list(prefix, { limit: 1_000 })).objects.map(({ key }) => key);
}

async function copyOf(store: MemoryObjectStore, clock: FakeClock): Promise<MemoryObjectStore> {
  const copy = new MemoryObjectStore(clock);
  for (const key of await keysOf(store)) {
    const found = await store.get(key);
    assert.ok(found);
    await copy.putIfAbsent(key, [found.bytes]);
  }
  return copy;
}

/** Objects of the namespace that its manifest names, and those that it does not name. */
async function objectsOf(store: MemoryObjectStore) {
  const keys = await keysOf(store, 'ns/');
  const manifestKey = keys.find((key) => key.endsWith('/manifest')) ?? assert.fail('there is no manifest');
  const found = await store.get(manifestKey);
  const manifest = decodeManifest(found?.bytes ?? new Uint8Array(), manifestKey);
  const known = new Set([manifestKey, ...objectsOfManifest(manifest)]);
  return {
    segments: manifest.segments.length,
    lost: [...known].filter((key) => !keys.includes(key)),
    orphans: keys.filter((key) => !known.has(key)),
  };
}

/** A namespace that one more flush makes ready for a merge, by a process that ended in order. */
async function almostMerged(clock: FakeClock): Promise<MemoryObjectStore> {
  const store = new MemoryObjectStore(clock);
  const process = await clock.run(InProcess.start({ store, clock, random: seededBytes(1) }));
  await clock.run(process.createTenant());
  for (let flush = 1; flush < flushesUntilMerge; flush++) {
    await clock.run(process.put('n', [large(`a${flush}`, 'first'), large(`b${flush}`, 'first')]));
    await clock.advance(flushMs);
  }
  await clock.run(process.drain());
  return store;
}

for (const last of ['is not sent', 'arrives'] as const)
  test(`a kill at any step of a flush, a merge and its collection, whose last call ${last}, loses nothing and leaves nothing`, async () => {
    const startMs = new FakeClock().now();
    const prepared = new FakeClock(startMs);
    const before = await almostMerged(prepared);
    const seen = { steps: 0, orphans: 0, merged: 0 };
    for (let step = 1, isOver = false; !isOver; step++) {
      const clock = new FakeClock(prepared.now());
      const store = await copyOf(before, clock);
      const first = await clock.run(InProcess.start({ store, clock, random: seededBytes(1_000 + step) }));
      await clock.run(first.put('n', [large('a1', 'second'), large('new', 'second')]));
      let calls = 0;
      first.store.plan = ({ key }) => {
        if (!key.startsWith('ns/') || ++calls !== step) return undefined;
        first.kill();
        return last === 'arrives' ? undefined : { until: new Promise(() => {}) };
      };
      await clock.advance(flushMs);
      clock.jump(hourMs);
      await clock.advance(flushMs);
      isOver = calls < step;
      first.kill();
      const left = await objectsOf(store);
      if (left.orphans.length > 0) seen.orphans++;
      if (left.segments < flushesUntilMerge - 1) seen.merged++;

      const next = await clock.run(InProcess.start({ store, clock, random: seededBytes(2_000 + step) }));

      const told = `step ${step}`;
      assert.deepEqual(await clock.run(next.list('n')), ['new', 'a1', 'b3', 'a3', 'b2', 'a2', 'b1'], told);
      for (const id of ['a1', 'new'])
        assert.match((await clock.run(next.get('n', id))).body.text, /^second /, told);
      await clock.advance(flushMs);
      clock.jump(31 * hourMs);
      await clock.advance(flushMs);
      const { lost, orphans } = await objectsOf(store);
      assert.deepEqual([lost, orphans], [[], []], told);
      next.kill();
      seen.steps = step;
    }
    // A stream that is cut off stores nothing, so only the call behind it leaves its segment alone.
    if (last === 'is not sent') assert.ok(seen.orphans > 0, 'no kill left a segment that no manifest names');
    assert.ok(seen.merged > 0, 'no kill came after the merge');
    assert.ok(seen.steps > 5, `${seen.steps} steps`);
  });
