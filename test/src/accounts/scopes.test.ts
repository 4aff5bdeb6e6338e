import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isUnlimitedAdmin,
  namespaceAllowed,
  namespacePatternProblem,
  scopeIncludes,
} from '../../../src/accounts/scopes.ts';

test('a scope includes itself and the lower ones', () => {
  assert.equal(scopeIncludes('admin', 'read'), true);
  assert.equal(scopeIncludes('write', 'write'), true);
  assert.equal(scopeIncludes('read', 'write'), false);
  assert.equal(scopeIncludes('write', 'admin'), false);
});

test('patterns are names or beginnings of names, and none means all', () => {
  const patterns = ['docs', 'user-*'];

  assert.equal(namespaceAllowed([], 'anything'), true);
  assert.equal(namespaceAllowed(patterns, 'docs'), true);
  assert.equal(namespaceAllowed(patterns, 'docs2'), false);
  assert.equal(namespaceAllowed(patterns, 'user-7'), true);
  assert.equal(namespaceAllowed(patterns, 'user-'), true);
  assert.equal(namespaceAllowed(patterns, 'user'), false);
  assert.equal(namespaceAllowed(['*'], 'anything'), true);
});

test('a pattern may use only the characters of names and one star at its end', () => {
  for (const pattern of ['a', 'a.b-c_9', 'a*', '*', 'a'.repeat(64), `${'a'.repeat(64)}*`]) {
    assert.equal(namespacePatternProblem(pattern), null, pattern);
  }
  for (const pattern of ['', 'A', 'a*b', '**', 'a b', 'ä', 'a\n', 'a'.repeat(65)]) {
    assert.notEqual(namespacePatternProblem(pattern), null, pattern);
  }
});

test('only an admin key without patterns and caps is unlimited', () => {
  const caps = { ratePerS: null, queries: null, writes: null };
  const free = { scope: 'admin', namespaces: [], caps } as const;

  assert.equal(isUnlimitedAdmin(free), true);
  assert.equal(isUnlimitedAdmin({ ...free, scope: 'write' }), false);
  assert.equal(isUnlimitedAdmin({ ...free, namespaces: ['*'] }), false);
  assert.equal(isUnlimitedAdmin({ ...free, caps: { ...caps, ratePerS: 5 } }), false);
  assert.equal(isUnlimitedAdmin({ ...free, caps: { ...caps, queries: 0 } }), false);
  assert.equal(isUnlimitedAdmin({ ...free, caps: { ...caps, writes: 1 } }), false);
});
