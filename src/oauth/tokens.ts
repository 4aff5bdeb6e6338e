/**
 * The secrets of a connection, as text: an authorization code (`tbc_`), an access token (`tbo_`), a refresh token (`tbr_`).
 *
 * After the prefix come 12 hexadecimal digits of the tenant's id, 12 of the connection's, 48 of chance (192 bits) and 8 of the
 * CRC-32 of all before them. The ids lead to the record, and the checksum lets garbage be refused without a look-up. Digits
 * and lower-case letters only, so that what takes secrets out of log lines by their look (base/log.ts) takes out all of it.
 */
import { crc32 } from 'node:zlib';
import type { TenantId } from '../../protocol/ids.ts';
import { sha256Hex } from '../base/hash.ts';
import { type Random, randomHex } from '../base/random.ts';

export type TokenKind = 'code' | 'access' | 'refresh';

export interface TokenPlace {
  readonly tenantId: TenantId;
  readonly connectionId: number;
}

const prefixes: Readonly<Record<TokenKind, string>> = { code: 'tbc_', access: 'tbo_', refresh: 'tbr_' };
const idCharacters = 12;
const chanceBytes = 24;
const checksumCharacters = 8;
const form = /^tb[cor]_[0-9a-f]{80}$/;

/** Makes a token of 192 random bits. Whoever makes it keeps only `tokenDigest` of it. */
export function makeToken(random: Random, kind: TokenKind, place: TokenPlace): string {
  return tokenOf(kind, place, randomHex(random, chanceBytes));
}

/** Writes a token whose secret part is given: 48 hexadecimal digits that nobody can guess. */
export function tokenOf(kind: TokenKind, { tenantId, connectionId }: TokenPlace, secret: string): string {
  const body = `${prefixes[kind]}${idText(tenantId)}${idText(connectionId)}${secret}`;
  return body + checksumOf(body);
}

/** Tells where a token leads, or null where it has not the form and checksum of one of its kind. */
export function placeOfToken(kind: TokenKind, token: string): TokenPlace | null {
  if (!token.startsWith(prefixes[kind]) || !form.test(token)) return null;
  if (checksumOf(token.slice(0, -checksumCharacters)) !== token.slice(-checksumCharacters)) return null;
  const from = prefixes[kind].length;
  const idAt = (at: number) => Number.parseInt(token.slice(at, at + idCharacters), 16);
  return { tenantId: idAt(from) as TenantId, connectionId: idAt(from + idCharacters) };
}

/** Whether a credential claims to be an OAuth access token at all. */
export function isAccessTokenKind(text: string): boolean {
  return text.startsWith(prefixes.access);
}

/** SHA-256 in hexadecimal: all that is stored of a token. */
export function tokenDigest(token: string): string {
  return sha256Hex(token);
}

function idText(id: number): string {
  return id.toString(16).padStart(idCharacters, '0');
}

function checksumOf(body: string): string {
  return crc32(body).toString(16).padStart(checksumCharacters, '0');
}
