/**
 * The door to jose, of which only JWTs are loaded: login tokens, and others of one use each. Algorithm, type, issuer and audience are fixed here and
 * never taken from the token, and what the token says about keys (`jku`, `x5u`, `jwk`) is ignored.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { JOSEError, JWSSignatureVerificationFailed } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { type PersonId, parseId48, type TenantId } from '../../protocol/ids.ts';
import type { KeyRing } from '../accounts/key-ring.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';

const algorithm = 'HS256';
const issuer = 'tidebase';
export const loginTokenSeconds = 24 * 60 * 60;
/** Longer than any that we make; spares the work for what cannot be ours. */
export const loginTokenCharactersMax = 1_000;

export interface LoginTokens {
  /** The present key, which signs, and the previous one while keys are rotated. */
  readonly keys: readonly [present: KeyObject, ...previous: KeyObject[]];
  readonly clock: Clock;
  readonly random: Random;
}

export interface LoginClaims {
  readonly personId: PersonId;
  /** The person's generation when the token was made; another one now means that it was revoked. */
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  readonly tokenId: string;
  /** The tenant that the login was for; null: the person's default tenant, whichever that is. */
  readonly tenantId: number | null;
}

/** What signs and verifies login tokens, from keys of 32 bytes. */
export function loginTokens({ present, previous }: KeyRing, clock: Clock, random: Random): LoginTokens {
  const others = previous === null ? [] : [createSecretKey(previous)];
  return { keys: [createSecretKey(present), ...others], clock, random };
}

/** What a signed token is for: one kind is never taken for another. */
export interface TokenUse {
  readonly type: string;
  readonly audience: string;
}

const login: TokenUse = { type: 'login+jwt', audience: 'tidebase-api' };

/** Signs what a token says, with an end and an id of its own. */
export function signToken(
  { keys: [key], clock, random }: LoginTokens,
  { type, audience }: TokenUse,
  token: { readonly subject: string; readonly seconds: number; readonly claims: Record<string, unknown> },
): Promise<string> {
  const nowSeconds = Math.floor(clock.now() / 1000);
  return new SignJWT(token.claims)
    .setProtectedHeader({ alg: algorithm, typ: type })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(token.subject)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + token.seconds)
    .setJti(randomHex(random, 16))
    .sign(key);
}

/** What a token says; null for every one that is not ours and for this use, was changed or has expired. */
export async function verifyToken(
  { keys, clock }: LoginTokens,
  use: TokenUse,
  token: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  if (token.length > loginTokenCharactersMax) return null;
  for (const key of keys) {
    const payload = await verifyWith(key, { use, token, clock });
    if (payload !== 'signed-otherwise') return payload;
  }
  return null;
}

/** `tenantId`: the tenant that the token acts for where a request names none; null for the person's default. */
export function signLoginToken(
  tokens: LoginTokens,
  person: { readonly id: PersonId; readonly generation: number },
  tenantId: TenantId | null = null,
): Promise<string> {
  const claims = { gen: person.generation, ...(tenantId === null ? {} : { tenant: tenantId }) };
  return signToken(tokens, login, { subject: String(person.id), seconds: loginTokenSeconds, claims });
}

/** Reads a login token; null for every one that is not ours, was changed or has expired. The generation is for the caller to compare. */
export async function verifyLoginToken(tokens: LoginTokens, token: string): Promise<LoginClaims | null> {
  const payload = await verifyToken(tokens, login, token);
  return payload && claimsOf(payload);
}

async function verifyWith(
  key: KeyObject,
  { use, token, clock }: { readonly use: TokenUse; readonly token: string; readonly clock: Clock },
): Promise<Readonly<Record<string, unknown>> | null | 'signed-otherwise'> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [algorithm],
      typ: use.type,
      issuer,
      audience: use.audience,
      requiredClaims: ['sub', 'exp', 'jti', 'gen'],
      currentDate: new Date(clock.now()),
    });
    return payload;
  } catch (error) {
    if (error instanceof JWSSignatureVerificationFailed) return 'signed-otherwise';
    if (error instanceof JOSEError || error instanceof TypeError) return null;
    throw error;
  }
}

function claimsOf({ sub, exp, jti, gen, tenant }: Readonly<Record<string, unknown>>): LoginClaims | null {
  if (typeof sub !== 'string' || typeof exp !== 'number' || typeof jti !== 'string') return null;
  const personId = parseId48(sub);
  if (personId === null || typeof gen !== 'number') return null;
  const isTenant = typeof tenant === 'number' && Number.isSafeInteger(tenant) && tenant > 0;
  if (tenant !== undefined && !isTenant) return null;
  const tenantId = isTenant ? tenant : null;
  return { personId: personId as PersonId, generation: gen, expiresAt: exp * 1000, tokenId: jti, tenantId };
}
