import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NumberMap } from '../../../src/base/number-map.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

test('a map of numbers answers as a Map does, whatever comes and goes', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  for (let round = 0; round < 40; round++) {
    const [map, model] = [new NumberMap<string>(), new Map<number, string>()];
    const step = [1, 2, 64, 4_096, 2 ** 32][round % 5] as number;
    const below = Math.ceil(2 ** (random() * 13));
    // Now more come than go, now fewer.
    let comes = 0.5;
    for (let at = 0; at < 20_000; at++) {
      if (at % 1_000 === 0) comes = random();
      const key = Math.floor(random() * below) * step;
      if (random() < comes) {
        map.set(key, `${at}`);
        model.set(key, `${at}`);
      } else assert.equal(map.delete(key), model.delete(key));
      const other = Math.floor(random() * below) * step;
      assert.equal(map.get(other), model.get(other));
      assert.equal(map.has(other), model.has(other));
      assert.equal(map.size, model.size);
    }
    assert.deepEqual(map.values().sort(), [...model.values()].sort());
    assert.deepEqual(
      map.entries(),
      [...model].sort(([a], [b]) => a - b),
    );
    for (const key of model.keys()) assert.ok(map.delete(key));
    assert.deepEqual([map.size, map.entries()], [0, []]);
    map.set(7, 'again');
    map.clear();
    assert.deepEqual(
      [map.size, map.has(7), map.has(-1), map.delete(-1), map.get(-1)],
      [0, false, false, false, undefined],
    );
  }
});

test('numbers that are counted up, of which some stay for long, are found', () => {
  const map = new NumberMap<number>();
  for (let key = 0; key < 200_000; key++) {
    map.set(key, key);
    if (key >= 64 && key % 100 !== 0) assert.ok(map.delete(key - 64) || key - 64 < 64);
  }
  const entries = map.entries();
  assert.ok(entries.length >= 2_000);
  for (const [key, value] of entries) {
    assert.equal(value, key);
    assert.equal(map.get(key), key);
  }
});

test('what is no whole number from 0 on is refused', () => {
  const map = new NumberMap<number>();
  for (const key of [-1, 0.5, Number.NaN, 2 ** 53])
    assert.throws(() => map.set(key, 1), /no number of a map/);
});
