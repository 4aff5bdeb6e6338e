import { sha256Hex } from '../base/hash.ts';
import type { Random } from '../base/random.ts';
import {
  type Envelope,
  type EnvelopeContext,
  envelopeVersion,
  openEnvelope,
  sealEnvelope,
} from './envelope.ts';

/**
 * An answer that is kept for the repetition of its request: it may show an API key, of which the object store holds nothing but
 * the digest. So it is stored as an envelope that opens for this tenant and this request only.
 */
export interface AnswerOwner {
  readonly tenantId: number;
  /** Digest of the `Idempotency-Key`. */
  readonly keyDigest: string;
  /** Digest of the operation and the body. */
  readonly requestDigest: string;
}

/** Tells requests apart that were sent with one `Idempotency-Key`: by what they ask for, byte for byte. */
export function requestDigestOf(operation: string, body: Uint8Array): string {
  return sha256Hex(Buffer.concat([Buffer.from(`${operation}\n`), body]));
}

export function sealAnswer(
  keyEncryptionKey: Uint8Array,
  owner: AnswerOwner,
  answer: string,
  random: Random,
): Envelope {
  return sealEnvelope(keyEncryptionKey, contextOf(owner), Buffer.from(answer), random);
}

/** Null where it does not open: it is damaged, or the key-encryption key is another one by now. */
export function openAnswer(
  keyEncryptionKey: Uint8Array,
  owner: AnswerOwner,
  envelope: Envelope,
): string | null {
  if (envelope.version !== envelopeVersion) return null;
  return openEnvelope(keyEncryptionKey, contextOf(owner), envelope)?.toString() ?? null;
}

/** Unambiguous: neither numbers nor digests have a line break. */
function contextOf({ tenantId, keyDigest, requestDigest }: AnswerOwner): EnvelopeContext {
  const of = (step: 'data key' | 'answer') =>
    Buffer.from(`tidebase answer v${envelopeVersion}\n${step}\n${tenantId}\n${keyDigest}\n${requestDigest}`);
  return { dataKey: of('data key'), secret: of('answer') };
}
