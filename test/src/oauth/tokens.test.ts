import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantId } from '../../../protocol/ids.ts';
import { withoutSecrets } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { isAccessTokenKind, makeToken, placeOfToken, type TokenKind } from '../../../src/oauth/tokens.ts';

const place = { tenantId: (2 ** 48 - 1) as TenantId, connectionId: 7 };
const kinds: readonly TokenKind[] = ['code', 'access', 'refresh'];

test('a token leads to its place, as what it is and as nothing else', () => {
  for (const kind of kinds) {
    const token = makeToken(systemRandom, kind, place);
    for (const asked of kinds)
      assert.deepEqual(placeOfToken(asked, token), asked === kind ? place : null, `${kind} as ${asked}`);
    assert.equal(isAccessTokenKind(token), kind === 'access');
  }
});

test('a token with any character changed leads nowhere', () => {
  const token = makeToken(systemRandom, 'access', place);
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === 'a' ? 'b' : 'a';
    assert.equal(placeOfToken('access', token.slice(0, at) + other + token.slice(at + 1)), null, `at ${at}`);
  }
  for (const wrong of ['', 'tbo_', `${token}0`, token.slice(0, -1), token.toUpperCase(), ` ${token}`])
    assert.equal(placeOfToken('access', wrong), null);
});

test('a log line keeps no character of a token', () => {
  for (const kind of kinds) {
    const token = makeToken(systemRandom, kind, place);
    assert.equal(withoutSecrets(`{"message":"got ${token}"}`), '{"message":"got [redacted]"}');
  }
});
