/**
 * A store that takes calls and never answers, as one behind a network that drops everything: queries answer within their own
 * time limit, which is ten seconds here, and nothing is stuck once the store is back.
 */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { coldProcess, documentsOf, firstProcess, flush, namespace } from '../../support/cost.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import type { Fault } from '../../support/faulty-object-store.ts';
import type { Answer, InProcess } from '../../support/in-process.ts';

const limitMs = 10_000;
let clock: FakeClock;
let truth: MemoryObjectStore;
let process: InProcess;
let comeBack: () => void;

/** The segment has a0 to a39, memory has c0. */
beforeEach(async () => {
  const first = await firstProcess();
  ({ clock, store: truth } = first);
  await clock.run(first.process.put(namespace, documentsOf('a', 40, 30_000)));
  await flush(first.process, clock);
  await clock.run(first.process.put(namespace, documentsOf('c', 1, 100)));
  process = await coldProcess(first.process, clock, truth);
  process.components.logger.error = () => {};
});

const sql = { sql: "SELECT COUNT(*) FROM docs WHERE contains(text, 'common')" };
const queries: { readonly [name: string]: () => Promise<Answer> } = {
  read: () => process.get(namespace, 'a3'),
  search: () => process.search(namespace, { q: 'common' }),
  list: () => process.search(namespace, { limit: 50 }),
  count: () => process.count(namespace, { q: 'common' }),
  estimate: () => process.count(namespace, { q: 'common', exact: false }),
  SQL: () => process.ask('sql', namespace, { body: sql }),
  warm: () => process.ask('warm', namespace, { body: { queries: ['common'] } }),
};

/** Calls whose key has `part` in it meet the fault from now on. */
function meet(part: string, fault: Fault): void {
  process.store.plan = ({ operation, key }) =>
    operation === 'get' && key.includes(part) ? fault : undefined;
}

function hang(part: string): void {
  const back = new Promise<void>((resolve) => {
    comeBack = () => {
      process.store.plan = () => undefined;
      resolve();
    };
  });
  meet(part, { until: back });
}

/** The answer, which came in time. */
async function inTime(name: string): Promise<Answer> {
  const began = clock.monotonic();
  const answer = await clock.run((queries[name] as () => Promise<Answer>)());
  assert.ok(clock.monotonic() - began <= limitMs + 10, `${name} took ${clock.monotonic() - began} ms`);
  return answer;
}

async function assertWorks(name: string): Promise<void> {
  comeBack();
  await clock.advance(10);
  const { status, body } = await inTime(name);
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.timed_out, false);
}

describe('while reads of segments hang', () => {
  for (const name of Object.keys(queries)) {
    test(`a ${name} answers within its time, and works again when the store does`, async () => {
      hang('/segment/');

      const { status, code, body } = await inTime(name);

      if (name === 'search' || name === 'list') {
        assert.equal(status, 200, JSON.stringify(body));
        assert.deepEqual([body.partial, body.timed_out], [true, true]);
        assert.deepEqual(
          body.hits.map(({ id }: { id: string }) => id),
          ['c0'],
          'what memory has is found',
        );
        assert.notEqual(body.next, '');
      } else if (name === 'warm') {
        assert.deepEqual([body.queries, body.timed_out], [[{ q: 'common', ready: false }], true]);
      } else assert.deepEqual([status, code], [503, 'unavailable'], JSON.stringify(body));
      await assertWorks(name);
    });
  }
});

describe('while the whole store hangs and the namespace is not open', () => {
  for (const name of Object.keys(queries)) {
    test(`a ${name} is 503 within its time, and works again when the store does`, async () => {
      hang('');

      const { status, code, body } = await inTime(name);

      assert.deepEqual([status, code], [503, 'unavailable'], JSON.stringify(body));
      await assertWorks(name);
    });
  }
});

test('a query whose time is over before a slow store has brought all of it is a query that asks for too much', async () => {
  meet('ns/', { delayMs: 2_900 });

  const counted = await inTime('count');
  const found = await inTime('list');

  assert.deepEqual([counted.status, counted.code], [422, 'query_timeout'], JSON.stringify(counted.body));
  assert.equal(found.status, 200);
});

/** What the store does to each read, by how long the query has run: the reads come one after the other, and none is long. */
const slowStores: { readonly [name: string]: (ranMs: number) => Fault } = {
  'brings each read in 2.6 s': () => ({ delayMs: 2_600 }),
  'brings each read in 2.9 s': () => ({ delayMs: 2_900 }),
  'brings reads in 2.6 s, and hangs 2.2 s before the end': (ranMs) =>
    ranMs < 7_800 ? { delayMs: 2_600 } : { until: new Promise(() => {}) },
};

for (const [name, faultAt] of Object.entries(slowStores)) {
  test(`SQL whose time is over while a store ${name} asks for too much, and nothing is logged`, async () => {
    const errors: string[] = [];
    process.components.logger.error = (message) => {
      errors.push(message);
    };
    const began = clock.monotonic();
    process.store.plan = ({ operation, key }) =>
      operation === 'get' && key.includes('ns/') ? faultAt(clock.monotonic() - began) : undefined;
    const grouped = { sql: 'SELECT id, COUNT(*) FROM docs GROUP BY id' };

    const { status, code, body } = await clock.run(process.ask('sql', namespace, { body: grouped }));

    assert.deepEqual([status, code, errors], [422, 'query_timeout', []], JSON.stringify(body));
  });
}

test('several queries that wait for one read each answer in their own time', async () => {
  hang('/segment/');

  const names = ['search', 'count', 'search', 'SQL'];
  const answers = await clock.run(
    Promise.all(names.map((name) => (queries[name] as () => Promise<Answer>)())),
  );

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 503, 200, 503],
  );
  await assertWorks('search');
});
