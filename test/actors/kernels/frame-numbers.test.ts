import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameNumbers } from '../../../actors/kernels/frame-numbers.ts';
import { Chance } from '../../simulation/chance.ts';

test('numbers of every width add up as big integers do', () => {
  const chance = new Chance(5, 0);
  const kernels = frameNumbers();
  const sumOf = (numbers: Iterable<number>) => [...numbers].reduce((sum, number) => sum + BigInt(number), 0n);
  for (let round = 0; round < 300; round++) {
    const length = chance.pick([chance.integer(0, 40), chance.integer(0, kernels.rowsMax), kernels.rowsMax]);
    const Width = chance.pick([Uint8Array, Uint16Array, Uint32Array]);
    const largest = 2 ** (Width.BYTES_PER_ELEMENT * 8) - 1;
    const isLargest = chance.integer(0, 2) === 0;
    // Behind a frame of a chunk stand other numbers.
    const all = new Width(length + 9).map(() => (isLargest ? largest : chance.integer(0, largest)));
    const numbers = all.subarray(2, 2 + length);
    assert.equal(BigInt(kernels.total(numbers)), sumOf(numbers));

    const word = () =>
      BigInt(chance.pick([0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, chance.integer(0, 2 ** 32 - 1)]));
    const wide = BigInt64Array.from({ length }, () => BigInt.asIntN(64, (word() << 32n) | word()));
    const { low, high } = kernels.totalsOfHalves(wide);
    assert.equal(
      BigInt(low) + (BigInt(high) << 32n),
      wide.reduce((sum, value) => sum + value, 0n),
    );
  }
});

test('more numbers than there is room for are a mistake', () => {
  const { rowsMax } = frameNumbers();
  assert.throws(() => frameNumbers().total(new Uint8Array(rowsMax + 1)), /numbers, and room for/);
});
