import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeCursor, encodeCursor, queryDigest } from '../../../actors/search/cursor.ts';
import type { QueryContext } from '../../../actors/search/query.ts';
import { runCount } from '../../../actors/search/run-search.ts';
import { scanNewestFirst } from '../../../actors/search/scan.ts';
import { TimeSlice } from '../../../actors/search/time-slice.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import { Memtable } from '../../../actors/storage/memtable.ts';
import { ReadDeadline } from '../../../actors/storage/read-deadline.ts';
import { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import type { Snapshot } from '../../../actors/storage/snapshot.ts';
import { noTombstones, withDeleted } from '../../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../../actors/text/searchable-memtable.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { parseCountBody } from '../../../protocol/search.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { BusyClock } from '../../support/busy-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';
import { alone } from '../../support/key-rings.ts';
import { contextOf, row, search } from '../../support/query-context.ts';
import { buildSegment, CountingStore, entryOf, seededRandom } from '../../support/segments.ts';

const segmentKey = 'ns/ab/n/segment/s';

/** Documents 1 to `count`: the older half in a segment with some rows deleted, the newer in two memtables. */
async function snapshotOf(
  count: number,
): Promise<{ snapshot: Snapshot; ids: string[]; store: CountingStore }> {
  const rows = Array.from({ length: count }, (_, i) =>
    row(i + 1, i % 4 === 0 ? `a tide ${i}` : `nothing ${i}`),
  );
  const half = Math.floor(count / 2);
  const { toc, bytes } = await buildSegment(rows.slice(0, half), { documentBlockBytes: 300 });
  const store = new CountingStore();
  await store.putIfAbsent(segmentKey, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(10_000_000) });
  const deleted = [3, 4, 5, 9].filter((at) => at < half);
  const tombstones = withDeleted(noTombstones, deleted);
  const segment = {
    id: 's',
    size: bytes.length,
    reader: new SegmentReader(segmentKey, toc, fetcher),
    tombstones,
    graphs: null,
  };
  const [older, newer] = [new Memtable(), searchableMemtable()];
  for (const { entry, sequence, writtenAt } of rows.slice(half, half + 10))
    older.add(entry, 0, sequence, writtenAt);
  for (const { entry, sequence, writtenAt } of rows.slice(half + 10))
    newer.add(entry, 0, sequence, writtenAt);
  const ids = rows
    .filter((_, at) => !deleted.includes(at))
    .map(({ id }) => id)
    .reverse();
  const memtables = [newer, older].map((memtable) => ({ memtable, rowCount: memtable.rowCount }));
  return {
    snapshot: { version: 5, sequence: count, documents: ids.length, memtables, segments: [segment] },
    ids,
    store,
  };
}

for (const limit of [1, 3, 7, 1_000]) {
  test(`pages of ${limit} together are the whole answer, newest first`, async () => {
    const { snapshot, ids } = await snapshotOf(60);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const answer = await search(contextOf(snapshot, new FakeClock()), { limit, cursor });
      assert.ok(answer.hits.length <= limit);
      seen.push(...answer.hits.map((hit: { id: string }) => hit.id));
      if (answer.next === '') break;
      assert.equal(answer.hits.length, limit);
      cursor = answer.next;
    }
    assert.deepEqual(seen, ids);
  });
}

test('a page that is exactly full and the last has no next', async () => {
  const { snapshot, ids } = await snapshotOf(20);

  const answer = await search(contextOf(snapshot, new FakeClock()), { limit: ids.length });

  assert.equal(answer.hits.length, ids.length);
  assert.equal(answer.next, '');
});

for (const deadlineMs of [3, 12, 40]) {
  test(`a search that runs out of time goes on exactly where it stopped (deadline ${deadlineMs} ms)`, async () => {
    const { snapshot } = await snapshotOf(200);
    const whole = await search(contextOf(snapshot, new FakeClock()), { q: 'TIDE', limit: 1_000 });
    const seen: string[] = [];
    let timeouts = 0;
    for (let cursor = '', pages = 0; ; pages++) {
      assert.ok(pages < 500, 'it makes progress');
      const answer = await search(contextOf(snapshot, new BusyClock(), deadlineMs), {
        q: 'TIDE',
        limit: 1_000,
        cursor,
      });
      assert.equal(answer.partial, answer.timed_out);
      if (answer.timed_out) timeouts++;
      seen.push(...answer.hits.map((hit: { id: string }) => hit.id));
      if (answer.next === '') break;
      cursor = answer.next;
    }
    assert.deepEqual(
      seen,
      whole.hits.map((hit: { id: string }) => hit.id),
    );
    if (deadlineMs < 40) assert.ok(timeouts > 0);
  });
}

test('a search that runs out of time before the first document still says how to go on', async () => {
  const { snapshot, ids } = await snapshotOf(40);
  const cold = { ...snapshot, memtables: [] };
  const context = contextOf(cold, new BusyClock(), 0);

  const cut = await search(context, {});
  const rest = await search(contextOf(cold, new FakeClock()), { cursor: cut.next, limit: 1_000 });

  assert.equal(cut.timed_out, true);
  assert.notEqual(cut.next, '');
  assert.deepEqual(
    [...cut.hits, ...rest.hits].map((hit: { id: string }) => hit.id),
    ids.slice(-rest.hits.length - cut.hits.length),
  );
  assert.equal(rest.next, '');
});

test('a count that runs out of time is refused, never short', async () => {
  const { snapshot } = await snapshotOf(200);

  const counting = runCount(contextOf(snapshot, new BusyClock(), 5), parseCountBody({ q: 'tide' }));

  await assert.rejects(counting, { code: 'query_timeout' });
});

const countOf = async (context: QueryContext, body: object) =>
  JSON.parse(await runCount(context, parseCountBody(body)));

test('an estimate is near, its bounds are sure, and it reads a part of what may match', async () => {
  const { snapshot, store } = await snapshotOf(20_000);
  const queries = [
    { q: 'tide' },
    { q: 'ing \\d*7$', regex: true },
    { q: 'no such thing' },
    { q: '[02468]$', regex: true },
    { q: '7' },
  ];
  for (const query of queries) {
    const exact = await countOf(contextOf(snapshot, new FakeClock()), { ...query, scan: true });
    store.gets = 0;
    const context = contextOf(snapshot, new FakeClock());
    const { count, exact: isExact, low, high, ids } = await countOf(context, { ...query, exact: false });
    const shown = JSON.stringify({ query, count, low, high, exact: exact.count });

    assert.ok(low <= exact.count && exact.count <= high, shown);
    assert.ok(low <= count && count <= high, shown);
    assert.ok(Math.abs(count - exact.count) <= exact.count * 0.2, shown);
    assert.equal(isExact, low === high, shown);
    if (!isExact) assert.deepEqual(ids, []);
    assert.ok(context.tally.storeGets <= 10 + limits.estimateGroupsMax, `${shown}: ${store.gets} GETs`);
  }
});

test('an estimate of what an exact count judges as fast is that count', async () => {
  const { snapshot, ids } = await snapshotOf(90);
  for (const body of [{ q: 'tide' }, { q: 'ing 1\\d', regex: true }, {}]) {
    const exact = await countOf(contextOf(snapshot, new FakeClock()), body);
    const estimate = await countOf(contextOf(snapshot, new FakeClock()), { ...body, exact: false });

    assert.deepEqual(
      [estimate.exact, estimate.low, estimate.high, estimate.count, estimate.ids],
      [true, exact.count, exact.count, exact.count, exact.ids],
    );
  }
  assert.ok(ids.length > 0);
});

test('an estimate that runs out of time tells what it has, or is refused as a count is', async () => {
  const { snapshot } = await snapshotOf(20_000);
  const exact = await countOf(contextOf(snapshot, new FakeClock()), { q: 'tide' });
  let answered = 0;
  let cut = 0;
  for (const deadlineMs of [0, 20, 200, 2_000]) {
    const counting = countOf(contextOf(snapshot, new BusyClock(), deadlineMs), { q: 'tide', exact: false });
    const estimate = await counting.catch((error) => {
      assert.equal(error.code, 'query_timeout');
      return null;
    });
    if (estimate === null) continue;
    answered++;
    assert.ok(estimate.low <= exact.count && exact.count <= estimate.high);
    assert.equal(estimate.timed_out, estimate.partial);
    if (estimate.timed_out) cut++;
  }
  assert.ok(answered > 0 && cut > 0, `${answered} answered, ${cut} cut`);
});

test('every segment is searched to its end, also where nothing of an open index is at hand', async () => {
  const store = new CountingStore();
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(1) });
  const sizes = [40, 50, 60];
  const segments: Snapshot['segments'][number][] = [];
  let sequence = 0;
  for (const [at, size] of sizes.entries()) {
    const rows = Array.from({ length: size }, () => row(++sequence, `a tide of ${sequence}`));
    const key = `${segmentKey}${at}`;
    const { toc, bytes } = await buildSegment(rows, { documentBlockBytes: 300 }, key);
    await store.putIfAbsent(key, [bytes]);
    const reader = new SegmentReader(key, toc, fetcher);
    segments.push({ id: key, size: bytes.length, reader, tombstones: noTombstones, graphs: null });
  }
  const documents = sequence;
  const snapshot = { version: 1, sequence, documents, memtables: [], segments: segments.toReversed() };

  for (const round of ['cold', 'open', 'open again']) {
    const counted = await countOf(contextOf(snapshot, new FakeClock()), { q: 'tide' });
    assert.equal(counted.count, documents, round);
    const found = await search(contextOf(snapshot, new FakeClock()), { q: 'tide', limit: 1_000 });
    assert.deepEqual(
      found.hits.map((hit: { id: string }) => hit.id),
      Array.from({ length: documents }, (_, i) => `d${documents - i}`),
      round,
    );
  }
});

test('counts are exact, with and without a filter, and name the newest ids', async () => {
  const { snapshot, ids } = await snapshotOf(90);
  const count = async (body: object) =>
    JSON.parse(await runCount(contextOf(snapshot, new FakeClock()), parseCountBody(body)));

  const all = await count({});
  const some = await count({ filter: { n: 1 } });
  const text = await count({ q: 'tide', filter: { n: [0, 2] } });

  assert.deepEqual(
    [all.count, all.docs, all.ids],
    [ids.length, ids.length, ids.slice(0, limits.countIdsMax)],
  );
  const withN = ids.filter((id) => Number(id.slice(1)) % 3 === 1);
  assert.deepEqual([some.count, some.ids], [withN.length, withN.slice(0, limits.countIdsMax)]);
  const tides = ids.filter((id) => Number(id.slice(1)) % 4 === 1 && Number(id.slice(1)) % 3 !== 1);
  assert.deepEqual([text.count, text.ids], [tides.length, tides.slice(0, limits.countIdsMax)]);
});

test('a long walk gives way, at large documents after each', async () => {
  const memtable = new Memtable();
  const text = Buffer.alloc(2_000_000, 'x');
  for (let n = 1; n <= 20; n++)
    memtable.add(entryOf({ id: `d${n}`, text, meta: null, vector: null }), 0, n, n);
  const clock = new BusyClock();
  const snapshot = {
    version: 1,
    sequence: 20,
    documents: 20,
    memtables: [{ memtable, rowCount: 20 }],
    segments: [],
  };
  const slice = new TimeSlice(clock, new ReadDeadline(clock, 1e9));

  const end = await scanNewestFirst(snapshot, { below: 1e9, slice, tally: emptyReadTally() }, () => {
    clock.jump(10);
    return true;
  });

  assert.equal(end.kind, 'complete');
  assert.ok(clock.yields >= 20, `${clock.yields} yields`);
});

test('another request has its turn while a search runs', async () => {
  const { snapshot } = await snapshotOf(400);
  const clock = new BusyClock();
  let turns = 0;
  const other = setInterval(() => turns++, 0);

  await search(contextOf(snapshot, clock), { q: 'nothing', limit: 1_000 });
  clearInterval(other);

  assert.ok(clock.yields > 2, `${clock.yields} yields`);
});

const scope = { tenantId: 1, namespaceId: 'ab'.repeat(16), queryDigest: queryDigest('q', false, 'null') };

test('a cursor holds its sequence and is of use with its own query alone', () => {
  const key = alone(Buffer.from('key'));
  for (const sequence of [0, 1, 2 ** 40, Number.MAX_SAFE_INTEGER])
    assert.equal(decodeCursor(key, scope, encodeCursor(key, scope, sequence)), sequence);
  const cursor = encodeCursor(key, scope, 77);

  const strangers = [
    { ...scope, tenantId: 2 },
    { ...scope, namespaceId: 'cd'.repeat(16) },
    { ...scope, queryDigest: queryDigest('q', true, 'null') },
    { ...scope, queryDigest: queryDigest('q', false, '{}') },
    { ...scope, queryDigest: queryDigest('Q', false, 'null') },
  ];
  for (const stranger of strangers)
    assert.throws(() => decodeCursor(key, stranger, cursor), { code: 'invalid' });
  const rotated = { present: Buffer.from('other'), previous: key.present };
  assert.equal(decodeCursor(rotated, scope, cursor), decodeCursor(key, scope, cursor));
  assert.notEqual(encodeCursor(rotated, scope, 42), encodeCursor(key, scope, 42));
  assert.throws(() => decodeCursor(alone(Buffer.from('other')), scope, cursor), { code: 'invalid' });
});

test('a cursor of an integer is not that of a string that looks like it', async () => {
  const { snapshot } = await snapshotOf(40);
  const context = () => contextOf(snapshot, new FakeClock());
  const wide = (value: unknown) => ({ n: [0, 1, 2, value] });
  const first = await search(context(), { filter: wide(2n ** 60n), limit: 1 });
  assert.notEqual(first.next, '');
  for (const other of [`${2n ** 60n}`, `${2n ** 60n}n`, `integer ${2n ** 60n}`]) {
    const asked = { filter: wide(other), limit: 1, cursor: first.next };
    await assert.rejects(search(context(), asked), { code: 'invalid' });
  }
  assert.equal(
    (await search(context(), { filter: wide(2n ** 60n), limit: 1, cursor: first.next })).hits.length,
    1,
  );
});

test('a cursor that was changed in any character, cut or made up is 422', () => {
  const key = alone(Buffer.from('key'));
  const cursor = encodeCursor(key, scope, 77);
  const bad = ['x', '!!', `${cursor}A`, cursor.slice(1), cursor.slice(0, -1), `${cursor}=`, ' ', '\u0000'];
  for (let at = 0; at < cursor.length; at++) {
    const other = cursor[at] === 'A' ? 'B' : 'A';
    bad.push(cursor.slice(0, at) + other + cursor.slice(at + 1));
  }
  for (const wrong of bad) assert.throws(() => decodeCursor(key, scope, wrong), ApiError, wrong);
});

test('pages don’t shift while documents are written, replaced, deleted and flushed', async () => {
  const clock = new FakeClock();
  const random = seededRandom(61);
  const process = await clock.run(
    InProcess.start({ store: new MemoryObjectStore(), clock, random: seededBytes(3) }),
  );
  await clock.run(process.createTenant());
  const doc = (n: number) => ({ id: `d${n}`, text: `tide ${n}` });
  for (let n = 0; n < 60; n++) await clock.run(process.put('n', [doc(n)]));
  const before = await clock.run(process.list('n'));
  const touched = new Set<string>();
  const seen: string[] = [];
  const first = await clock.run(process.search('n', { q: 'tide', limit: 5 }));
  seen.push(...first.body.hits.map((hit: { id: string }) => hit.id));
  for (let cursor: string = first.body.next; cursor !== ''; ) {
    const id = `d${Math.floor(random() * 60)}`;
    if (!seen.includes(id)) touched.add(id);
    if (random() < 0.5)
      await clock.run(
        process.put('n', [
          { id, text: 'tide again' },
          { id: `new-${cursor.slice(0, 9)}`, text: 'tide' },
        ]),
      );
    else await clock.run(process.remove('n', [id]));
    if (random() < 0.3) {
      const resolved = await clock.run(process.components.directory.resolve(7, 'n', null));
      await clock.run(process.host.flush(7, 'n', resolved?.namespaceId ?? ''));
    }
    const { body } = await clock.run(process.search('n', { q: 'tide', limit: 5, cursor }));
    seen.push(...body.hits.map((hit: { id: string }) => hit.id));
    cursor = body.next;
  }
  assert.deepEqual(seen, [...new Set(seen)], 'no document twice');
  assert.deepEqual(
    seen.filter((id) => !touched.has(id)),
    before.filter((id) => !touched.has(id)),
  );
  const other = await clock.run(process.search('n', { q: 'again', cursor: first.body.next }));
  assert.deepEqual([other.status, other.code], [422, 'invalid']);
  process.kill();
});

test('a document that takes longer than a query may is left out, and the search goes on behind it', async () => {
  const { snapshot } = await snapshotOf(40);
  const slow = Buffer.from('abcdefg '.repeat(1_000));
  const memtable = new Memtable();
  memtable.add(entryOf({ id: 'slow', text: slow, meta: null, vector: null }), 0, 41, 1.7e15);
  const memtables = [{ memtable, rowCount: 1 }, ...snapshot.memtables];
  const clock = new FakeClock();
  const context = (): QueryContext => ({
    ...contextOf({ ...snapshot, sequence: 41, memtables }, clock, 50),
    match: () => new Promise(() => {}),
  });
  const body = { q: '(?:[a-q]?[b-p]){500}x|tide', regex: true };

  const first = await clock.run(search(context(), body));
  assert.deepEqual([first.hits.length, first.partial, first.timed_out], [0, true, true]);
  const second = await search(context(), { ...body, cursor: first.next });
  assert.deepEqual([second.hits.length, second.partial, second.next], [9, false, '']);
  await assert.rejects(
    clock.run(runCount(context(), parseCountBody(body))),
    (error) => error instanceof ApiError && error.code === 'query_timeout',
  );
});
