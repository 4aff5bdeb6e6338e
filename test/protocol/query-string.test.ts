import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../protocol/errors.ts';
import { parseQueryString, queryParametersMax } from '../../protocol/query-string.ts';

const good: readonly (readonly [raw: string, entries: readonly (readonly [string, string])[]])[] = [
  ['', []],
  ['&', []],
  ['q=a', [['q', 'a']]],
  [
    'q=a&&limit=5&',
    [
      ['q', 'a'],
      ['limit', '5'],
    ],
  ],
  ['q', [['q', '']]],
  ['q=', [['q', '']]],
  ['q=a=b', [['q', 'a=b']]],
  ['q=a+b%2Bc%20d', [['q', 'a b+c d']]],
  ['q=%C3%A9%F0%9F%98%80', [['q', 'é😀']]],
  ['q=%2525', [['q', '%25']]],
  ['q=%EF%BF%BD', [['q', '\ufffd']]],
  ['__proto__=1', [['__proto__', '1']]],
];

for (const [raw, entries] of good) {
  test(`query string: ${JSON.stringify(raw)} reads`, () => {
    assert.deepEqual([...parseQueryString(raw)], entries);
  });
}

const bad: readonly (readonly [raw: string, status: number])[] = [
  ['q=%', 400],
  ['q=%zz', 400],
  ['q=%ff', 400],
  ['q=a\ufffd', 400],
  ['q=%ED%A0%80', 400],
  ['%=1', 400],
  ['q=1&q=2', 422],
  ['q=1&%71=2', 422],
  [Array.from({ length: queryParametersMax + 1 }, (_, i) => `a${i}=1`).join('&'), 422],
];

for (const [raw, status] of bad) {
  test(`query string: ${JSON.stringify(raw.slice(0, 30))} is refused with ${status}`, () => {
    assert.throws(
      () => parseQueryString(raw),
      (error: unknown) => error instanceof ApiError && error.status === status,
    );
  });
}
