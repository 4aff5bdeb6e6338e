/**
 * Every way of reading a namespace whose objects can't be had: the store does not answer, what it has is damaged, or an
 * object is gone. Never a wrong answer, never a 500, and the namespace works again as soon as the store does.
 */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { coldProcess, documentsOf, firstProcess, flush, namespace } from '../../support/cost.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import type { FaultPlan } from '../../support/faulty-object-store.ts';
import type { Answer, InProcess } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let process: InProcess;
let errors: string[];

const older = documentsOf('a', 40, 30_000);
const newer = documentsOf('b', 30, 30_000);

/** The older segment has a0 to a39, the newer b0 to b29, memory has c0. */
beforeEach(async () => {
  const first = await firstProcess();
  ({ clock, store: truth } = first);
  for (const documents of [older, newer]) {
    await clock.run(first.process.put(namespace, documents));
    await flush(first.process, clock);
  }
  await clock.run(first.process.put(namespace, documentsOf('c', 1, 100)));
  process = await coldProcess(first.process, clock, truth);
  errors = [];
  process.components.logger.error = (message, fields) => errors.push(`${message} ${JSON.stringify(fields)}`);
});

const queries: { readonly [name: string]: () => Promise<Answer> } = {
  read: () => process.get(namespace, 'a3'),
  'read of nothing': () => process.get(namespace, 'nothing'),
  search: () => process.search(namespace, { q: 'common' }),
  'search for one': () => process.search(namespace, { q: 'common a3.' }),
  list: () => process.search(namespace, { limit: 50 }),
  count: () => process.count(namespace, { q: 'common' }),
  warm: () => process.ask('warm', namespace, { body: { queries: ['common'] } }),
};

const ask = (name: string): Promise<Answer> => clock.run((queries[name] as () => Promise<Answer>)());

async function segmentKeys(): Promise<string[]> {
  const { objects } = await truth.list('ns/', { limit: 1_000 });
  return objects.map(({ key }) => key).filter((key) => key.includes('/segment/'));
}

/** Answers what undoes it. */
async function replaceSegments(
  change: (bytes: Uint8Array) => Uint8Array | null,
): Promise<() => Promise<void>> {
  const before = new Map<string, Uint8Array>();
  for (const key of await segmentKeys()) {
    const { bytes } = (await truth.get(key)) ?? { bytes: new Uint8Array() };
    before.set(key, bytes);
    const changed = change(bytes);
    await truth.delete(key);
    if (changed !== null) await truth.putIfAbsent(key, [changed]);
  }
  return async () => {
    for (const [key, bytes] of before) {
      await truth.delete(key);
      await truth.putIfAbsent(key, [bytes]);
    }
  };
}

const failing =
  (part: string): FaultPlan =>
  ({ operation, key }) =>
    operation === 'get' && key.includes(part) ? 'drop-before-apply' : undefined;

/** What each failure does to the segments; the answer undoes it. */
const failures: { readonly [name: string]: () => Promise<() => Promise<void>> } = {
  'the store does not answer': async () => {
    process.store.plan = failing('/segment/');
    return async () => {
      process.store.plan = () => undefined;
    };
  },
  'every byte of the segments is damaged': () => replaceSegments((bytes) => bytes.map((byte) => byte ^ 0x55)),
  'one bit in each 4 KB of the segments is damaged': () =>
    replaceSegments((bytes) => bytes.map((byte, at) => (at % 4_096 === 1_000 ? byte ^ 1 : byte))),
  'the segments end early': () => replaceSegments((bytes) => bytes.subarray(0, bytes.length / 2)),
  'the segments are gone': () => replaceSegments(() => null),
};

function assertFailed(name: string, { status, code, body }: Answer): void {
  switch (name) {
    case 'read':
    case 'read of nothing':
    case 'count':
      assert.deepEqual([status, code], [503, 'unavailable'], JSON.stringify(body));
      return;
    case 'warm':
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(body.queries, [{ q: 'common', ready: false }]);
      return;
    default:
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.partial, true);
      assert.equal(body.timed_out, false);
      assert.notEqual(body.next, '');
  }
}

async function assertWhole(): Promise<void> {
  assert.equal((await ask('read')).status, 200);
  assert.equal((await ask('read of nothing')).status, 404);
  const { body } = await ask('search for one');
  assert.deepEqual([body.partial, body.hits.length, body.hits[0].id], [false, 1, 'a3']);
  assert.equal((await ask('count')).body.count, 71);
  assert.deepEqual((await ask('warm')).body.queries, [{ q: 'common', ready: true }]);
}

for (const [failure, fail] of Object.entries(failures)) {
  describe(`while ${failure}`, () => {
    for (const name of Object.keys(queries)) {
      test(`a ${name} is not a wrong answer, and works when the store does`, async () => {
        const undo = await fail();

        const failed = [await ask(name), await ask(name)];

        for (const answer of failed) assertFailed(name, answer);
        assert.ok(
          errors.some((line) => line.includes('/segment/')),
          'the object is named',
        );
        await undo();
        await assertWhole();
      });
    }

    test('what memory has is found', async () => {
      await fail();

      const { body } = await ask('search');

      assert.deepEqual(
        body.hits.map((hit: { id: string }) => hit.id),
        ['c0'],
      );
      assert.equal((await clock.run(process.get(namespace, 'c0'))).status, 200);
    });

    test('a search goes on where it stopped, so that all pages together are whole', async () => {
      const undo = await fail();
      const first = await clock.run(process.search(namespace, { q: 'common', limit: 1_000 }));
      await undo();

      const rest = await clock.run(
        process.search(namespace, { q: 'common', limit: 1_000, cursor: first.body.next }),
      );

      assert.deepEqual([first.body.hits.length, rest.body.hits.length], [1, 70]);
      assert.equal(rest.body.partial, false);
    });
  });
}

for (const name of Object.keys(queries)) {
  test(`a ${name} of a namespace whose manifest can't be read says so`, async () => {
    process.store.plan = failing('/manifest');
    const unanswered = await ask(name);
    process.store.plan = () => undefined;
    const { objects } = await truth.list('ns/', { limit: 1_000 });
    const key = objects.map((object) => object.key).find((each) => each.endsWith('/manifest')) ?? '';
    const found = await truth.get(key);
    assert.ok(found);
    await truth.putIfMatch(key, [found.bytes.map((byte, at) => (at === 300 ? byte ^ 1 : byte))], found.etag);
    const damaged = await ask(name);

    for (const answer of [unanswered, damaged])
      assert.deepEqual([answer.status, answer.code], [503, 'unavailable'], JSON.stringify(answer.body));
    assert.ok(
      errors.some((line) => line.includes('/manifest')),
      'the object is named',
    );
  });
}

test('a read whose block is damaged on its way once is answered from the second try', async () => {
  const get = truth.get.bind(truth);
  let spoiled = 0;
  truth.get = async (key, options) => {
    const found = await get(key, options);
    if (found === null || !key.includes('/segment/') || spoiled > 0) return found;
    spoiled++;
    return { ...found, bytes: found.bytes.map((byte, at) => (at === 40 ? byte ^ 1 : byte)) };
  };

  const answer = await ask('read');

  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal(spoiled, 1);
});

test('a write that can’t look up what it replaces is never told that nothing was written', async () => {
  const undo = await replaceSegments((bytes) => bytes.map((byte) => byte ^ 0x55));

  const answer = await clock.run(process.put(namespace, [{ id: 'a3', text: 'another one' }]));

  assert.deepEqual([answer.status, answer.code], [503, 'write_unknown'], JSON.stringify(answer.body));
  await undo();
  const { body } = await clock.run(process.get(namespace, 'a3'));
  assert.equal(body.text, 'another one');
});
