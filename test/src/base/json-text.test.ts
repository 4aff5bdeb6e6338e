import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { escapedBytes, writeEscaped } from '../../../src/base/json-text.ts';

function written(text: string): string {
  const utf8 = Buffer.from(text);
  const target = Buffer.alloc(escapedBytes(utf8) + 2, '.');

  const end = writeEscaped(utf8, target, 1);

  assert.equal(end, target.length - 1, 'it takes as many bytes as it was said to');
  assert.equal(target[0], target.at(-1), 'and none beside them');
  return `"${target.toString('utf8', 1, end)}"`;
}

test('a text is written as JSON.stringify writes it', () => {
  const everyByte = String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code));
  for (const text of ['', everyByte, 'tide\n"\\', 'ä€😀\u2028\u007f'])
    assert.equal(written(text), JSON.stringify(text));

  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => written(text) === JSON.stringify(text)));
});
