import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { isCommonPassword } from '../../../src/identity/common-passwords.ts';

test('the commonest passwords are known in any case, and others are not', async () => {
  for (const password of [
    '12345678',
    'password',
    'PaSsWoRd',
    'qwertyuiop',
    'iloveyou',
    'ILOVEYOU',
    'football',
  ])
    assert.equal(await isCommonPassword(password), true, password);

  for (const password of [
    'correct horse',
    'correcthorse',
    'engine number 1',
    'another horse',
    '',
    'ſuperman',
  ])
    assert.equal(await isCommonPassword(password), false, password);
  assert.ok(limits.commonPasswordsRefused >= 10_000);
});
