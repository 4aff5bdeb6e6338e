import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { apiKeyLooksRight, makeApiKey } from '../../../src/accounts/api-keys.ts';
import { systemRandom } from '../../../src/base/random.ts';

const repeatable = { bytes: (length: number) => Uint8Array.from({ length }, (_, i) => (i * 37 + 11) % 256) };

test('a new key has the documented shape, its prefix and its digest', () => {
  const { key, prefix, digest } = makeApiKey(systemRandom);

  assert.match(key, /^tb_[0-9A-Za-z]{36}$/);
  assert.equal(prefix, key.slice(0, 11));
  assert.equal(digest, createHash('sha256').update(key).digest('hex'));
  assert.equal(apiKeyLooksRight(key), true);
});

test('the same random bytes make the same key, for ever', () => {
  assert.equal(makeApiKey(repeatable).key, 'tb_BmNyZAlEpQ1cDoHsT4fGrKvW7iJuNy1NcepR');
});

test('a key with one character changed does not look right', () => {
  const { key } = makeApiKey(systemRandom);
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: key.length - 1 }),
      fc.constantFrom(...'0aZ9_- '),
      (at, character) => {
        const changed = key.slice(0, at) + character + key.slice(at + 1);
        assert.equal(apiKeyLooksRight(changed), changed === key);
      },
    ),
  );
});

test('texts that are no keys do not look right', () => {
  const { key } = makeApiKey(systemRandom);

  for (const text of [
    '',
    'tb_',
    key.slice(0, -1),
    `${key}0`,
    ` ${key}`,
    key.toUpperCase(),
    `xx_${key.slice(3)}`,
  ]) {
    assert.equal(apiKeyLooksRight(text), false, text);
  }
});
