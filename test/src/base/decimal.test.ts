import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactDigitsMax, numberOfDigits } from '../../../src/base/decimal.ts';
import { seededRandom } from '../../support/segments.ts';

test('a number that is made of its digits is the one that JSON.parse makes of its text', () => {
  const random = seededRandom(7);
  for (let i = 0; i < 100_000; i++) {
    const length = 1 + Math.floor(random() * exactDigitsMax);
    const digits = String(Math.floor(random() * 10 ** length)).padStart(length, '0');
    const fraction = Math.floor(random() * length);
    const text = `${Number(digits.slice(0, length - fraction))}.${digits.slice(length - fraction)}0`;

    assert.equal(numberOfDigits(Number(digits), fraction), JSON.parse(text), text);
  }
});
