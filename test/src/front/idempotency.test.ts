import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { idempotencyKeyProblem, scopedKeyDigest } from '../../../src/front/idempotency.ts';

const keyOf = (keyId: number) => ({ auth: 'key', keyId, personId: 1 }) as Principal;
const loginOf = (personId: number) => ({ auth: 'login', personId }) as Principal;

test('an Idempotency-Key is printable ASCII of a bounded length', () => {
  const most = limits.idempotencyKeyCharactersMax;

  for (const key of [undefined, '', 'a', ' ', '~!"', 'a'.repeat(most)])
    assert.equal(idempotencyKeyProblem(key), null);
  assert.equal(idempotencyKeyProblem('a'.repeat(most + 1)), 'must have at most 255 characters');
  for (const key of ['é', 'a\tb', '\u0000', '\u007f', 'a\n'])
    assert.equal(idempotencyKeyProblem(key), 'must be printable ASCII');
});

test('API keys of a tenant share their Idempotency-Keys, a login has its own', () => {
  const digests = [keyOf(1), loginOf(1), loginOf(2)].map((principal) => scopedKeyDigest(principal, 'k'));

  assert.equal(new Set(digests).size, 3);
  assert.equal(scopedKeyDigest(keyOf(2), 'k'), digests[0]);
  assert.notEqual(scopedKeyDigest(keyOf(1), 'other'), digests[0]);
  for (const absent of [undefined, '']) assert.equal(scopedKeyDigest(keyOf(1), absent), null);
});
