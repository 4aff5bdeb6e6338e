import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../../../protocol/errors.ts';
import { namespaceAllowed } from '../../../../src/accounts/scopes.ts';
import type { Principal } from '../../../../src/auth/principal.ts';
import { narrowed, narrowingOf } from '../../../../src/front/mcp/connection.ts';

const principal = (scope: Principal['scope'], namespaces: readonly string[] = []): Principal =>
  ({ scope, namespaces }) as unknown as Principal;

test('an address narrows nothing, to reading, to namespaces, or to both', () => {
  assert.deepEqual(narrowingOf(''), { readOnly: false, namespaces: null });
  assert.deepEqual(narrowingOf('read_only=1'), { readOnly: true, namespaces: null });
  assert.deepEqual(narrowingOf('read_only=false'), { readOnly: false, namespaces: null });
  assert.deepEqual(narrowingOf('namespaces=notes, log-*&read_only=true'), {
    readOnly: true,
    namespaces: ['notes', 'log-*'],
  });
});

test('what is no such parameter is refused with its name', () => {
  for (const [query, field] of [
    ['readonly=1', 'readonly'],
    ['read_only=1&read_only=0', 'read_only'],
    ['read_only=', 'read_only'],
    ['read_only=yes', 'read_only'],
    ['namespaces=', 'namespaces'],
    ['namespaces=a,,b', 'namespaces'],
    ['namespaces=A', 'namespaces'],
    ['namespaces=a*b', 'namespaces'],
    [`namespaces=${'x'.repeat(65)}`, 'namespaces'],
    [`namespaces=${Array(101).fill('a').join(',')}`, 'namespaces'],
  ] as const) {
    const fieldsOf = (error: unknown) => Object.keys((error as ApiError).fields ?? {});
    assert.throws(
      () => narrowingOf(query),
      (error) => error instanceof ApiError && error.status === 400 && fieldsOf(error)[0] === field,
      query,
    );
  }
});

test('reading is taken from who may do more, and given to nobody', () => {
  const readOnly = { readOnly: true, namespaces: null };
  assert.equal(narrowed(principal('admin'), readOnly).scope, 'read');
  assert.equal(narrowed(principal('read'), readOnly).scope, 'read');
  assert.equal(narrowed(principal('read'), { readOnly: false, namespaces: null }).scope, 'read');
});

test('a name is allowed where the principal and the address both allow it, and nowhere else', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 4 });
  const pattern = fc.oneof(
    letters,
    letters.map((text) => `${text}*`),
    fc.constant('*'),
  );
  const patterns = fc.array(pattern, { minLength: 1, maxLength: 4 });
  const held = fc.oneof(fc.constant([]), patterns);
  fc.assert(
    fc.property(held, patterns, letters, (own, asked, name) => {
      const both = narrowed(principal('write', own), { readOnly: false, namespaces: asked }).namespaces;

      assert.equal(
        namespaceAllowed(both, name),
        namespaceAllowed(own, name) && namespaceAllowed(asked, name),
      );
    }),
    { numRuns: 2_000 },
  );
});
