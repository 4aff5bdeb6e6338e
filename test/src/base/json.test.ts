import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import fc from 'fast-check';
import { isWellFormedDeep, type JsonValue, parseJson } from '../../../src/base/json.ts';
import { JsonSyntaxError } from '../../../src/base/json-scanner.ts';
import { damaged, damages, fuzz, jsonSuite, jsonText } from '../../support/json-cases.ts';

const parse = (text: string | Uint8Array, depthMax = 32) => parseJson(Buffer.from(text), { depthMax });

function refusal(text: string | Uint8Array, depthMax = 32): JsonSyntaxError {
  try {
    parse(text, depthMax);
  } catch (error) {
    assert.ok(error instanceof JsonSyntaxError, String(error));
    return error;
  }
  assert.fail(`accepted: ${Buffer.from(text)}`);
}

/** The same value with every bigint as the double that JSON.parse makes of it. */
function asDoubles(value: JsonValue): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => asDoubles(item));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, asDoubles(member)]));
}

function nativeOutcome(bytes: Uint8Array): { readonly value: unknown } | null {
  if (!isUtf8(bytes)) return null;
  try {
    return { value: JSON.parse(Buffer.from(bytes).toString()) };
  } catch {
    return null;
  }
}

test('every case of the JSON test suite is accepted or refused as JSON.parse does', () => {
  const deep = new Set(['i_structure_500_nested_arrays.json']);
  assert.ok(jsonSuite.length > 300);

  for (const { name, input } of jsonSuite) {
    const bytes = Buffer.from(input);
    const expected = deep.has(name) ? null : nativeOutcome(bytes);

    if (expected === null) assert.ok(refusal(bytes, 256), name);
    else assert.deepEqual(asDoubles(parse(bytes, 256)), expected.value, name);
  }
});

test('random and damaged texts are accepted or refused as JSON.parse does, with the same values', () => {
  fc.assert(
    fc.property(jsonText.value, damages, (text, list) => {
      const bytes = damaged(text, list);
      const expected = nativeOutcome(bytes);

      if (expected === null) refusal(bytes);
      else assert.deepEqual(asDoubles(parse(bytes)), expected.value);
    }),
    fuzz,
  );
});

test('integers that a double cannot hold are bigints, other numbers are doubles', () => {
  assert.deepEqual(parse('[435090932899640449, -9223372036854775808, 9007199254740991, 9007199254740993]'), [
    435090932899640449n,
    -9223372036854775808n,
    9007199254740991,
    9007199254740993n,
  ]);
  assert.deepEqual(parse('[0.12345678901234567890, 1e999, 1.0, 12345678901234567890e-3]'), [
    0.12345678901234568,
    Number.POSITIVE_INFINITY,
    1,
    Number('12345678901234567890e-3'),
  ]);
});

test('the last of duplicate keys wins with and without long numbers', () => {
  assert.deepEqual(parse('{"a":1,"a":2}'), { a: 2 });
  assert.deepEqual(parse('{"a":1234567890123456789,"a":2}'), { a: 2 });
});

test('an escaped key is what it means, whatever objects were parsed before', () => {
  // V8 since Node 24 takes the second object's key for that of the first.
  assert.deepEqual(parse('{"x":0,"\\\\":1}'), { x: 0, '\\': 1 });
  assert.deepEqual(parse('{"x":0,"\\u0061":2}'), { x: 0, a: 2 });
  assert.deepEqual(parse('[{"x":0,"\\n":[2]}]'), [{ x: 0, '\n': [2] }]);
});

test('__proto__ is a key like any other with and without long numbers', () => {
  for (const number of ['1', '1234567890123456789']) {
    const value = parse(`{"__proto__":{"x":${number}}}`) as object;

    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.deepEqual(Object.keys(value), ['__proto__']);
  }
});

test('a text is refused where it nests deeper than asked, and accepted up to there', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  assert.ok(parse(nested(32)));
  assert.equal(refusal(nested(33)).kind, 'depth');
  assert.equal(refusal('['.repeat(2_000_000)).offset, 32);
  assert.equal(refusal('{"a":'.repeat(400_000)).kind, 'depth');
});

test('a refusal names the byte at which it happened', () => {
  assert.equal(refusal('{"é":tru}').offset, 6);
  assert.equal(refusal('[1,]').offset, 3);
  assert.equal(refusal('"a\nb"').offset, 2);
  assert.equal(refusal('"abc\\x"').offset, 4);
  assert.equal(refusal('[1').offset, 2);
  assert.equal(refusal('').offset, 0);
});

test('bytes that are not UTF-8 are refused at about the place, a byte order mark too', () => {
  const good = 'é'.repeat(1000);
  for (const bad of ['c080', 'ff', 'eda080', 'e282', 'f8a0808080', '80808080808080']) {
    const bytes = Buffer.concat([Buffer.from(`"${good}`), Buffer.from(bad, 'hex'), Buffer.from(`${good}"`)]);
    const { offset } = refusal(bytes);

    assert.ok(Math.abs(offset - 2001) <= 4, `${bad} at ${offset}`);
  }
  assert.equal(refusal('\ufeff{}').offset, 0);
});

test('a packed text is named as such', () => {
  assert.match(
    refusal(Buffer.from('1f8b0800000000000003', 'hex')).message,
    /it is packed by gzip: send it unpacked/,
  );
});

test('a part of a larger buffer is read alone', () => {
  const whole = Buffer.from('xx{"a":1}}}');

  assert.deepEqual(parseJson(whole.subarray(2, 9), { depthMax: 32 }), { a: 1 });
});

test('half a surrogate pair is found in values and keys at any depth', () => {
  assert.equal(isWellFormedDeep(parse('{"a":["\\ud83d\\ude00", 1, null, true]}')), true);
  assert.equal(isWellFormedDeep(parse('{"a":["\\ud83d"]}')), false);
  assert.equal(isWellFormedDeep(parse('{"a":[{"\\ude00":1}]}')), false);
});

test('a byte of any value is judged alike at every place of a word, beside ASCII and longer characters', () => {
  for (const fill of ['a', 'é', '\u007f', '😀']) {
    for (let place = 0; place < 18; place++) {
      for (let byte = 0; byte < 0x80; byte++) {
        const text = `["${fill.repeat(place)}${String.fromCharCode(byte)}${fill.repeat(17 - place)}"]`;
        const expected = nativeOutcome(Buffer.from(text));

        if (expected === null) refusal(text);
        else assert.deepEqual(parse(text), expected.value);
      }
    }
  }
});

test('a text of too many values is refused before they are made, however they are nested', () => {
  const options = { depthMax: 32, valuesMax: 5 };

  assert.deepEqual(parseJson(Buffer.from('[1,[2,{"a":3}]]'), { ...options, valuesMax: 6 }), [
    1,
    [2, { a: 3 }],
  ]);
  for (const text of ['[1,[2,{"a":{}}],[]]', '[[],[],[],[],[]]', '{"a":1,"b":2,"c":3,"d":4,"e":5}'])
    assert.throws(() => parseJson(Buffer.from(text), options), /more than 5 values/);
});
