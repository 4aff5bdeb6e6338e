import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../protocol/errors.ts';
import {
  choice,
  integer,
  list,
  parseQueryWith,
  parseWith,
  queryBoolean,
  queryInteger,
  reportedFieldsMax,
  text,
  z,
} from '../../protocol/validate.ts';

const schema = z.strictObject({
  limit: integer(1, 1000).optional(),
  name: text({ charactersMin: 1, charactersMax: 5 }).optional(),
  docs: list(z.strictObject({ id: text() }), 3).optional(),
  kind: choice(['a', 'b']).optional(),
  flag: z.boolean().optional(),
});

function fieldsOf(run: () => unknown): Record<string, string> {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return { ...error.fields };
  }
  return {};
}

const wrong: readonly (readonly [value: unknown, fields: Record<string, string>])[] = [
  [{ limit: 0 }, { limit: 'must be an integer from 1 to 1000' }],
  [{ limit: 1001 }, { limit: 'must be an integer from 1 to 1000' }],
  [{ limit: 1.5 }, { limit: 'must be an integer from 1 to 1000' }],
  [{ limit: '5' }, { limit: 'must be an integer from 1 to 1000' }],
  [{ limit: 2n ** 60n }, { limit: 'must be an integer from 1 to 1000' }],
  [{ name: '' }, { name: 'must have 1 to 5 characters' }],
  [{ name: 'abcdef' }, { name: 'must have 1 to 5 characters' }],
  [{ name: '\ud800' }, { name: 'must be well-formed Unicode: it holds half of a surrogate pair' }],
  [{ name: 5 }, { name: 'must be a string' }],
  [{ docs: [{ id: 'a' }, { id: 1 }] }, { 'docs[1].id': 'must be a string' }],
  [{ docs: [{}] }, { 'docs[0].id': 'is required' }],
  [{ docs: [1] }, { 'docs[0]': 'must be a JSON object' }],
  [{ docs: {} }, { docs: 'must be an array' }],
  [{ docs: [{ id: null }], limit: null }, { 'docs[0].id': 'must be a string' }],
  [
    { docs: [null], nmae: null },
    { 'docs[0]': 'must be a JSON object', nmae: 'is not a known field' },
  ],
  [{ docs: [1, 2, 3, 4] }, { docs: 'must have at most 3 elements' }],
  [{ kind: 'c' }, { kind: 'must be one of "a", "b"' }],
  [{ flag: 'yes' }, { flag: 'must be true or false' }],
  [
    { nmae: 1, extra: 2 },
    { nmae: 'is not a known field', extra: 'is not a known field' },
  ],
  [{ docs: [{ id: 'a', x: 1 }] }, { 'docs[0].x': 'is not a known field' }],
  [[], { body: 'must be a JSON object' }],
  [null, { body: 'must be a JSON object' }],
  ['x', { body: 'must be a JSON object' }],
];

for (const [value, fields] of wrong) {
  const shown = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each));
  test(`validate: ${shown} names what is wrong`, () => {
    assert.deepEqual(
      fieldsOf(() => parseWith(schema, value)),
      fields,
    );
  });
}

test('validate: an optional field that is null is absent, at any depth; one that takes null keeps it', () => {
  const nested = z.strictObject({
    size: integer(1).default(3),
    inner: z.strictObject({ flag: z.boolean().optional(), off: z.boolean().nullable() }).optional(),
    any: z.unknown().optional(),
  });

  assert.deepEqual(parseWith(schema, { limit: null, name: 'a', docs: null, kind: null, flag: null }), {
    name: 'a',
  });
  assert.deepEqual(parseWith(nested, { size: null, inner: { flag: null, off: null }, any: { kept: null } }), {
    size: 3,
    inner: { off: null },
    any: { kept: null },
  });
});

test('validate: keys that objects inherit are unknown fields and pollute nothing', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const body: unknown = JSON.parse(`{"${name}": {"polluted": true}}`);

    assert.throws(
      () => parseWith(schema, body),
      (error: unknown) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual(Object.keys(error.fields ?? {}), [name]);
        assert.match(Buffer.from(error.toBody()).toString(), new RegExp(`"fields":{"${name}"`));
        return true;
      },
    );
    assert.equal(Reflect.get({}, 'polluted'), undefined);
  }
});

test('validate: characters are code points', () => {
  const five = text({ charactersMin: 5, charactersMax: 5 });

  assert.equal(parseWith(five, '😀😀😀😀😀'), '😀😀😀😀😀');
  assert.throws(() => parseWith(five, '😀😀😀😀'));
  assert.throws(() => parseWith(five, '😀😀😀😀😀😀'));
});

test('validate: the sentence names the first fields, fields are bounded, prefix and code are kept', () => {
  const body = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x${i}`, i]));

  assert.throws(
    () => parseWith(schema, body, 'docs[7]', 'bad_request'),
    (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.status, 400);
      assert.equal(Object.keys(error.fields ?? {}).length, reportedFieldsMax);
      assert.match(error.message, /^docs\[7\]\.x0: is not a known field; .* and 17 more$/);
      return true;
    },
  );
});

test('validate: a long unknown name is cut', () => {
  const fields = fieldsOf(() => parseWith(schema, { ['y'.repeat(100_000)]: 1 }));

  assert.deepEqual(
    Object.keys(fields).map((name) => name.length),
    [101],
  );
});

test('validate: an integer past what JavaScript holds exactly hears of that bound, others of their own', () => {
  const schema = z.strictObject({ cap: integer(1) });

  assert.deepEqual(
    fieldsOf(() => parseWith(schema, { cap: 2 ** 53 })),
    {
      cap: 'must be an integer from 1 to 9007199254740991',
    },
  );
  assert.deepEqual(
    fieldsOf(() => parseWith(schema, { cap: 0 })),
    { cap: 'must be an integer of at least 1' },
  );
  assert.deepEqual(
    fieldsOf(() => parseWith(schema, { cap: 1.5 })),
    { cap: 'must be an integer of at least 1' },
  );
  assert.deepEqual(
    fieldsOf(() => parseWith(schema, {})),
    { cap: 'is required' },
  );
});

test('validate: query strings give booleans and integers', () => {
  const query = z.strictObject({
    flag: queryBoolean().default(false),
    limit: queryInteger(1, 9).default(5),
  });
  const parse = (...entries: [string, string][]) => parseQueryWith(query, new Map(entries));

  assert.deepEqual(parse(), { flag: false, limit: 5 });
  assert.deepEqual(parse(['flag', 'true'], ['limit', '9']), { flag: true, limit: 9 });
  assert.deepEqual(parse(['flag', '1']), { flag: true, limit: 5 });
  assert.deepEqual(parse(['flag', '0']), { flag: false, limit: 5 });
  for (const flag of ['yes', 'TRUE', '', '01']) {
    assert.deepEqual(
      fieldsOf(() => parse(['flag', flag])),
      { flag: 'must be true, false, 1 or 0' },
    );
  }
  for (const limit of ['0', '10', '1.0', '1e0', '', ' 1', '0x1', '99999999999999999999']) {
    assert.deepEqual(
      fieldsOf(() => parse(['limit', limit])),
      { limit: 'must be an integer from 1 to 9' },
    );
  }
  assert.deepEqual(
    fieldsOf(() => parse(['__proto__', 'x'])),
    JSON.parse('{"__proto__": "is not a known field"}'),
  );
});
