import type { Random } from '../base/random.ts';
import {
  type Envelope,
  type EnvelopeContext,
  envelopeVersion,
  openEnvelope,
  sealEnvelope,
} from './envelope.ts';

/** A tenant's key of an embedding provider, as it is stored: an envelope that opens for this tenant and provider only. */
export type ProviderKeyEnvelope = Envelope;

/** Whose key it is. */
export interface ProviderKeyOwner {
  readonly tenantId: number;
  readonly provider: string;
}

/** The envelope is damaged or another's, or was sealed under another key-encryption key: which one, can't be told. */
export class ProviderKeyEnvelopeError extends Error {
  override name = 'ProviderKeyEnvelopeError';
}

export function sealProviderKey(
  keyEncryptionKey: Uint8Array,
  owner: ProviderKeyOwner,
  key: string,
  random: Random,
): ProviderKeyEnvelope {
  return sealEnvelope(keyEncryptionKey, contextOf(owner), Buffer.from(key), random);
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
  const key = openEnvelope(keyEncryptionKey, contextOf(owner), envelope);
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
function contextOf({ tenantId, provider }: ProviderKeyOwner): EnvelopeContext {
  const of = (step: 'data key' | 'provider key') =>
    Buffer.from(`tidebase provider key v${envelopeVersion}\n${step}\n${tenantId}\n${provider}`);
  return { dataKey: of('data key'), secret: of('provider key') };
}
