/**
 * An answer that is kept for the repetition of its request: it may show an API key, of which the object store holds nothing but
 * the digest. So it is stored as an envelope that opens for this tenant and this request only.
 */
import type { Envelope } from '../../protocol/stored-tenant.ts';
import { sha256Hex } from '../base/hash.ts';
import type { Random } from '../base/random.ts';
import { type ContextOf, openEnvelope, resealEnvelope, sealEnvelope } from './envelope.ts';
import type { KeyRing } from './key-ring.ts';

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

export function sealAnswer(keys: KeyRing, owner: AnswerOwner, answer: string, random: Random): Envelope {
  return sealEnvelope(keys, contextOf(owner), Buffer.from(answer), random);
}

/** Null where it does not open: it is damaged, or the key-encryption key is another one by now. */
export function openAnswer(keys: KeyRing, owner: AnswerOwner, envelope: Envelope): string | null {
  return openEnvelope(keys, contextOf(owner), envelope)?.toString() ?? null;
}

/** Under the present key: see `resealEnvelope`. */
export function resealAnswer(
  keys: KeyRing,
  owner: AnswerOwner,
  envelope: Envelope,
  random: Random,
): Envelope {
  return resealEnvelope(keys, contextOf(owner), envelope, random);
}

/** Unambiguous: neither numbers nor digests have a line break. */
function contextOf({ tenantId, keyDigest, requestDigest }: AnswerOwner): ContextOf {
  return (version) => {
    const of = (step: 'data key' | 'answer') =>
      Buffer.from(`tidebase answer v${version}\n${step}\n${tenantId}\n${keyDigest}\n${requestDigest}`);
    return { dataKey: of('data key'), secret: of('answer') };
  };
}
