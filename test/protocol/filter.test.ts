import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../protocol/errors.ts';
import { filterMatches, type MetaObject, type MetaValue, parseFilter } from '../../protocol/filter.ts';
import { limits } from '../../protocol/limits.ts';

const big = 435090932899640449n;

interface Row {
  readonly rule: string;
  readonly filter: unknown;
  readonly keeps: readonly MetaObject[];
  readonly drops: readonly MetaObject[];
}

const rows: readonly Row[] = [
  { rule: 'an empty filter keeps everything', filter: {}, keeps: [{}, { a: 1 }], drops: [] },
  {
    rule: 'a plain value is equality and strings compare exactly',
    filter: { kind: 'note' },
    keeps: [{ kind: 'note' }],
    drops: [{ kind: 'Note' }, { kind: 'note ' }, {}, { kind: null }, { kind: ['note'] }],
  },
  { rule: 'eq is the same as a plain value', filter: { n: { eq: 3 } }, keeps: [{ n: 3 }], drops: [{ n: 4 }] },
  {
    rule: '3 equals 3.0 and not the string',
    filter: JSON.parse('{"n": 3.0}'),
    keeps: [{ n: 3 }, { n: 3n }],
    drops: [{ n: '3' }, { n: true }, {}],
  },
  {
    rule: 'integers beyond 2^53 compare exactly',
    filter: { n: big },
    keeps: [{ n: big }],
    drops: [{ n: big + 1n }, { n: Number(big) }],
  },
  { rule: 'zero equals minus zero', filter: { n: -0 }, keeps: [{ n: 0 }, { n: 0n }], drops: [{ n: false }] },
  {
    rule: 'an array is one of its values',
    filter: { k: ['a', 2, null] },
    keeps: [{ k: 'a' }, { k: 2 }, { k: null }],
    drops: [{ k: 'b' }, { k: '2' }, {}, { k: ['a', 2, null] }],
  },
  {
    rule: 'in is the same as an array',
    filter: { k: { in: [1, 2] } },
    keeps: [{ k: 2 }],
    drops: [{ k: 3 }, {}],
  },
  { rule: 'in of nothing keeps nothing', filter: { k: { in: [] } }, keeps: [], drops: [{ k: 1 }, {}] },
  {
    rule: 'ne passes a document without the key',
    filter: { k: { ne: 'a' } },
    keeps: [{}, { k: 'b' }, { k: null }, { k: 1 }],
    drops: [{ k: 'a' }],
  },
  {
    rule: 'ranges combine; non-numbers and missing keys fail',
    filter: { n: { gte: 1, lt: 5 } },
    keeps: [{ n: 1 }, { n: 4.9 }, { n: 4n }],
    drops: [{ n: 5 }, { n: 0.9 }, { n: '3' }, { n: true }, { n: null }, {}],
  },
  { rule: 'gt and lte', filter: { n: { gt: 1, lte: 5 } }, keeps: [{ n: 5 }], drops: [{ n: 1 }, { n: 5.1 }] },
  {
    rule: 'a range bound beyond 2^53 is exact',
    filter: { n: { gt: big } },
    keeps: [{ n: big + 1n }],
    drops: [{ n: big }, { n: Number(big) }],
  },
  {
    rule: 'booleans match booleans only',
    filter: { done: true },
    keeps: [{ done: true }],
    drops: [{ done: false }, { done: 1 }, { done: 'true' }, {}],
  },
  {
    rule: 'null matches JSON null and not a missing key',
    filter: { k: null },
    keeps: [{ k: null }],
    drops: [{}, { k: 0 }, { k: '' }, { k: false }],
  },
  {
    rule: 'eq of an array matches the identical array only',
    filter: { k: { eq: [1, 'a'] } },
    keeps: [{ k: [1, 'a'] }],
    drops: [{ k: ['a', 1] }, { k: [1] }, { k: 1 }, { k: [1, 'a', 2] }, { k: { 0: 1, 1: 'a' } }],
  },
  {
    rule: 'ne of an array passes every other value',
    filter: { k: { ne: [1] } },
    keeps: [{}, { k: 1 }, { k: [2] }],
    drops: [{ k: [1] }],
  },
  {
    rule: 'nested objects of a document match nothing but ne',
    filter: { k: { ne: 1 } },
    keeps: [{ k: { deep: 1 } }],
    drops: [{ k: 1 }],
  },
  {
    rule: 'all keys must hold, and operators of one key too',
    filter: { a: 1, b: { ne: 2, gt: 0 } },
    keeps: [{ a: 1, b: 3 }],
    drops: [{ a: 1, b: 2 }, { a: 2, b: 3 }, { a: 1 }],
  },
  {
    rule: 'keys that objects inherit are only keys',
    filter: JSON.parse('{"__proto__": 1, "constructor": {"ne": 5}}'),
    keeps: [JSON.parse('{"__proto__": 1}')],
    drops: [{}, JSON.parse('{"__proto__": 2}'), JSON.parse('{"__proto__": 1, "constructor": 5}')],
  },
  {
    rule: 'toString is a missing key',
    filter: { toString: { ne: 1 } },
    keeps: [{}],
    drops: [{ toString: 1 }],
  },
  { rule: 'the empty key is a key', filter: { '': 1 }, keeps: [{ '': 1 }], drops: [{}] },
];

for (const { rule, filter, keeps, drops } of rows) {
  test(`filter: ${rule}`, () => {
    const parsed = parseFilter(filter);

    for (const meta of keeps) assert.ok(filterMatches(parsed, meta), `keeps ${show(meta)}`);
    for (const meta of drops) assert.ok(!filterMatches(parsed, meta), `drops ${show(meta)}`);
    for (const meta of [...keeps, ...drops]) {
      const map = new Map<string, MetaValue>(Object.entries(meta));
      assert.equal(
        filterMatches(parsed, map),
        filterMatches(parsed, meta),
        `a map is the same: ${show(meta)}`,
      );
    }
  });
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}

const refusals: readonly (readonly [name: string, filter: unknown, message: RegExp])[] = [
  ['a string', 'kind', /filter must be a JSON object/],
  ['an array', [1], /filter must be a JSON object/],
  ['null', null, /filter must be a JSON object/],
  ['a range over a string', { n: { gt: '3' } }, /range operator gt takes a number/],
  ['a range over a boolean', { n: { lte: true } }, /range operator lte takes a number/],
  ['a range over null', { n: { gte: null } }, /range operator gte takes a number/],
  ['a range over infinity', JSON.parse('{"n": {"lt": 1e999}}'), /range operator lt takes a number/],
  [
    'an unknown operator',
    { n: { like: 'a' } },
    /unknown operator "like" \(allowed: in, eq, ne, gt, gte, lt, lte\)/,
  ],
  ['a nested object', { a: { b: { c: 1 } } }, /unknown operator "b"/],
  [
    'operators named like what objects inherit',
    JSON.parse('{"a": {"__proto__": 1}}'),
    /unknown operator "__proto__"/,
  ],
  ['an empty object', { a: {} }, /must name an operator/],
  ['eq of an object', { a: { eq: { b: 1 } } }, /value must be/],
  ['an object among values', { a: [{ b: 1 }] }, /value must be/],
  ['in of a scalar', { a: { in: 1 } }, /operator in takes an array/],
  ['a number out of range', JSON.parse('{"n": 1e999}'), /out of range/],
];

for (const [name, filter, message] of refusals) {
  test(`filter: ${name} is refused`, () => {
    assert.throws(
      () => parseFilter(filter),
      (error: unknown) => {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, 'invalid');
        assert.match(error.message, message);
        assert.match(error.fields?.filter ?? '', message);
        return true;
      },
    );
  });
}

test('filter: keys, values of in, bytes and nesting have limits', () => {
  const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
  const values = (count: number) => ({ k: Array.from({ length: count }, (_, i) => i) });
  const nested = (depth: number) => ({ k: { eq: JSON.parse('['.repeat(depth) + ']'.repeat(depth)) } });

  assert.equal(parseFilter(keys(limits.filterKeysMax)).terms.length, limits.filterKeysMax);
  assert.throws(() => parseFilter(keys(limits.filterKeysMax + 1)), /at most 100 keys/);
  parseFilter(values(limits.filterInValuesMax));
  assert.throws(() => parseFilter(values(limits.filterInValuesMax + 1)), /at most 1000 values/);
  parseFilter({ k: 'x'.repeat(limits.filterBytesMax - 20) });
  assert.throws(() => parseFilter({ k: 'x'.repeat(limits.filterBytesMax) }), /at most 65536 bytes/);
  parseFilter(nested(limits.jsonDepthMax - 2));
  assert.throws(() => parseFilter(nested(limits.jsonDepthMax)), /at most 32 deep/);
  assert.throws(() => parseFilter(nested(5_000)), /at most 32 deep/);
});
