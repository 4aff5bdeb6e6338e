import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldProcess, costOf, documentsOf, firstProcess, flush, namespace } from '../support/cost.ts';
import type { InProcess } from '../support/in-process.ts';

const q = 'common a3.';

async function coldNamespace(segments: readonly number[], bytes: number) {
  const { process, clock, store } = await firstProcess();
  for (const [at, count] of segments.entries()) {
    await clock.run(process.put(namespace, documentsOf('abc'[at] ?? '', count, bytes)));
    await flush(process, clock);
  }
  return { clock, cold: await coldProcess(process, clock, store) };
}

const warm = (process: InProcess, body: object) => process.ask('warm', namespace, { body });

for (const { name, segments, bytes } of [
  { name: 'a namespace of two segments', segments: [40, 30], bytes: 30_000 },
  { name: 'a namespace in its manifest', segments: [5], bytes: 1_000 },
]) {
  test(`after warming ${name}, its queries read nothing`, async () => {
    const { clock, cold } = await coldNamespace(segments, bytes);
    const documents = segments.reduce((sum, count) => sum + count, 0);

    const warmed = await costOf(cold, clock, () => warm(cold, { queries: [q, 'no such word'] }));
    const searched = await costOf(cold, clock, () => cold.search(namespace, { q }));
    const missed = await costOf(cold, clock, () => cold.search(namespace, { q: 'no such word' }));

    const { took_ms: _, cpu_ms: __, bytes_cached: bytesCached, ...answer } = warmed.answer.body;
    assert.deepEqual(answer, {
      namespace,
      docs: documents,
      queries: [
        { q, ready: true },
        { q: 'no such word', ready: true },
      ],
      temperature: 'cold',
      store_gets: warmed.gets,
      store_bytes: answer.store_bytes,
      timed_out: false,
    });
    assert.ok(warmed.rounds <= 4, `${warmed.rounds} rounds`);
    assert.equal(bytesCached > 0, segments.length > 1);
    for (const cost of [searched, missed]) {
      assert.deepEqual([cost.rounds, cost.gets, cost.answer.body.store_gets], [0, 0, 0]);
      assert.equal(cost.answer.body.temperature, 'warm');
    }
    assert.equal(searched.answer.body.hits.length, 1);
  });
}

test('warming again reads nothing and says how much is cached', async () => {
  const { clock, cold } = await coldNamespace([40], 30_000);
  const first = await costOf(cold, clock, () => warm(cold, { queries: [q] }));

  const again = await costOf(cold, clock, () => warm(cold, { queries: [q] }));

  assert.equal(again.gets, 0);
  assert.equal(again.answer.body.temperature, 'warm');
  assert.equal(again.answer.body.bytes_cached, first.answer.body.bytes_cached);
});

test('warming without queries opens the namespace and fetches nothing more', async () => {
  const { clock, cold } = await coldNamespace([40], 30_000);

  const { answer, kinds } = await costOf(cold, clock, () => cold.ask('warm', namespace));

  assert.equal(answer.status, 200);
  assert.deepEqual(kinds, ['manifest']);
  assert.deepEqual([answer.body.queries, answer.body.bytes_cached, answer.body.docs], [[], 0, 40]);
});

test('a pattern that is wrong is refused before anything is read', async () => {
  const { clock, cold } = await coldNamespace([40], 30_000);

  const { answer, kinds } = await costOf(cold, clock, () => warm(cold, { queries: ['a', '('], regex: true }));

  assert.equal(answer.status, 422);
  assert.deepEqual(kinds, ['manifest']);
});

test('what is not done by the deadline is not ready, and the answer says that it timed out', async () => {
  const { clock, cold } = await coldNamespace([40, 30], 30_000);

  const { answer } = await costOf(cold, clock, () =>
    cold.ask('warm', namespace, { body: { queries: [q] }, deadlineMs: 1_500 }),
  );

  assert.deepEqual(answer.body.queries, [{ q, ready: false }]);
  assert.equal(answer.body.timed_out, true);
});
