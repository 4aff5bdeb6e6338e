import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonSyntaxError } from '../../../../src/base/json.ts';
import {
  isAbsent,
  type Member,
  readMembers,
  type Shape,
  stringOf,
} from '../../../../src/front/mcp/json-members.ts';

const shape: Shape = { a: { b: {} }, c: {} };
const read = (text: string, elementsMax = 100) => readMembers(Buffer.from(text), shape, elementsMax);

/** What a member stands for, put together again from its parts as far as they were taken apart. */
function saidBy({ json, members }: Member): unknown {
  if (members === null) return JSON.parse(json.toString());
  return Object.fromEntries([...members].map(([name, member]) => [name, saidBy(member)]));
}

test('whatever JSON says, its parts together say it too', () => {
  const named = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'x', '', '__proto__', 'é"\\'), fc.jsonValue());
  const value = fc.oneof(named, fc.record({ a: fc.record({ b: named }), c: named, x: fc.jsonValue() }));
  const spaces = fc.constantFrom(0, 1, 3);
  fc.assert(
    fc.property(value, spaces, (given, indent) => {
      const text = JSON.stringify(given, null, indent);

      const { isArray, elements } = read(text);

      assert.equal(isArray, false);
      const [element] = elements;
      assert.ok(element !== undefined);
      assert.deepEqual(saidBy(element), Object.fromEntries(Object.entries(JSON.parse(text))));
    }),
    { numRuns: 1_000 },
  );
});

test('values are the bytes that were sent', () => {
  const [element] = read('{"a": {"b": {"n": 435090932899640449}}, "x" : 1.50 , "c":{"f":1e3}}').elements;
  const a = element?.members?.get('a')?.members;

  assert.equal(a?.get('b')?.members?.get('n')?.json.toString(), '435090932899640449');
  assert.equal(element?.members?.get('x')?.json.toString(), '1.50');
  assert.equal(element?.members?.get('c')?.json.toString(), '{"f":1e3}');
});

test('the elements of an array are taken apart like an object, and are so many at most', () => {
  const { isArray, elements } = read('[{"a":1},2,"x",[{"a":1}],null]');

  assert.equal(isArray, true);
  assert.deepEqual(
    elements.map(({ members }) => members !== null),
    [true, false, false, false, false],
  );
  assert.deepEqual(read('[]').elements, []);
  assert.throws(() => read('[1,2,3]', 2), /more than 2 messages/);
});

test('of a name that stands twice the last counts, as JSON.parse has it', () => {
  const [element] = read('{"a":1,"a":{"b":2},"\\u0061":3}').elements;

  assert.equal(element?.members?.get('a')?.json.toString(), '3');
});

test('what is no JSON is refused with its place, wherever it ends', () => {
  const text = '{"a":{"b":{"s":"\\u00e9 x"}},"c":[1,-2.5e3,true,false,null]}';
  for (let end = 0; end < text.length; end++)
    assert.throws(() => read(text.slice(0, end)), JsonSyntaxError, text.slice(0, end));
  for (const wrong of [
    '{}{}',
    '{"a":01}',
    "{'a':1}",
    '{"a":1,}',
    '[1,]',
    '{"a"}',
    'nul',
    '"\\x"',
    '{"a":NaN}',
  ])
    assert.throws(() => read(wrong), JsonSyntaxError, wrong);
  assert.throws(() => readMembers(Buffer.from([0x22, 0xff, 0x22]), shape, 1), JsonSyntaxError);
});

test('an object has so many members at most, and nests so deeply', () => {
  const many = `{${Array.from({ length: 1_001 }, (_, at) => `"k${at}":1`).join(',')}}`;

  assert.throws(() => read(many), /more than 1000 members/);
  assert.throws(() => read(`{"x":${'['.repeat(2_000)}${']'.repeat(2_000)}}`), JsonSyntaxError);
});

test('a string is told from what is none, and null counts as absent', () => {
  const [element] = read('{"s":"a\\n\\"","n":5,"z":null}').elements;
  const member = (name: string) => element?.members?.get(name);

  assert.equal(stringOf(member('s')), 'a\n"');
  assert.deepEqual([stringOf(member('n')), stringOf(member('none'))], [null, null]);
  assert.deepEqual(
    [isAbsent(member('z')), isAbsent(member('none')), isAbsent(member('n'))],
    [true, true, false],
  );
});
