import { createSecretKey, type KeyObject } from 'node:crypto';
import { JOSEError, JWSSignatureVerificationFailed } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { type PersonId, parseId48, type TenantId } from '../../protocol/ids.ts';
import type { KeyRing } from '../accounts/key-ring.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';

/**
 * The door to jose, of which only JWTs are loaded: login tokens. Algorithm, type, issuer and audience are fixed here and
 * never taken from the token, and what the token says about keys (`jku`, `x5u`, `jwk`) is ignored.
 */
const algorithm = 'HS256';
const tokenType = 'login+jwt';
const issuer = 'tidebase';
const audience = 'tidebase-api';
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

/** `tenantId`: the tenant that the token acts for where a request names none; null for the person's default. */
export function signLoginToken(
  { keys: [key], clock, random }: LoginTokens,
  person: { readonly id: PersonId; readonly generation: number },
  tenantId: TenantId | null = null,
): Promise<string> {
  const nowSeconds = Math.floor(clock.now() / 1000);
  return new SignJWT({ gen: person.generation, ...(tenantId === null ? {} : { tenant: tenantId }) })
    .setProtectedHeader({ alg: algorithm, typ: tokenType })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(String(person.id))
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + loginTokenSeconds)
    .setJti(randomHex(random, 16))
    .sign(key);
}

/** Null for every token that is not ours, was changed or has expired. The generation is for the caller to compare. */
export async function verifyLoginToken(
  { keys, clock }: LoginTokens,
  token: string,
): Promise<LoginClaims | null> {
  if (token.length > loginTokenCharactersMax) return null;
  for (const key of keys) {
    const claims = await verifyWith(key, token, clock);
    if (claims !== 'signed-otherwise') return claims;
  }
  return null;
}

async function verifyWith(
  key: KeyObject,
  token: string,
  clock: Clock,
): Promise<LoginClaims | null | 'signed-otherwise'> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [algorithm],
      typ: tokenType,
      issuer,
      audience,
      requiredClaims: ['sub', 'exp', 'jti', 'gen'],
      currentDate: new Date(clock.now()),
    });
    return claimsOf(payload);
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
