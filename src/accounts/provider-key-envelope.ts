import { createCipheriv, createDecipheriv } from 'node:crypto';
import { assert } from '../base/assert.ts';
import type { Random } from '../base/random.ts';

/**
 * A tenant's key of an embedding provider, as it is stored: an envelope.
 *
 * 1. A fresh data key encrypts the provider's key.
 * 2. The server's key-encryption key encrypts (wraps) the data key. It is used on 32 random bytes only, so it may be
 *    replaced by wrapping the data keys anew, without reading what they protect.
 *
 * Both with AES-256-GCM. Tenant, provider and step are authenticated with them: an envelope that was moved to another
 * tenant or provider does not open.
 */
export interface ProviderKeyEnvelope {
  readonly version: 1;
  /** The data key: nonce, ciphertext, tag. */
  readonly wrappedKey: Uint8Array;
  /** The provider's key under the data key: nonce, ciphertext, tag. */
  readonly sealed: Uint8Array;
}

/** Whose key it is. */
export interface ProviderKeyOwner {
  readonly tenantId: number;
  readonly provider: string;
}

/** The envelope is damaged or another's, or was sealed under another key-encryption key: which one, can't be told. */
export class ProviderKeyEnvelopeError extends Error {
  override name = 'ProviderKeyEnvelopeError';
}

const cipher = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const envelopeVersion = 1;

export function sealProviderKey(
  keyEncryptionKey: Uint8Array,
  owner: ProviderKeyOwner,
  key: string,
  random: Random,
): ProviderKeyEnvelope {
  const dataKey = random.bytes(keyBytes);
  return {
    version: envelopeVersion,
    wrappedKey: encrypt(keyEncryptionKey, dataKey, context(owner, 'data key'), random),
    sealed: encrypt(dataKey, Buffer.from(key), context(owner, 'provider key'), random),
  };
}

/** @throws ProviderKeyEnvelopeError */
export function openProviderKey(
  keyEncryptionKey: Uint8Array,
  owner: ProviderKeyOwner,
  envelope: ProviderKeyEnvelope,
): string {
  if (envelope.version !== envelopeVersion) {
    throw new ProviderKeyEnvelopeError(`the stored key of ${owner.provider} has version ${envelope.version}`);
  }
  const dataKey = decrypt(keyEncryptionKey, envelope.wrappedKey, context(owner, 'data key'));
  const key = dataKey === null ? null : decrypt(dataKey, envelope.sealed, context(owner, 'provider key'));
  if (key === null) {
    throw new ProviderKeyEnvelopeError(
      `the stored key of ${owner.provider} does not open: it is damaged, or TIDEBASE_KEY_ENCRYPTION_KEY is another`,
    );
  }
  return key.toString();
}

/** What a person recognises a key by: its ends, together never more than a third of it. */
export function keyHint(key: string): string {
  const shown = Math.floor(key.length / 3);
  const [first, last] = [Math.min(3, shown >> 1), Math.min(4, shown - (shown >> 1))];
  // Fewer than two at each end tell nobody anything, and are much of a short key.
  if (first < 2) return '…';
  return `${key.slice(0, first)}…${key.slice(-last)}`;
}

/** Unambiguous: neither a number nor a step has a line break. */
function context({ tenantId, provider }: ProviderKeyOwner, step: 'data key' | 'provider key'): Buffer {
  return Buffer.from(`tidebase provider key v${envelopeVersion}\n${step}\n${tenantId}\n${provider}`);
}

function encrypt(key: Uint8Array, plain: Uint8Array, authenticated: Buffer, random: Random): Uint8Array {
  assert(key.length === keyBytes, () => `a key of ${key.length} bytes`);
  const nonce = random.bytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(authenticated);
  return Buffer.concat([nonce, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
}

/** Null where anything is not as it was. */
function decrypt(key: Uint8Array, bytes: Uint8Array, authenticated: Buffer): Buffer | null {
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
