import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idHash } from '../../../actors/storage/id-presence.ts';
import { Memtable } from '../../../actors/storage/memtable.ts';
import { AssertionError } from '../../../src/base/assert.ts';
import { entryOf, seededRandom } from '../../support/segments.ts';

const entry = (id: string, bytes = 10) =>
  entryOf({ id, text: Buffer.alloc(bytes, 'x'), meta: null, vector: null });

test('the last row of an id is the live one', () => {
  const memtable = new Memtable();
  memtable.add(entry('a'), 0, 1, 100);
  memtable.add(entry('b'), 0, 2, 100);
  const row = memtable.add(entry('a'), 0, 3, 101);

  assert.deepEqual([memtable.find('a'), memtable.find('b'), memtable.find('c')], [row, 1, -1]);
  assert.deepEqual([memtable.rowCount, memtable.liveCount], [3, 2]);
  assert.deepEqual([memtable.isLive(0), memtable.isLive(1), memtable.isLive(2)], [false, true, true]);
  assert.equal(memtable.writtenAtOf(row), 101);
});

test('a row that was superseded is gone once', () => {
  const memtable = new Memtable();
  memtable.add(entry('a'), 0, 1, 100);

  assert.deepEqual(
    [memtable.supersede('a', 2), memtable.supersede('a', 3), memtable.supersede('b', 3)],
    [true, false, false],
  );
  assert.deepEqual(
    [memtable.isLiveAt(0, 0), memtable.isLiveAt(0, 1), memtable.isLiveAt(0, 2)],
    [false, true, false],
  );
});

test('sequences must rise: another order would break newest first', () => {
  const memtable = new Memtable();
  memtable.add(entry('a'), 0, 5, 100);

  assert.throws(() => memtable.add(entry('b'), 0, 5, 100), AssertionError);
  assert.throws(() => memtable.add(entry('b'), 0, 4, 100), AssertionError);
});

test('it counts the bytes of all its rows, also of those that are gone', () => {
  const memtable = new Memtable();
  memtable.add(entry('a', 100), 0, 1, 0);
  const one = memtable.documentBytes;
  memtable.add(entry('a', 100), 0, 2, 0);

  assert.equal(memtable.documentBytes, 2 * one);
  assert.ok(memtable.bytes > memtable.documentBytes);
});

for (const seed of [11, 12]) {
  test(`a reader at any sequence sees what was there then (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const memtable = new Memtable();
    const live = new Map<string, number>();
    const history: { sequence: number; rowCount: number; rows: number[] }[] = [];
    for (let sequence = 1; sequence <= 400; sequence++) {
      const id = `id-${Math.floor(random() * 20)}`;
      if (random() < 0.3) {
        assert.equal(memtable.supersede(id, sequence), live.delete(id));
      } else {
        live.set(id, memtable.add(entry(id), 0, sequence, sequence));
      }
      history.push({ sequence, rowCount: memtable.rowCount, rows: [...live.values()].sort((a, b) => a - b) });
    }
    for (const { sequence, rowCount, rows } of history) {
      const seen = Array.from({ length: rowCount }, (_, row) => row).filter((row) =>
        memtable.isLiveAt(row, sequence),
      );
      assert.deepEqual(seen, rows, `at ${sequence}`);
    }
    assert.equal(memtable.liveCount, live.size);
  });
}

test('a frozen memtable says of every id that it has that it may have it, and of few others', () => {
  const memtable = new Memtable();
  const ids = Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? `doc-${i}` : `ä😀/${i}`));
  ids.forEach((id, i) => {
    memtable.add(entryOf({ id, text: null, meta: null, vector: null }), 0, i + 1, 1.7e15);
  });
  assert.ok(memtable.mayHold(idHash('anything')), 'nothing is known of one that still grows');

  memtable.freeze();

  assert.ok(ids.every((id) => memtable.mayHold(idHash(id))));
  const others = ids.filter((id) => memtable.mayHold(idHash(`${id}x`)));
  assert.ok(others.length < ids.length / 10, `${others.length}`);
  assert.ok(memtable.supersede('doc-4', 6_000));
  assert.throws(() =>
    memtable.add(entryOf({ id: 'late', text: null, meta: null, vector: null }), 0, 7_000, 1),
  );
});
