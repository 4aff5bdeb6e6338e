import { resealAnswer } from '../../src/accounts/answer-envelope.ts';
import type { KeyRing } from '../../src/accounts/key-ring.ts';
import { resealProviderKey } from '../../src/accounts/provider-key-envelope.ts';
import type { Random } from '../../src/base/random.ts';
import type { TenantState } from './tenant-state.ts';

/**
 * Puts every secret of a tenant under the present key-encryption key, before its manifest is written. What the log holds of
 * them stays as it was until it is collected; so does what does not open.
 */
export function resealSecrets(
  { providerKeys, answers }: Pick<TenantState, 'providerKeys' | 'answers'>,
  { tenantId, keys, random }: { readonly tenantId: number; readonly keys: KeyRing; readonly random: Random },
): void {
  for (const [provider, record] of providerKeys) {
    const envelope = resealProviderKey(keys, { tenantId, provider }, record.envelope, random);
    if (envelope !== record.envelope) providerKeys.set(provider, { ...record, envelope });
  }
  for (const [keyDigest, answer] of answers) {
    if (answer.envelope === null) continue;
    const owner = { tenantId, keyDigest, requestDigest: answer.requestDigest };
    const envelope = resealAnswer(keys, owner, answer.envelope, random);
    if (envelope !== answer.envelope) answers.set(keyDigest, { ...answer, envelope });
  }
}
