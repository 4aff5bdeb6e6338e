import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyRequestSchema, loginRequestSchema, signupRequestSchema } from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { namespaceListQuerySchema, namespaceRequestSchema } from '../../protocol/namespace.ts';
import { parseQueryWith, parseWith, type z } from '../../protocol/validate.ts';

function wrongFields(schema: z.ZodType, value: unknown): readonly string[] {
  try {
    parseWith(schema, value);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return Object.keys(error.fields ?? {});
  }
  return [];
}

const person = { email: 'ada@example.com', name: 'Ada', password: 'correct horse' };

test('signup: address and name are trimmed, the password is kept as it came', () => {
  const request = { email: ' Ada@example.com ', name: '  Ada L. ', password: '  spaces  ' };

  assert.deepEqual(parseWith(signupRequestSchema, request), {
    email: 'Ada@example.com',
    name: 'Ada L.',
    password: '  spaces  ',
  });
});

const wrongPeople: readonly (readonly [field: string, value: unknown])[] = [
  ...['', 'ada', '@', 'a@', '@b', 'a@b@c', 'a b@c', 'a@b\nc', `${'a'.repeat(250)}@b.cd`, 5, null].map(
    (email) => ['email', email] as const,
  ),
  ...['', '   ', 'a\u0000b', 'a\nb', 'x'.repeat(101), 5].map((name) => ['name', name] as const),
  ...['1234567', '😀😀😀😀', 'x'.repeat(201), '\ud800-------', 5].map(
    (password) => ['password', password] as const,
  ),
];

for (const [field, value] of wrongPeople) {
  test(`signup: ${field} ${JSON.stringify(value).slice(0, 30)} is refused`, () => {
    assert.deepEqual(wrongFields(signupRequestSchema, { ...person, [field]: value }), [field]);
  });
}

test('login: any text may be tried, other types may not', () => {
  assert.deepEqual(wrongFields(loginRequestSchema, { email: 'nobody', password: 'x' }), []);
  assert.deepEqual(wrongFields(loginRequestSchema, {}), ['email', 'password']);
  assert.deepEqual(wrongFields(loginRequestSchema, { email: 1, password: 'x', remember: true }), [
    'email',
    'remember',
  ]);
});

test('keys: a request with only a name is a write key without limits', () => {
  const defaults = { scope: 'write', namespaces: [], rate_per_s: null, cap_queries: null, cap_writes: null };

  assert.deepEqual(parseWith(keyRequestSchema, { name: 'ci' }), { name: 'ci', ...defaults });
  assert.deepEqual(
    parseWith(keyRequestSchema, { name: 'ci', namespaces: null, rate_per_s: null, scope: 'write' }),
    { name: 'ci', ...defaults },
  );
});

test('keys: patterns are names or a prefix with a star', () => {
  const wrong = (...namespaces: unknown[]) => wrongFields(keyRequestSchema, { name: 'k', namespaces });

  assert.deepEqual(wrong('notes', 'user-*', '*', 'x'.repeat(64), `${'x'.repeat(64)}*`), []);
  assert.deepEqual(wrong('', 'a*b', '**', 'A', 'a/b', 'x'.repeat(65), 7), [
    'namespaces[0]',
    'namespaces[1]',
    'namespaces[2]',
    'namespaces[3]',
    'namespaces[4]',
    'namespaces[5]',
    'namespaces[6]',
  ]);
  assert.deepEqual(wrong(...Array(100).fill('a')), []);
  assert.deepEqual(wrong(...Array(101).fill('a')), ['namespaces']);
});

test('keys: names and limits are checked', () => {
  assert.deepEqual(wrongFields(keyRequestSchema, {}), ['name']);
  assert.deepEqual(wrongFields(keyRequestSchema, { name: '' }), ['name']);
  assert.deepEqual(wrongFields(keyRequestSchema, { name: 'x'.repeat(101) }), ['name']);
  assert.deepEqual(wrongFields(keyRequestSchema, { name: 'k', scope: 'root' }), ['scope']);
  for (const field of ['rate_per_s', 'cap_queries', 'cap_writes']) {
    for (const value of [0, -1, 1.5, '5', 2 ** 60]) {
      assert.deepEqual(wrongFields(keyRequestSchema, { name: 'k', [field]: value }), [field]);
    }
    assert.deepEqual(wrongFields(keyRequestSchema, { name: 'k', [field]: 1 }), []);
  }
});

test('namespaces: a request is a name, with vectors or embedding', () => {
  assert.deepEqual(parseWith(namespaceRequestSchema, { name: 'a', vector: { dims: 3 } }), {
    name: 'a',
    vector: { dims: 3, metric: 'cosine' },
  });
  for (const name of ['', 'A', 'a/b', 'x'.repeat(65), 5]) {
    assert.deepEqual(wrongFields(namespaceRequestSchema, { name }), ['name']);
  }
  assert.deepEqual(wrongFields(namespaceRequestSchema, { name: 'a', vector: { dims: 0 } }), ['vector.dims']);
  assert.deepEqual(wrongFields(namespaceRequestSchema, { name: 'a', vector: { dims: 2_049, metric: 'x' } }), [
    'vector.dims',
    'vector.metric',
  ]);
  assert.deepEqual(wrongFields(namespaceRequestSchema, { name: 'a', embed: { provider: 'x' } }), [
    'embed.provider',
  ]);
});

test('namespaces: a list begins at the first and has a hundred', () => {
  assert.deepEqual(parseQueryWith(namespaceListQuerySchema, new Map()), { after: '', limit: 100 });
  assert.throws(() => parseQueryWith(namespaceListQuerySchema, new Map([['limit', '1001']])), {
    code: 'invalid',
  });
});
