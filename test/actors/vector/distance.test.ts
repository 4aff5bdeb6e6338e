import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DistanceFrom, scoreOf } from '../../../actors/vector/distance.ts';
import { vectorJson } from '../../../actors/vector/vector-json.ts';

const distance = (metric: 'cosine' | 'euclidean', a: readonly number[], b: readonly number[]) =>
  new DistanceFrom(Float32Array.from(a), metric).to(Float32Array.from(b));

test('cosine: 0 for the same direction, 1 for a right angle, 2 for the opposite', () => {
  assert.equal(distance('cosine', [3, 4], [3, 4]), 0);
  assert.ok(distance('cosine', [0.1, 0.7, 0.2], [0.3, 2.1, 0.6]) < 1e-6);
  assert.equal(distance('cosine', [1, 0], [0, 5]), 1);
  assert.equal(distance('cosine', [1, 2], [-2, -4]), 2);
  assert.equal(scoreOf('cosine', distance('cosine', [1, 0], [1, 0])), 1);
});

test('cosine: a vector of zeros is 1 from every other, itself too', () => {
  assert.equal(distance('cosine', [0, 0], [1, 2]), 1);
  assert.equal(distance('cosine', [1, 2], [0, 0]), 1);
  assert.equal(distance('cosine', [0, 0], [0, 0]), 1);
});

test('euclidean: the length of the difference, and a score that falls with it', () => {
  assert.equal(distance('euclidean', [1, 2], [4, 6]), 5);
  assert.equal(distance('euclidean', [0, 0], [0, 0]), 0);
  assert.equal(scoreOf('euclidean', 0), 1);
  assert.equal(scoreOf('euclidean', 3), 0.25);
});

test('no vector of finite numbers has a distance that is none', () => {
  const vector = fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(vector, vector, fc.constantFrom('cosine' as const, 'euclidean' as const), (a, b, metric) => {
      const found = distance(metric, [...a], [...b]);
      assert.ok(Number.isFinite(found) && found >= 0, `${found}`);
      assert.equal(found, distance(metric, [...b], [...a]));
    }),
  );
});

test('a vector reads as it was written, with the fewest digits', () => {
  assert.equal(
    vectorJson(Float32Array.of(0.1, -1, 0, 1e-30, 16777216, 0.3333333)),
    '[0.1,-1,0,1e-30,16777216,0.3333333]',
  );
  fc.assert(
    fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true }), (vector) => {
      assert.deepEqual(
        Float32Array.from(JSON.parse(vectorJson(vector))),
        vector.map((n) => n + 0),
      );
    }),
  );
});
