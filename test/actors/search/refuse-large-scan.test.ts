import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import type { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { coldProcess, firstProcess, flush, namespace } from '../../support/cost.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import type { Answer, InProcess } from '../../support/in-process.ts';

/** A pattern that has no trigram: the index can't narrow it. */
const q = '[a-z]\\d';
/** More than may be looked at. Every hundredth is rare. */
const count = limits.scanDocumentsMax + 2_000;
const documents = Array.from({ length: count }, (_, n) => ({
  id: `d${n}`,
  text: `t${n % 10}`,
  meta: { n, kind: n % 100 === 0 ? 'rare' : 'common' },
}));

interface World {
  readonly process: InProcess;
  readonly clock: FakeClock;
  readonly store: MemoryObjectStore;
}

async function written(): Promise<World> {
  const world = await firstProcess();
  for (let from = 0; from < count; from += 10_000)
    await world.clock.run(world.process.put(namespace, documents.slice(from, from + 10_000)));
  return world;
}

function assertRefused({ status, code, body }: Answer): void {
  assert.deepEqual(
    [status, code, Object.keys(body.fields ?? {})],
    [422, 'scan_refused', ['q']],
    JSON.stringify(body),
  );
}

async function assertJudgedAfterFilter({ process, clock }: World): Promise<void> {
  const search = (body: object) => clock.run(process.search(namespace, { q, regex: true, ...body }));
  const counted = (body: object) => clock.run(process.count(namespace, { q, regex: true, ...body }));

  assertRefused(await search({}));
  assertRefused(await counted({}));
  assertRefused(await search({ filter: { kind: 'common' } }));
  assertRefused(await counted({ filter: { n: { gte: 1_000 } } }));
  // A filter that says nothing of most documents lets them pass.
  assertRefused(await search({ filter: { absent: { ne: 1 } } }));

  assert.equal((await search({ filter: { kind: 'rare' } })).body.hits.length, 20);
  assert.equal((await counted({ filter: { kind: 'rare' } })).body.count, count / 100);
  assert.equal(
    (await counted({ filter: { n: { lt: limits.scanDocumentsMax } } })).body.count,
    limits.scanDocumentsMax,
  );
  assert.equal((await counted({ filter: { kind: 'none' } })).body.count, 0);
  assert.equal((await search({ scan: true })).body.hits.length, 20);
  assert.equal((await counted({ q: 't3' })).status, 200);
}

test('a regex that the index cannot narrow is refused for what its filter leaves: in memory, and in segments', async () => {
  const world = await written();
  await assertJudgedAfterFilter(world);
  await flush(world.process, world.clock);
  const cold = await coldProcess(world.process, world.clock, world.store);

  await assertJudgedAfterFilter({ ...world, process: cold });

  cold.kill();
});

test('large texts count by their bytes, where they lie', async () => {
  const { process, clock } = await firstProcess();
  const text = `${'lorem ipsum dolor '.repeat(50_000)}z9`;
  const large = Array.from({ length: 80 }, (_, n) => ({ id: `l${n}`, text, meta: { n } }));
  for (let from = 0; from < large.length; from += 10) {
    await clock.run(process.put(namespace, large.slice(from, from + 10)));
    await flush(process, clock);
  }
  const counted = (filter: object) => clock.run(process.count(namespace, { q, regex: true, filter }));

  assertRefused(await counted({ n: { gte: 0 } }));
  assertRefused(await counted({ n: { gte: 2 } }));
  assert.equal((await counted({ n: { lt: 10 } })).body.count, 10);
});
