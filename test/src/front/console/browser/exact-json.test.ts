import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseExactly, writeExactly } from '../../../../../src/front/console/browser/exact-json.ts';

/** Node 20 does not tell a reviver what was written, as browsers do; there the numbers are rounded. */
it('JSON is read as always where nothing is told of its numbers', () => {
  assert.deepEqual(parseExactly('{"a": [1, 2.5, "x", null, true]}'), { a: [1, 2.5, 'x', null, true] });
});

it('values are written as JSON, bigints as the numbers that they are', () => {
  const value = { id: 435090932899640449n, list: [1, 'a "b"'], none: null, inner: { yes: true }, empty: {} };

  const text = writeExactly(value);

  assert.match(text, /"id": 435090932899640449,/);
  assert.deepEqual(JSON.parse(text), { ...value, id: Number(value.id) });
});
