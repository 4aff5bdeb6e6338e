import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import {
  parseCountBody,
  parseCountQuery,
  parseSearchBody,
  parseSearchQuery,
  parseWarmBody,
} from '../../protocol/search.ts';

const searchDefaults = {
  q: '',
  regex: false,
  filter: null,
  limit: 20,
  cursor: null,
  scan: false,
  context: 0,
};

function refusal(run: () => unknown): readonly [status: number, fields: readonly string[]] {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return [error.status, Object.keys(error.fields ?? {})];
  }
  return [200, []];
}

test('search: an empty body lists the newest twenty', () => {
  assert.deepEqual(parseSearchBody({}), searchDefaults);
  assert.deepEqual(parseSearchQuery(new Map(), JSON.parse), searchDefaults);
});

test('search: body and query string mean the same', () => {
  const body = {
    q: 'x',
    regex: true,
    filter: { a: { gt: 1 } },
    limit: 7,
    cursor: 'c',
    scan: true,
    min_version: 3,
    consistency: 'eventual',
    context: 2,
  };
  const query = new Map([
    ['q', 'x'],
    ['regex', '1'],
    ['filter', '{"a":{"gt":1}}'],
    ['limit', '7'],
    ['cursor', 'c'],
    ['scan', 'true'],
    ['min_version', '3'],
    ['consistency', 'eventual'],
    ['context', '2'],
  ]);

  const parsed = parseSearchBody(body);

  assert.deepEqual(parseSearchQuery(query, JSON.parse), parsed);
  assert.deepEqual(parsed.filter, { terms: [{ key: 'a', operator: 'gt', value: 1 }] });
});

test('search: an empty cursor is the first page', () => {
  assert.equal(parseSearchBody({ cursor: '' }).cursor, null);
});

test('search, count and warm: fields that are null are absent', () => {
  const names = [
    'q',
    'regex',
    'filter',
    'limit',
    'cursor',
    'scan',
    'min_version',
    'consistency',
    'vector',
    'semantic',
    'include',
  ];
  const nulls = Object.fromEntries(
    [...names, 'max_bytes', 'exact', 'rank', 'context', 'vector_b64'].map((name) => [name, null]),
  );
  const { q, regex, filter, exact, scan, min_version, consistency } = nulls;

  assert.deepEqual(parseSearchBody(nulls), searchDefaults);
  assert.deepEqual(parseSearchBody({ filter: null, cursor: 'c' }), { ...searchDefaults, cursor: 'c' });
  assert.deepEqual(
    parseCountBody({ q, regex, filter, exact, scan, min_version, consistency }),
    parseCountBody({}),
  );
  assert.equal(parseCountBody({ exact: false, filter: null }).filter, null);
  assert.deepEqual(parseWarmBody({ queries: null, regex: null, min_version: null }), parseWarmBody({}));
});

const wrongSearches: readonly (readonly [body: unknown, fields: readonly string[]])[] = [
  [{ q: 1 }, ['q']],
  [{ q: '\udc00' }, ['q']],
  [{ q: 'x'.repeat(limits.literalBytesMax + 1) }, ['q']],
  [{ q: 'x'.repeat(limits.patternCharactersMax + 1), regex: true }, ['q']],
  [{ limit: 1001 }, ['limit']],
  [{ limit: 0 }, ['limit']],
  [{ filter: [] }, ['filter']],
  [{ query: 'x' }, ['query']],
  [{ vector: [1], semantic: 'x' }, ['semantic']],
  [{ vector: [1], cursor: 'c' }, ['cursor']],
  [{ semantic: 'x', cursor: 'c' }, ['cursor']],
  [{ vector: ['1'] }, ['vector[0]']],
  [{ vector: [] }, ['vector']],
  [{ include: ['everything'] }, ['include[0]']],
  [{ min_version: -1 }, ['min_version']],
  [{ consistency: 'weak' }, ['consistency']],
  [{ context: 11 }, ['context']],
  [{ vector_b64: 'AACAPw==', vector: [1] }, ['vector_b64']],
  [{ vector_b64: 'AACAPw==', semantic: 'x' }, ['semantic']],
  [{ vector_b64: 'AACAP' }, ['vector_b64']],
  [{ vector_b64: 'not base64' }, ['vector_b64']],
  [{ vector_b64: 'AACA' }, ['vector_b64']],
];

for (const [body, fields] of wrongSearches) {
  test(`search: ${JSON.stringify(body).slice(0, 60)} is refused`, () => {
    assert.deepEqual(
      refusal(() => parseSearchBody(body)),
      [422, fields],
    );
  });
}

test('search: a filter in the query string must be JSON and fit its limit', () => {
  const search = (filter: string) =>
    refusal(() => parseSearchQuery(new Map([['filter', filter]]), JSON.parse));

  for (const filter of ['', '{', 'a', '1', '[]', `{"a":"${'x'.repeat(limits.filterBytesMax)}"}`]) {
    assert.deepEqual(search(filter), [422, ['filter']], filter.slice(0, 20));
  }
});

test('search: a rank needs a vector, or a text that becomes one', () => {
  assert.deepEqual(
    refusal(() => parseSearchBody({ q: 'x', rank: 'rrf' })),
    [422, ['rank']],
  );
  assert.deepEqual(
    refusal(() => parseSearchBody({ vector: [1], semantic: 'x' })),
    [422, ['semantic']],
  );
  assert.equal(parseSearchBody({ semantic: 'x', rank: 'rrf' }).semantic, 'x');
});

test('search: a vector in base64 is its numbers', () => {
  const numbers = Float32Array.of(1, -0.5, 3e-8);
  const base64 = Buffer.from(numbers.buffer).toString('base64');

  assert.deepEqual(parseSearchBody({ vector_b64: base64 }), { ...searchDefaults, vector: [...numbers] });
  assert.deepEqual(parseSearchBody({ vector_b64: base64.replace(/=+$/, '') }).vector, [...numbers]);
});

test('count: is exact unless told otherwise, and an estimate takes no filter', () => {
  const defaults = { q: '', regex: false, filter: null, exact: true, scan: false };

  assert.deepEqual(parseCountBody({}), defaults);
  assert.deepEqual(parseCountQuery(new Map([['exact', '0']]), JSON.parse), { ...defaults, exact: false });
  assert.deepEqual(
    refusal(() => parseCountBody({ exact: false, filter: {} })),
    [422, ['exact']],
  );
  assert.deepEqual(
    refusal(() => parseCountBody({ limit: 11, cursor: 'c' })),
    [422, ['limit', 'cursor']],
  );
});

test('warm: takes up to twenty queries, or no body', () => {
  assert.deepEqual(parseWarmBody(undefined), { queries: [], regex: false });
  assert.equal(parseWarmBody({ queries: Array(20).fill('x') }).queries.length, 20);
  assert.deepEqual(
    refusal(() => parseWarmBody({ queries: Array(21).fill('x') })),
    [422, ['queries']],
  );
  assert.deepEqual(
    refusal(() => parseWarmBody({ queries: ['a', 'x'.repeat(1_001)], regex: true })),
    [422, ['queries[1]']],
  );
});
