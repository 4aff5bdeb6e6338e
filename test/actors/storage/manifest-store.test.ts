import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { type Committed, commit, Deposed, loadCommitted } from '../../../actors/storage/manifest-store.ts';
import { decodeRecord, encodeRecord } from '../../../src/base/record.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Fault, FaultyObjectStore, gate, randomFaults } from '../../support/faulty-object-store.ts';
import { seededRandom } from '../../support/segments.ts';

interface Thing {
  readonly version: number;
  readonly nonce: string;
}

const format = { magic: 'TEST', versions: [1], check: (value: unknown) => value as Thing } as const;
const codec = {
  encode: (value: Thing) => encodeRecord(format, value),
  decode: (bytes: Uint8Array, place: string) => decodeRecord(bytes, place, format),
};
const key = 'ns/ab/x/manifest';

let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
});

const commitOf = (current: Committed<Thing> | null, nonce: string) =>
  clock.run(
    commit({ store, clock }, codec, {
      key,
      next: { version: (current?.value.version ?? 0) + 1, nonce },
      current,
    }),
  );
const stored = () => loadCommitted(truth, key, codec);

test('a commit replaces what it was built on, and nothing else', async () => {
  const first = await commitOf(null, 'a');
  const second = await commitOf(first, 'b');

  await assert.rejects(commitOf(first, 'c'), Deposed);
  await assert.rejects(commitOf(null, 'd'), Deposed);

  assert.deepEqual(await stored(), second);
});

for (const fault of ['drop-before-apply', 'error-after-apply', 'refuse-after-apply'] as const) {
  test(`a commit whose answer is lost finds out its outcome: ${fault}`, async () => {
    const first = await commitOf(null, 'a');
    const faults: (Fault | undefined)[] = [fault, 'error-after-apply', undefined];
    store.plan = ({ operation }) => (operation === 'update' ? faults.shift() : undefined);

    const second = await commitOf(first, 'b');

    assert.deepEqual(await stored(), second);
    assert.equal(second.value.nonce, 'b');
  });
}

test('a commit that another one overtook while its outcome was unknown is deposed', async () => {
  const first = await commitOf(null, 'a');
  store.plan = ({ operation }) => (operation === 'update' ? 'drop-before-apply' : undefined);
  const losing = commit({ store, clock }, codec, { key, next: { version: 2, nonce: 'b' }, current: first });
  losing.catch(() => {});
  await clock.advance(100);
  const other = await clock.run(
    commit({ store: truth, clock }, codec, { key, next: { version: 2, nonce: 'c' }, current: first }),
  );
  store.plan = () => undefined;

  await assert.rejects(clock.run(losing), Deposed);
  assert.deepEqual(await stored(), other);
});

test('where two owners commit at once one is deposed', async () => {
  const first = await commitOf(null, 'a');
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'update' ? { until: landing.opened } : undefined);
  const both = ['b', 'c'].map((nonce) =>
    commit({ store, clock }, codec, { key, next: { version: 2, nonce }, current: first }),
  );
  const settled = Promise.allSettled(both);
  landing.open();

  const outcomes = (await clock.run(settled)).map(({ status }) => status);

  assert.deepEqual(outcomes.sort(), ['fulfilled', 'rejected']);
});

test('through faults by chance a chain of commits is never broken (seed 31)', async () => {
  store.plan = randomFaults(seededRandom(31), 0.5);
  let current: Committed<Thing> | null = null;
  for (let n = 0; n < 60; n++) {
    current = await commitOf(current, `n${n}`);
    assert.deepEqual(await stored(), current);
  }
});
