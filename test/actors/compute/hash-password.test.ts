import assert from 'node:assert/strict';
import { test } from 'node:test';
import argon2 from 'argon2';
import { hashPassword, verifyPassword } from '../../../actors/compute/hash-password.ts';

test('a password matches its hash and no other, and the hash names its parameters', async () => {
  const hash = await hashPassword('correct horse');

  assert.match(hash, /^\$argon2id\$v=19\$m=19456,(t=2,p=1|p=1,t=2)\$/);
  assert.deepEqual(await verifyPassword(hash, 'correct horse'), { matches: true, needsRehash: false });
  assert.deepEqual(await verifyPassword(hash, 'correct horsf'), { matches: false, needsRehash: false });
});

test('a hash of weaker parameters or another kind still matches and asks to be made anew', async () => {
  const weak = await argon2.hash('correct horse', { memoryCost: 8192, timeCost: 1, parallelism: 1 });
  const otherKind = await argon2.hash('correct horse', {
    type: argon2.argon2i,
    memoryCost: 19_456,
    timeCost: 2,
    parallelism: 1,
  });

  assert.deepEqual(await verifyPassword(weak, 'correct horse'), { matches: true, needsRehash: true });
  assert.deepEqual(await verifyPassword(otherKind, 'correct horse'), { matches: true, needsRehash: true });
  assert.deepEqual(await verifyPassword(weak, 'other'), { matches: false, needsRehash: false });
});
