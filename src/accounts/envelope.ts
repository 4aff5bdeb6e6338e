import { createCipheriv, createDecipheriv } from 'node:crypto';
import { assert } from '../base/assert.ts';
import type { Random } from '../base/random.ts';

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
export interface Envelope {
  readonly version: 1;
  /** The data key: nonce, ciphertext, tag. */
  readonly wrappedKey: Uint8Array;
  /** The secret under the data key: nonce, ciphertext, tag. */
  readonly sealed: Uint8Array;
}

/** What is authenticated with each of the two, different for every kind of secret and every place. */
export interface EnvelopeContext {
  readonly dataKey: Uint8Array;
  readonly secret: Uint8Array;
}

const cipher = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
export const envelopeVersion = 1;

export function sealEnvelope(
  keyEncryptionKey: Uint8Array,
  context: EnvelopeContext,
  secret: Uint8Array,
  random: Random,
): Envelope {
  const dataKey = random.bytes(keyBytes);
  return {
    version: envelopeVersion,
    wrappedKey: encrypt(keyEncryptionKey, dataKey, context.dataKey, random),
    sealed: encrypt(dataKey, secret, context.secret, random),
  };
}

/** Null where the envelope is damaged or another's, or was sealed under another key-encryption key: which one, can't be told. */
export function openEnvelope(
  keyEncryptionKey: Uint8Array,
  context: EnvelopeContext,
  { wrappedKey, sealed }: Envelope,
): Buffer | null {
  const dataKey = decrypt(keyEncryptionKey, wrappedKey, context.dataKey);
  return dataKey === null ? null : decrypt(dataKey, sealed, context.secret);
}

function encrypt(key: Uint8Array, plain: Uint8Array, authenticated: Uint8Array, random: Random): Uint8Array {
  assert(key.length === keyBytes, () => `a key of ${key.length} bytes`);
  const nonce = random.bytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(authenticated);
  return Buffer.concat([nonce, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
}

/** Null where anything is not as it was. */
function decrypt(key: Uint8Array, bytes: Uint8Array, authenticated: Uint8Array): Buffer | null {
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
