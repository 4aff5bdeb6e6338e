import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partOf } from '../../../load-tests/load/autocannon.ts';

describe('the parts of requests that connections ask for', () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

  it('together have every request, and begin at even distances', () => {
    const parts = numbers(10).map((client) => partOf(numbers(1_000), client, 10));

    assert.deepEqual(parts.flat(), numbers(1_000));
  });

  it('overlap where there are few, each beginning at another one', () => {
    const parts = numbers(3).map((client) => partOf(numbers(6), client, 3));

    assert.deepEqual(parts, [
      [0, 1, 2, 3, 4, 5],
      [2, 3, 4, 5, 0, 1],
      [4, 5, 0, 1, 2, 3],
    ]);
  });

  it('are never empty, however many connections there are', () => {
    for (const client of numbers(256)) assert.ok(partOf(numbers(3), client, 256).length > 0);
  });
});
