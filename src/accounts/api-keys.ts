/**
 * An API key: `tb_`, 30 random base62 characters (178 bits), 6 base62 characters of the CRC-32 of all before them.
 * The checksum lets typing errors and garbage be refused without a look-up; it is no secret and proves nothing.
 */
import { crc32 } from 'node:zlib';
import { sha256Hex } from '../base/hash.ts';
import type { Random } from '../base/random.ts';

const keyPrefix = 'tb_';
const randomCharacters = 30;
const checksumCharacters = 6;
const keyCharacters = keyPrefix.length + randomCharacters + checksumCharacters;
const shownCharacters = 11;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const keyShape = /^tb_[0-9A-Za-z]{36}$/;

export interface NewApiKey {
  /** The whole secret: shown once, never stored. */
  readonly key: string;
  /** The first 11 characters, by which people recognise it. */
  readonly prefix: string;
  /** SHA-256 in hexadecimal: all that is stored of the secret. */
  readonly digest: string;
}

export function makeApiKey(random: Random): NewApiKey {
  const body = keyPrefix + randomBase62(random, randomCharacters);
  const key = body + checksumOf(body);
  return { key, prefix: key.slice(0, shownCharacters), digest: apiKeyDigest(key) };
}

export function apiKeyDigest(key: string): string {
  return sha256Hex(key);
}

/** Whether a credential claims to be an API key at all; everything else is a login token. */
export function isApiKeyKind(text: string): boolean {
  return text.startsWith(keyPrefix);
}

/** Shape and checksum, without a look-up. */
export function apiKeyLooksRight(text: string): boolean {
  if (text.length !== keyCharacters || !keyShape.test(text)) return false;
  const body = text.slice(0, -checksumCharacters);
  return text.endsWith(checksumOf(body));
}

function checksumOf(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < checksumCharacters; i++) {
    text = alphabet.charAt(rest % alphabet.length) + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}

/** Bytes from 248 up are thrown away: kept, they would make the first eight characters likelier than the others. */
function randomBase62(random: Random, length: number): string {
  const fair = alphabet.length * Math.floor(256 / alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length)) {
      if (byte < fair && text.length < length) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}
