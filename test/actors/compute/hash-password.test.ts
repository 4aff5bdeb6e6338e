import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Algorithm, hashSync } from '@node-rs/argon2';
import { hashPassword, verifyPassword } from '../../../actors/compute/hash-password.ts';

test('a password matches its hash and no other, and the hash names its parameters', () => {
  const hash = hashPassword('correct horse');

  assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.deepEqual(verifyPassword(hash, 'correct horse'), { matches: true, needsRehash: false });
  assert.deepEqual(verifyPassword(hash, 'correct horsf'), { matches: false, needsRehash: false });
});

test('a hash whose parameters another library wrote in another order is one of today', () => {
  const hash =
    '$argon2id$v=19$m=19456,p=1,t=2$xVAQVYibPcFD4ZKKY7AYCg$5K13+VwtQETXIABMuE5uEt9fuVeqsqTCHhzzZPjXrmE';

  assert.deepEqual(verifyPassword(hash, 'correct horse'), { matches: true, needsRehash: false });
});

test('a hash of weaker parameters or another kind still matches and asks to be made anew', () => {
  const weak = hashSync('correct horse', { memoryCost: 8192, timeCost: 1, parallelism: 1 });
  const otherKind = hashSync('correct horse', {
    algorithm: 1 as Algorithm.Argon2i,
    memoryCost: 19_456,
    timeCost: 2,
    parallelism: 1,
  });

  assert.deepEqual(verifyPassword(weak, 'correct horse'), { matches: true, needsRehash: true });
  assert.deepEqual(verifyPassword(otherKind, 'correct horse'), { matches: true, needsRehash: true });
  assert.deepEqual(verifyPassword(weak, 'other'), { matches: false, needsRehash: false });
});
