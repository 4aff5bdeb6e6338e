import { ApiError } from '../../protocol/errors.ts';
import type { EmbedConfig } from '../../protocol/namespace.ts';
import { openProviderKey, ProviderKeyEnvelopeError } from '../../src/accounts/provider-key-envelope.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Embedded, Purpose } from '../embedding/embed-request.ts';
import { modelOf } from '../embedding/embedding-models.ts';
import { tokensAtLeast } from '../embedding/tokens-at-least.ts';

/** Texts that become vectors with a namespace's model and, where that is a provider's, its tenant's key. */
export interface TextsToEmbed {
  readonly tenantId: number;
  readonly embed: EmbedConfig;
  /** The vectors' length; null: whatever the model makes. */
  readonly dims: number | null;
  readonly texts: readonly string[];
  readonly purpose: Purpose;
  readonly deadlineMs: number;
}

/** An answer has to be written, and a write to be logged, before whoever waits gives up. */
const spareMs = 3_000;
const callMsMin = 1_000;

/** Throws an ApiError with one of the `embedding_…` codes, or 402 where the hosted model's allowance is used up, or would be by far. */
export async function embedTexts(components: ActorComponents, wanted: TextsToEmbed): Promise<Embedded> {
  const { tenantId, embed, dims, texts, purpose } = wanted;
  const { provider } = embed;
  const model = modelOf(embed);
  const deadlineMs = Math.max(callMsMin, wanted.deadlineMs - spareMs);
  if (provider === 'service') {
    await components.directory.admitHosted(tenantId, tokensAtLeast(texts));
    return embedHere(components, tenantId, texts, deadlineMs);
  }
  const key = await providerKey(components, tenantId, provider);
  const request = { provider, model, dims, key, texts: [...texts], purpose };
  const deadlineAt = components.clock.now() + deadlineMs;
  const claim = components.shares.claim(tenantId, deadlineMs);
  return components.lanes.embed({ task: 'embed-by-provider', request, deadlineAt }, claim);
}

/** Characters of one task of the built-in model, which takes a quarter of a second at most. A search waits for one task and not for all. */
const taskCharacters = 8_000;

/** How long the model is tried before it is said how long all of it will take. */
const trialMs = 3_000;

/** Throws ApiError 413 as soon as it shows that the time will be over before all are embedded: sending it again is no help. */
async function embedHere(
  { lanes, clock, shares }: ActorComponents,
  tenantId: number,
  texts: readonly string[],
  deadlineMs: number,
): Promise<Embedded> {
  const began = clock.monotonic();
  const parts: Embedded[] = [];
  const portions = portionsOf(texts);
  const claim = shares.claim(tenantId, deadlineMs);
  for (const portion of portions) {
    const tookMs = clock.monotonic() - began;
    const needsMs = (tookMs / Math.max(1, parts.length)) * portions.length;
    if (tookMs > trialMs && needsMs > deadlineMs) throw tooMuchText(needsMs, deadlineMs);
    parts.push(await lanes.embed({ task: 'embed-here', texts: portion }, claim));
  }
  const dims = parts[0]?.dims ?? 0;
  const vectors = new Float32Array(texts.length * dims);
  let at = 0;
  for (const part of parts) {
    vectors.set(part.vectors, at);
    at += part.vectors.length;
  }
  return { vectors, dims, tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0) };
}

function tooMuchText(needsMs: number, deadlineMs: number): ApiError {
  const seconds = (ms: number) => Math.round(ms / 1_000);
  return new ApiError(
    'too_large',
    `the built-in model would take ${seconds(needsMs)} s for the texts of this request, which may take ${seconds(deadlineMs)} s: ` +
      'split it into smaller ones; nothing was written',
  );
}

function portionsOf(texts: readonly string[]): string[][] {
  const portions: string[][] = [];
  let characters = Number.POSITIVE_INFINITY;
  for (const text of texts) {
    if (characters + text.length > taskCharacters) {
      portions.push([]);
      characters = 0;
    }
    portions.at(-1)?.push(text);
    characters += text.length;
  }
  return portions;
}

/** Asks for the provider's key each time: a key that was forgotten is used no more. */
async function providerKey(
  { directory, keyEncryptionKeys, logger }: ActorComponents,
  tenantId: number,
  provider: string,
): Promise<string> {
  const record = await directory.providerKey(tenantId, provider);
  if (record === null) {
    throw new ApiError(
      'embedding_key_missing',
      `this tenant has no key of ${provider}: store one with PUT /v1/embedding-keys/${provider}, or send vectors`,
    );
  }
  try {
    return openProviderKey(keyEncryptionKeys, { tenantId, provider }, record.envelope);
  } catch (error) {
    if (!(error instanceof ProviderKeyEnvelopeError)) throw error;
    logger.error('a stored key of a provider does not open', { tenantId, provider, error: error.message });
    throw new ApiError(
      'embedding_key_missing',
      `the stored key of ${provider} can no longer be read: store it again with PUT /v1/embedding-keys/${provider}`,
    );
  }
}
