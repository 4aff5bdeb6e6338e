/** Objects as somebody wrote them: a builder takes those that JSON.parse takes, and says where wanted values stand. */
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChunkBuilder } from '../../../actors/columns/chunk-builder.ts';
import { WantedMembers } from '../../../actors/columns/wanted-members.ts';
import { JsonSyntaxError } from '../../../src/base/json-scanner.ts';
import { damaged, damages, fuzz, jsonSuite, jsonText } from '../../support/json-cases.ts';

const names = ['b', 'a', 'é'];

/** What JSON.parse makes of the members that are wanted; null where it is no object. */
function parsed(text: string): readonly unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !text.startsWith('{')) return null;
    return names.map((name) =>
      Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined,
    );
  } catch {
    return null;
  }
}

/** The same of a builder; 'deep' where it refuses the depth alone. */
function added(text: string): readonly unknown[] | null | 'deep' {
  const builder = new ChunkBuilder();
  const wanted = new WantedMembers(names);
  builder.wanted = wanted;
  const bytes = Buffer.from(`..${text}}]"`);
  const end = 2 + Buffer.byteLength(text);
  try {
    builder.addObject(bytes, 2, end);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    return error.kind === 'depth' ? 'deep' : null;
  }
  assert.equal(builder.rowCount, 1);
  return names.map((_, member) => {
    const start = wanted.starts[member] as number;
    if (start < 0) return undefined;
    const value = bytes.toString('utf8', start, wanted.ends[member]);
    const isEscaped = value.startsWith('"') && value.includes('\\');
    assert.equal(wanted.escaped[member] === 1, isEscaped, value);
    return JSON.parse(value);
  });
}

function same(text: string): void {
  const [ours, theirs] = [added(text), parsed(text)];
  // Too deep is too deep, whatever else it is.
  if (ours !== 'deep') assert.deepEqual(ours, theirs, text.slice(0, 1_000));
}

describe('objects are taken as JSON.parse takes them', () => {
  for (const { name, input } of jsonSuite)
    test(name, () => {
      for (const text of [input, `{"a":${input}}`, `{"x":${input},"é":[${input}]}`])
        if (!text.endsWith(' ') && !text.endsWith('\n')) same(text);
    });

  test('numbers and words that are nearly some', () => {
    const odd = [
      '-',
      '-a',
      '01',
      '-01',
      '00',
      '1.',
      '.5',
      '1.e3',
      '1e',
      '1e+',
      '+1',
      '1 2',
      'nul',
      'tru',
      'falsy',
    ];
    const fine = [
      '0',
      '-0',
      '0.5',
      '-0.0',
      '1e5',
      '1E-5',
      '12345678901234567',
      '9223372036854775807',
      '1.5e300',
    ];
    const long = [
      '9223372036854775808',
      '-9223372036854775808',
      '123456789012345678901234567890',
      '0.12345678901234567',
    ];
    for (const value of [...odd, ...fine, ...long])
      for (const text of [`{"a":${value}}`, `{"a":${value},"b":1}`, `{"b":"\\u0061","a" : ${value} }`])
        same(text);
  });

  test('keys that come twice, are escaped, or of whom there are too many', () => {
    same('{"a":1,"a":"\\n","b":2,"b":3}');
    same('{"\\u0061":1,"\\u00e9":"é"}');
    const many = Array.from({ length: 5_000 }, (_, i) => `"k${i}":${i}`).join();
    same(`{${many},"a":7,"\\u0062":"x","é":[1]}`);
    assert.deepEqual(added(`{"a":1}{"a":2}`), null);
  });

  test('random objects, whole and damaged', () => {
    const member = fc.tuple(fc.constantFrom('a', 'b', 'é', 'x', '\\u0061'), jsonText.value);
    const object = fc
      .array(member, { maxLength: 5 })
      .map((members) => `{${members.map(([key, value]) => `"${key}":${value}`).join()}}`);
    fc.assert(
      fc.property(object, damages, (text, damage) => {
        same(text);
        const bytes = damaged(text, damage);
        const broken = bytes.toString();
        // The others come to no reader of lines.
        if (isUtf8(bytes) && !/\s$/u.test(broken)) same(broken);
      }),
      fuzz,
    );
  });
});
