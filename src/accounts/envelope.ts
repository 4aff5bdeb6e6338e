/**
 * Secrets as they are stored.
 *
 * 1. A fresh data key encrypts the secret.
 * 2. The server's key-encryption key encrypts (wraps) the data key. It is used on 32 random bytes only, so it may be
 *    replaced by wrapping the data keys anew, without reading what they protect.
 *
 * Both with AES-256-GCM. What the secret is and whose, and which step this is, are authenticated with them: an envelope that was
 * moved to another place does not open.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Envelope } from '../../protocol/stored-tenant.ts';
import { formats } from '../../protocol/version.ts';
import { assert } from '../base/assert.ts';
import type { Random } from '../base/random.ts';
import { type KeyRing, keyName, keysOf } from './key-ring.ts';

/** What is authenticated with each of the two, different for every kind of secret, every place and every version. */
export interface EnvelopeContext {
  readonly dataKey: Uint8Array;
  readonly secret: Uint8Array;
}

/** The context of a secret in an envelope of a version. */
export type ContextOf = (version: Envelope['version']) => EnvelopeContext;

const cipher = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
export const envelopeVersion = formats.envelope.version;

export function sealEnvelope(
  { present }: KeyRing,
  contextOf: ContextOf,
  secret: Uint8Array,
  random: Random,
): Envelope {
  const dataKey = random.bytes(keyBytes);
  const context = contextOf(envelopeVersion);
  return {
    version: envelopeVersion,
    keyName: keyName(present),
    wrappedKey: encryptBytes(present, dataKey, context.dataKey, random),
    sealed: encryptBytes(dataKey, secret, context.secret, random),
  };
}

/** Null where the envelope is damaged or another's, or was sealed under a key-encryption key that is none of these. */
export function openEnvelope(keys: KeyRing, contextOf: ContextOf, envelope: Envelope): Buffer | null {
  const { version, wrappedKey, sealed } = envelope;
  if (version !== 1 && version !== 2) return null;
  const context = contextOf(version);
  for (const key of keysThatMayOpen(keys, envelope)) {
    const dataKey = decryptBytes(key, wrappedKey, context.dataKey);
    if (dataKey !== null) return decryptBytes(dataKey, sealed, context.secret);
  }
  return null;
}

/** Whether none of these keys can have sealed it. An envelope without a name may be anybody's. */
export function isOfAnotherKey(keys: KeyRing, envelope: Envelope): boolean {
  return keysThatMayOpen(keys, envelope).length === 0;
}

function keysThatMayOpen(keys: KeyRing, envelope: Envelope): readonly Uint8Array[] {
  if (envelope.version === 1) return keysOf(keys);
  return keysOf(keys).filter((key) => keyName(key) === envelope.keyName);
}

/**
 * The same secret under the present key, in the newest version; the envelope itself where it is that already, or does not
 * open: then it stays what it is.
 */
export function resealEnvelope(
  keys: KeyRing,
  contextOf: ContextOf,
  envelope: Envelope,
  random: Random,
): Envelope {
  const isNew = envelope.version === envelopeVersion && envelope.keyName === keyName(keys.present);
  const secret = isNew ? null : openEnvelope(keys, contextOf, envelope);
  return secret === null ? envelope : sealEnvelope(keys, contextOf, secret, random);
}

/** AES-256-GCM with a fresh nonce of 96 bits: nonce, ciphertext, tag of 128 bits. The key has 32 bytes. */
export function encryptBytes(
  key: Uint8Array,
  plain: Uint8Array,
  authenticated: Uint8Array,
  random: Random,
): Uint8Array {
  assert(key.length === keyBytes, () => `a key of ${key.length} bytes`);
  const nonce = random.bytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(authenticated);
  return Buffer.concat([nonce, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
}

/** The plain bytes of what `encryptBytes` made; null where anything is not as it was. */
export function decryptBytes(key: Uint8Array, bytes: Uint8Array, authenticated: Uint8Array): Buffer | null {
  if (key.length !== keyBytes || bytes.length < nonceBytes + tagBytes) return null;
  const nonce = bytes.subarray(0, nonceBytes);
  const tag = bytes.subarray(bytes.length - tagBytes);
  const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
    .setAAD(authenticated)
    .setAuthTag(tag);
  const plain = opening.update(bytes.subarray(nonceBytes, bytes.length - tagBytes));
  try {
    return Buffer.concat([plain, opening.final()]);
  } catch {
    // The only thing that `final` finds wrong is the tag.
    return null;
  }
}
