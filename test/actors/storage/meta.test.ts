import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeMeta } from '../../../actors/storage/meta.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { DataError } from '../../../src/base/assert.ts';
import { parseJson } from '../../../src/base/json.ts';
import { fuzz, jsonText } from '../../support/json-cases.ts';

const merge = (current: string | null, patch: string) =>
  mergeMeta(current === null ? null : Buffer.from(current), Buffer.from(patch)).toString();

test('a merge replaces, adds and removes keys of the top level and keeps the others', () => {
  assert.equal(
    merge('{"a":1,"b":{"c":2},"d":"x"}', '{"b":{"e":3},"d":null,"f":true}'),
    '{"a":1,"b":{"e":3},"f":true}',
  );
});

test('values keep their text: long integers, exponents and inner whitespace', () => {
  assert.equal(
    merge('{ "big" : 435090932899640449 , "e": 1e999, "o": [ 1,\n 2 ] }', ' {"z": -0.10}'),
    '{"big":435090932899640449,"e":1e999,"o":[ 1,\n 2 ],"z":-0.10}',
  );
});

test('keys are compared by their meaning, and the last of duplicates wins', () => {
  assert.equal(merge('{"a":1,"a":2}', '{"\\u0061":3}'), '{"\\u0061":3}');
  assert.equal(merge('{"a":1,"a":2}', '{"b":1,"b":null,"c":null,"c":5}'), '{"a":2,"c":5}');
});

test('__proto__ and constructor are keys like any other', () => {
  assert.equal(merge('{"__proto__":1}', '{"constructor":2}'), '{"__proto__":1,"constructor":2}');
  assert.equal(merge('{"__proto__":1,"x":1}', '{"__proto__":null}'), '{"x":1}');
});

test('without a meta before, the patch is the meta, without its nulls', () => {
  assert.equal(merge(null, '{"a":null,"b":[null]}'), '{"b":[null]}');
  assert.equal(merge(null, '{}'), '{}');
  assert.equal(merge('{"a":1}', '{"a":null}'), '{}');
});

test('a merged meta over 16 KB is refused, one of 16 KB is not', () => {
  const half = `{"a":"${'x'.repeat(8000)}"}`;
  const other = (bytes: number) => `{"b":"${'y'.repeat(bytes)}"}`;
  const room = 16 * 1024 - half.length - ',"b":""'.length;

  assert.equal(merge(half, other(room)).length, 16 * 1024);
  assert.throws(
    () => mergeMeta(Buffer.from(half), Buffer.from(other(room + 1)), 'docs[7].meta'),
    (error: unknown) =>
      error instanceof ApiError && error.status === 422 && error.fields?.['docs[7].meta'] !== undefined,
  );
});

test('a stored meta that is not JSON is damaged data', () => {
  assert.throws(() => merge('{"a":}', '{"b":1}'), DataError);
});

test('a merge of random objects equals the merge of their parsed values', () => {
  const object = jsonText.object.filter((text) => text.length < 4000);
  fc.assert(
    fc.property(object, object, (current, patch) => {
      const expected = new Map<string, unknown>(Object.entries(parsed(current)));
      for (const [key, value] of Object.entries(parsed(patch))) {
        if (value === null) expected.delete(key);
        else expected.set(key, value);
      }

      const merged = new Map<string, unknown>(Object.entries(parsed(merge(current, patch))));

      assert.deepEqual(merged, expected);
    }),
    fuzz,
  );
});

/** Not by JSON.parse, which since Node 24 may take an escaped key for another one (test/src/base/json.test.ts). */
function parsed(json: string): object {
  return parseJson(Buffer.from(json), { depthMax: 32 }) as object;
}

test('a key that is written twice, once escaped, is one key, whatever objects were parsed before', () => {
  const twice = '{"":0,"constructor":0,"\\u0061":0,"a":1}';
  for (const before of ['{"":0,"constructor":0,"\\\\":1}', '{"":0,"constructor":0,"\\"":1}']) {
    JSON.parse(before);
    for (const [current, patch] of [
      [twice, '{}'],
      ['{}', twice],
      [twice, twice],
    ] as const) {
      assert.equal(merge(current, patch), '{"":0,"constructor":0,"a":1}');
      assert.deepEqual(parsed(merge(current, patch)), { '': 0, constructor: 0, a: 1 });
    }
  }
});
