import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeTombstones,
  decodeTombstonesObject,
  encodeTombstones,
  encodeTombstonesObject,
  isDeleted,
  noTombstones,
  type Tombstones,
  tombstonesFromWire,
  tombstonesToWire,
  withDeleted,
} from '../../../actors/storage/tombstones.ts';
import { DataError } from '../../../src/base/assert.ts';
import { packMessage, unpackMessage } from '../../../src/base/msgpack.ts';
import { seededRandom } from '../../support/segments.ts';

test('rows are deleted once, at the borders of bytes and chunks too', () => {
  const rows = [0, 7, 8, 65_535, 65_536, 65_537, 131_071, 131_072, 5_000_000];

  const set = withDeleted(noTombstones, [...rows, ...rows]);

  assert.equal(set.count, rows.length);
  for (const row of rows) {
    assert.equal(isDeleted(set, row), true, `${row}`);
    for (const near of [row - 1, row + 1])
      if (!rows.includes(near)) assert.equal(isDeleted(set, near), false, `${near}`);
  }
});

test('a set that a reader holds does not change when more is deleted', () => {
  const first = withDeleted(noTombstones, [3, 70_000]);

  const second = withDeleted(first, [4, 70_001]);

  assert.deepEqual([first.count, second.count], [2, 4]);
  assert.deepEqual(
    [isDeleted(first, 4), isDeleted(first, 70_001), isDeleted(second, 4)],
    [false, false, true],
  );
  assert.equal(noTombstones.count, 0);
  assert.equal(isDeleted(noTombstones, 3), false);
});

test('deleting what is deleted gives back the same set', () => {
  const first = withDeleted(noTombstones, [3]);

  assert.equal(withDeleted(first, [3, 3]), first);
  assert.equal(withDeleted(first, []), first);
});

test('a random set is its naive twin, also after a way through a manifest', () => {
  const random = seededRandom(21);
  const twin = new Set<number>();
  let set: Tombstones = noTombstones;
  for (let step = 0; step < 200; step++) {
    const rows = Array.from({ length: Math.floor(random() * 30) }, () => Math.floor(random() * 300_000));
    set = withDeleted(set, rows);
    for (const row of rows) twin.add(row);
    if (step % 50 === 0) set = tombstonesFromWire(unpackMessage(packMessage(tombstonesToWire(set))));
  }
  assert.equal(set.count, twin.size);
  for (let row = 0; row < 300_000; row += 1 + Math.floor(random() * 5))
    assert.equal(isDeleted(set, row), twin.has(row));
});

test('a set is stored in as few bytes as it needs, and comes back as it was', () => {
  const random = seededRandom(22);
  for (const [count, rows, bytesMax] of [
    [0, 1, 4],
    [1, 10_000_000, 16],
    [2_000, 60_000, 4_012],
    [3_000, 10_000_000, 3_000 * 2 + 153 * 8 + 8],
    [50_000, 65_536, 8_204],
    [200_000, 300_000, 5 * 8_200 + 4],
  ] as const) {
    const wanted = Array.from({ length: count }, () => Math.floor(random() * rows));
    const set = withDeleted(noTombstones, wanted);
    const bytes = encodeTombstones(set);
    const back = decodeTombstones(bytes);
    assert.ok(bytes.length <= bytesMax, `${bytes.length} bytes for ${count} of ${rows}`);
    assert.equal(back.count, set.count);
    assert.deepEqual(new Map([...back.chunks].sort(byNumber)), new Map([...set.chunks].sort(byNumber)));
    assert.deepEqual(
      decodeTombstonesObject(encodeTombstonesObject(bytes, 'ns/a/deletes/b'), 'ns/a/deletes/b'),
      back,
    );
    assert.throws(
      () => decodeTombstonesObject(encodeTombstonesObject(bytes, 'ns/a/deletes/b'), 'ns/a/deletes/c'),
      DataError,
    );
  }
});

const byNumber = ([a]: [number, unknown], [b]: [number, unknown]) => a - b;
