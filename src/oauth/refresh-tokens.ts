/**
 * Refresh tokens and what presenting one means. Pure.
 *
 * Several processes of one client share a refresh token, and each may present it when it has been replaced already. So a token is
 * made of the connection's seed, its number and a key of the server: whoever presents the one before gets the same successor
 * again, and all of them agree without being told. What the store holds are digests; with its bytes alone nobody can make a token.
 *
 * 1. The present token is replaced by the next one.
 * 2. An earlier one gives its successor again, while that was not presented itself, or for ten minutes after it was given.
 * 3. A still earlier one was stolen, or its successor was: the connection ends.
 *
 * The number is part of the token, so that an old one is recognised as ours although nothing of it is stored any more.
 */
import { createHmac } from 'node:crypto';
import { type KeyRing, keysOf } from '../accounts/key-ring.ts';
import type { Connection } from './connection-record.ts';
import { type TokenPlace, tokenDigest, tokenOf } from './tokens.ts';

const numberCharacters = 8;
const proofCharacters = 40;

/** Token `number` of a connection. */
export function refreshToken(
  key: Uint8Array,
  place: TokenPlace,
  { seed, number }: { readonly seed: string; readonly number: number },
): string {
  const text = `${seed} ${place.tenantId} ${place.connectionId} ${number}`;
  const proof = createHmac('sha256', key).update(text).digest('hex').slice(0, proofCharacters);
  return tokenOf('refresh', place, number.toString(16).padStart(numberCharacters, '0') + proof);
}

/** The number of a token of this connection; null where nobody has made it. */
export function numberOfRefreshToken(
  keys: KeyRing,
  place: TokenPlace,
  {
    connection,
    token,
  }: { readonly connection: Pick<Connection, 'seed' | 'refresh'>; readonly token: string },
): number | null {
  const { refresh, seed } = connection;
  if (refresh === null) return null;
  const digest = tokenDigest(token);
  // These two are told by what is stored, so that they outlive the server's key.
  if (digest === refresh.digest) return refresh.number;
  if (digest === refresh.previousDigest) return refresh.number - 1;
  const at = 'tbr_'.length + 24;
  const number = Number.parseInt(token.slice(at, at + numberCharacters), 16);
  const isOurs = keysOf(keys).some(
    (key) => tokenDigest(refreshToken(key, place, { seed, number })) === digest,
  );
  return isOurs && number < refresh.number - 1 ? number : null;
}

export type RefreshPlan =
  | { readonly kind: 'rotate' }
  /** Answer token `number` again. */
  | { readonly kind: 'repeat'; readonly number: number }
  | { readonly kind: 'revoke' };

/** What presenting token `number` brings about. `graceMs`: how long one that was replaced gives its successor in any case. */
export function planRefresh(
  refresh: NonNullable<Connection['refresh']>,
  { number, nowMs, graceMs }: { readonly number: number; readonly nowMs: number; readonly graceMs: number },
): RefreshPlan {
  if (number === refresh.number) return { kind: 'rotate' };
  // Its successor is the present token, which nobody has presented.
  if (number === refresh.number - 1) return { kind: 'repeat', number: refresh.number };
  const replacedAt = refresh.replaced.find((each) => each.number === number)?.at;
  const isInTime = replacedAt !== undefined && nowMs < replacedAt + graceMs;
  return isInTime ? { kind: 'repeat', number: number + 1 } : { kind: 'revoke' };
}

/** Token `number` as it was given before; null where the key that it was made with is gone. */
export function repeatedToken(
  keys: KeyRing,
  place: TokenPlace,
  {
    connection,
    number,
  }: { readonly connection: Pick<Connection, 'seed' | 'refresh'>; readonly number: number },
): string | null {
  const { refresh, seed } = connection;
  const made = keysOf(keys).map((key) => refreshToken(key, place, { seed, number }));
  const isGiven = (token: string) =>
    numberOfRefreshToken(keys, place, { connection, token }) === number &&
    (number !== refresh?.number || tokenDigest(token) === refresh.digest);
  return made.find(isGiven) ?? null;
}
