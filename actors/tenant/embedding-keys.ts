import { embeddingKeyRequestSchema } from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { keyedProviders } from '../../protocol/namespace.ts';
import type { ProviderKeyRecord } from '../../protocol/stored-tenant.ts';
import { parseWith } from '../../protocol/validate.ts';
import { keyHint, sealProviderKey } from '../../src/accounts/provider-key-envelope.ts';
import type { ActorComponents } from '../actor/components.ts';
import { type KeyedProvider, modelOf } from '../embedding/embedding-models.ts';
import { readBody } from '../thread/request-body.ts';
import type { TenantLog } from './tenant-log.ts';

type Components = Pick<ActorComponents, 'lanes' | 'keyEncryptionKeys' | 'random' | 'clock' | 'shares'>;

/** What shows that a key works. */
const probe = 'tide';
const callMsMax = 20_000;

/** The keys of embedding providers that a tenant has stored. */
export class EmbeddingKeys {
  readonly #components: Components;
  readonly #log: TenantLog;

  constructor(components: Components, log: TenantLog) {
    this.#components = components;
    this.#log = log;
  }

  /** By provider. */
  list(): ProviderKeyRecord[] {
    return [...this.#log.state.providerKeys.values()].sort((a, b) => (a.provider < b.provider ? -1 : 1));
  }

  find(provider: string): ProviderKeyRecord | null {
    return this.#log.state.providerKeys.get(provider) ?? null;
  }

  /** Tried and sealed, and stored in place of the one before. Answers it, and the tokens that trying it took. */
  async store(
    provider: KeyedProvider,
    body: Uint8Array,
  ): Promise<{ readonly record: ProviderKeyRecord; readonly tokens: number }> {
    const owner = { tenantId: this.#log.tenantId, provider };
    const sealed = await sealedAfterTrial(this.#components, owner, body, this.find(provider));
    await this.#log.confirmed(this.#log.append({ kind: 'provider-key-stored', record: sealed.record }));
    return sealed;
  }

  async forget(provider: KeyedProvider): Promise<void> {
    if (this.find(provider) === null)
      throw new ApiError('not_found', `there is no stored key of ${provider}`);
    await this.#log.confirmed(this.#log.append({ kind: 'provider-key-forgotten', provider }));
  }
}

/** Throws ApiError 404 for anything but a provider whose keys are stored. */
export function keyedProviderOf(name: string): KeyedProvider {
  const provider = keyedProviders.find((each) => each === name);
  if (provider !== undefined) return provider;
  throw new ApiError(
    'not_found',
    `there is no provider ${JSON.stringify(name.slice(0, 100))} whose keys are stored; there are ${keyedProviders.join(', ')}`,
  );
}

/**
 * A provider's key, tried and sealed: one tiny embedding with the provider's default model, which the provider bills. `before`:
 * the record that it takes the place of. Throws the provider's refusal.
 */
export async function sealedAfterTrial(
  { lanes, keyEncryptionKeys, random, clock, shares }: Components,
  owner: { readonly tenantId: number; readonly provider: KeyedProvider },
  body: Uint8Array,
  before: ProviderKeyRecord | null,
): Promise<{ readonly record: ProviderKeyRecord; readonly tokens: number }> {
  const { key } = parseWith(embeddingKeyRequestSchema, readBody(body));
  const { provider } = owner;
  const model = modelOf({ provider });
  const request = {
    provider,
    model,
    dims: null,
    key,
    texts: [probe],
    purpose: 'query' as const,
  };
  const deadlineAt = clock.now() + callMsMax;
  const { tokens } = await lanes.embed(
    { task: 'embed-by-provider', request, deadlineAt },
    shares.claim(owner.tenantId, callMsMax),
  );
  const now = new Date(clock.now()).toISOString();
  const record = {
    provider,
    hint: keyHint(key),
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    envelope: sealProviderKey(keyEncryptionKeys, owner, key, random),
  };
  return { record, tokens };
}

/** Writes a stored key as answers show it: never the key itself. */
export function embeddingKeyItem({ provider, hint, createdAt, updatedAt }: ProviderKeyRecord): unknown {
  return { provider, hint, created_at: createdAt, updated_at: updatedAt };
}
