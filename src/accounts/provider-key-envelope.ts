import type { Envelope } from '../../protocol/stored-tenant.ts';
import type { Random } from '../base/random.ts';
import { type ContextOf, isOfAnotherKey, openEnvelope, resealEnvelope, sealEnvelope } from './envelope.ts';
import type { KeyRing } from './key-ring.ts';

/** Whose key of an embedding provider it is: its envelope opens for this tenant and provider only. */
export interface ProviderKeyOwner {
  readonly tenantId: number;
  readonly provider: string;
}

/** The envelope is damaged or another's, or was sealed under another key-encryption key; the message says which where it can. */
export class ProviderKeyEnvelopeError extends Error {
  override name = 'ProviderKeyEnvelopeError';
}

export function sealProviderKey(
  keys: KeyRing,
  owner: ProviderKeyOwner,
  key: string,
  random: Random,
): Envelope {
  return sealEnvelope(keys, contextOf(owner), Buffer.from(key), random);
}

/** @throws ProviderKeyEnvelopeError */
export function openProviderKey(keys: KeyRing, owner: ProviderKeyOwner, envelope: Envelope): string {
  const key = openEnvelope(keys, contextOf(owner), envelope);
  if (key !== null) return key.toString();
  const { version } = envelope;
  const why =
    version !== 1 && version !== 2
      ? `it has version ${version}`
      : isOfAnotherKey(keys, envelope)
        ? 'it was sealed with a key that is neither TIDEBASE_KEY_ENCRYPTION_KEY nor TIDEBASE_KEY_ENCRYPTION_KEY_PREVIOUS'
        : 'it is damaged, or TIDEBASE_KEY_ENCRYPTION_KEY is another';
  throw new ProviderKeyEnvelopeError(`the stored key of ${owner.provider} does not open: ${why}`);
}

/** Under the present key: see `resealEnvelope`. */
export function resealProviderKey(
  keys: KeyRing,
  owner: ProviderKeyOwner,
  envelope: Envelope,
  random: Random,
): Envelope {
  return resealEnvelope(keys, contextOf(owner), envelope, random);
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
function contextOf({ tenantId, provider }: ProviderKeyOwner): ContextOf {
  return (version) => {
    const of = (step: 'data key' | 'provider key') =>
      Buffer.from(`tidebase provider key v${version}\n${step}\n${tenantId}\n${provider}`);
    return { dataKey: of('data key'), secret: of('provider key') };
  };
}
