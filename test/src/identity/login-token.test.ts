import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import type { PersonId, TenantId } from '../../../protocol/ids.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import {
  loginTokenCharactersMax,
  loginTokenSeconds,
  loginTokens,
  signLoginToken,
  verifyLoginToken,
} from '../../../src/identity/login-token.ts';
import { alone } from '../../support/key-rings.ts';

const secret = new Uint8Array(32).fill(7);
const person = { id: 281_474_976_710_655 as PersonId, generation: 3 };
const start = Date.UTC(2026, 0, 1);
const at = (now: number): Clock => ({ ...systemClock, now: () => now });
const tokensAt = (now: number, key = secret) => loginTokens(alone(key), at(now), systemRandom);

function forge(header: object, payload: object, key: Uint8Array = secret): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part(header)}.${part(payload)}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}
const goodHeader = { alg: 'HS256', typ: 'login+jwt' };
const goodPayload = {
  iss: 'tidebase',
  aud: 'tidebase-api',
  sub: '5',
  jti: 'x',
  gen: 1,
  exp: start / 1000 + 60,
};

test('a token says who logged in, with which generation and until when', async () => {
  const token = await signLoginToken(tokensAt(start), person);

  const claims = await verifyLoginToken(tokensAt(start + 1_000), token);

  assert.equal(claims?.personId, person.id);
  assert.equal(claims?.generation, 3);
  assert.equal(claims?.expiresAt, start + loginTokenSeconds * 1000);
  assert.ok(token.length < loginTokenCharactersMax);
});

test('a token is worth nothing after a day, with another key, or changed', async () => {
  const token = await signLoginToken(tokensAt(start), person);
  const [head, payload, signature] = token.split('.');

  assert.notEqual(await verifyLoginToken(tokensAt(start + loginTokenSeconds * 1000 - 1_000), token), null);
  assert.equal(await verifyLoginToken(tokensAt(start + loginTokenSeconds * 1000), token), null);
  assert.equal(await verifyLoginToken(tokensAt(start, new Uint8Array(32).fill(8)), token), null);
  assert.equal(await verifyLoginToken(tokensAt(start), `${head}.${payload}A.${signature}`), null);
  for (const garbage of ['', '.', '..', 'a.b.c', 'x'.repeat(5_000), token.slice(0, -2)]) {
    assert.equal(await verifyLoginToken(tokensAt(start), garbage), null);
  }
});

test('what the token says about algorithm, type, issuer, audience and subject is not believed', async () => {
  const tokens = tokensAt(start);
  assert.notEqual(await verifyLoginToken(tokens, forge(goodHeader, goodPayload)), null);

  const unsigned = forge({ alg: 'none', typ: 'login+jwt' }, goodPayload).replace(/[^.]*$/, '');
  assert.equal(await verifyLoginToken(tokens, unsigned), null);
  for (const header of [{ alg: 'HS512' }, { typ: 'JWT' }, { typ: undefined }, { crit: ['x'], x: 1 }]) {
    assert.equal(await verifyLoginToken(tokens, forge({ ...goodHeader, ...header }, goodPayload)), null);
  }
  for (const change of [
    { iss: 'other' },
    { aud: 'other' },
    { sub: '-1' },
    { sub: '1e3' },
    { sub: 5 },
    { gen: 'x' },
    { gen: undefined },
    { exp: undefined },
    { jti: undefined },
  ]) {
    const token = forge(goodHeader, { ...goodPayload, ...change });
    assert.equal(await verifyLoginToken(tokens, token), null, JSON.stringify(change));
  }
});

test('a token is for a tenant where the login named one, and for a number alone', async () => {
  const token = await signLoginToken(tokensAt(start), person, 77 as TenantId);

  assert.equal((await verifyLoginToken(tokensAt(start), token))?.tenantId, 77);
  const plain = await signLoginToken(tokensAt(start), person);
  assert.equal((await verifyLoginToken(tokensAt(start), plain))?.tenantId, null);
  for (const tenant of ['77', 0, -1, 1.5, null, {}]) {
    assert.equal(
      await verifyLoginToken(tokensAt(start), forge(goodHeader, { ...goodPayload, tenant })),
      null,
    );
  }
});

test('while keys are rotated a token of the previous key is accepted, and new ones are of the present', async () => {
  const [before, now, never] = [secret, new Uint8Array(32).fill(8), new Uint8Array(32).fill(9)];
  const rotated = loginTokens({ present: now, previous: before }, at(start), systemRandom);
  const old = await signLoginToken(tokensAt(start, before), person);

  assert.equal((await verifyLoginToken(rotated, old))?.personId, person.id);
  const made = await signLoginToken(rotated, person);
  assert.equal((await verifyLoginToken(tokensAt(start, now), made))?.personId, person.id);
  assert.equal(await verifyLoginToken(tokensAt(start, before), made), null);
  assert.equal(await verifyLoginToken(rotated, await signLoginToken(tokensAt(start, never), person)), null);
  // Expired and forged ones are no better for the second key.
  const expired = { ...goodPayload, exp: start / 1000 - 1 };
  assert.equal(await verifyLoginToken(rotated, forge(goodHeader, expired)), null);
  assert.equal(await verifyLoginToken(rotated, forge({ ...goodHeader, alg: 'none' }, goodPayload)), null);
});
