import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PairTable } from '../../../actors/kernels/pair-table.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

/** The naive twin: pairs as strings. */
class NaivePairs {
  readonly numbers = new Map<string, number>();

  number(first: number, second: number): number {
    const name = `${first} ${second}`;
    const number = this.numbers.get(name) ?? this.numbers.size;
    this.numbers.set(name, number);
    return number;
  }
}

test('pairs get the numbers that a map gives them, also in a table that had others before', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const table = new PairTable();
  for (let round = 0; round < 12; round++) {
    table.reset();
    assert.equal(table.count, 0);
    const naive = new NaivePairs();
    // From one first number that all pairs have to a first number a pair; second numbers of all 32 bits.
    const firstsBelow = Math.ceil(2 ** (random() * 17));
    const secondsBelow = 2 ** (random() * 32);
    for (let frame = 0; frame < 4; frame++) {
      const length = Math.floor(random() * 24_000);
      const firsts = Int32Array.from({ length }, () => Math.floor(random() * firstsBelow));
      const seconds = Int32Array.from({ length: length + 3 }, () => Math.floor(random() * secondsBelow) | 0);
      const wanted = firsts.map((first, i) => naive.number(first, seconds[i] as number));
      let held = table.bytes;
      // What is free again may be used in place of what was held for it.
      const hold = (bytes: number) => {
        held = Math.max(held, bytes);
      };
      assert.ok(table.internAll(firsts, seconds, hold));
      assert.deepEqual(firsts, wanted);
      assert.ok(table.bytes <= held, `${table.bytes} bytes of ${held}`);
    }
    assert.equal(table.count, naive.numbers.size);
    const some = Int32Array.from({ length: 20_000 }, () => Math.floor(random() * table.count));
    if (table.count === 0) continue;
    const pairs = [...naive.numbers.keys()].map((name) => name.split(' ').map(Number));
    assert.deepEqual(
      table.firsts(some),
      some.map((number) => pairs[number]?.[0] as number),
    );
    assert.deepEqual(
      table.seconds(some),
      some.map((number) => pairs[number]?.[1] as number),
    );
  }
});

test('a table takes nothing that it may not, and what it has stays as it was', () => {
  const table = new PairTable();
  const count = 100_000;
  const limit = 1_000_000;
  const numbers = Int32Array.from({ length: count }, (_, at) => at);
  const refuse = (bytes: number) => {
    if (bytes > limit) throw new Error('enough');
  };
  assert.throws(() => table.internAll(numbers.slice(), numbers, refuse), /enough/);
  assert.ok(table.bytes <= limit && table.count < count, `${table.bytes} bytes, ${table.count} pairs`);

  assert.ok(table.internAll(numbers, numbers.slice(), () => {}));

  assert.equal(table.count, count);
  assert.equal(numbers.at(-1), count - 1);
  table.reset();
  assert.equal(table.count, 0);
  assert.ok(table.bytes < limit);
  assert.ok(table.memoryBytes > limit, 'a memory never shrinks');
});
