import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LruMap } from '../../../src/base/lru.ts';

test('a full map forgets entries that were not read rather than those that were', () => {
  const map = new LruMap<string, number>(3);
  for (const key of ['a', 'b', 'c']) map.set(key, 1);
  map.get('a');

  map.set('d', 1);

  assert.equal(map.get('a'), 1);
  assert.equal(map.get('b'), undefined);
  assert.equal(map.size, 3);
});

test('a map whose entries were all read still takes a new one', () => {
  const map = new LruMap<number, number>(2);
  map.set(1, 1);
  map.set(2, 2);
  map.get(1);
  map.get(2);

  map.set(3, 3);

  assert.equal(map.size, 2);
  assert.equal(map.get(3), 3);
});

test('a few new keys in turn find their place among old ones that were wanted before', () => {
  const map = new LruMap<string, number>(8);
  const touch = (key: string) => {
    const isKnown = map.get(key) !== undefined;
    if (!isKnown) map.set(key, 1);
    return isKnown;
  };
  const keys = (name: string) => [1, 2, 3, 4, 5].map((n) => `${name}${n}`);
  for (let round = 0; round < 3; round++) keys('old').forEach(touch);
  for (let round = 0; round < 3; round++) keys('new').forEach(touch);

  assert.ok(keys('new').every(touch));
});

test('the map never holds more than its bound, keeps what it holds exact and reports every value that leaves once', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('get' as const), key: fc.nat(12) }),
    fc.record({ kind: fc.constant('set' as const), key: fc.nat(12) }),
    fc.record({ kind: fc.constant('delete' as const), key: fc.nat(12) }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 200 }), (entriesMax, steps) => {
      const held = new Map<number, number>();
      const map = new LruMap<number, number>(entriesMax, (key, value) => {
        assert.equal(held.get(value), key);
        held.delete(value);
      });
      const newest = new Map<number, number>();
      steps.forEach(({ kind, key }, value) => {
        if (kind === 'set') {
          held.set(value, key);
          map.set(key, value);
          newest.set(key, value);
        } else if (kind === 'delete') {
          map.delete(key);
          newest.delete(key);
        } else {
          const found = map.get(key);
          if (found !== undefined) assert.equal(found, newest.get(key));
        }
        assert.ok(map.size <= entriesMax);
        assert.equal(map.size, held.size);
      });
    }),
  );
});
