import { invalidField } from '../../protocol/errors.ts';
import { type EmbedConfig, namespacePatchSchema } from '../../protocol/namespace.ts';
import { parseWith } from '../../protocol/validate.ts';
import type { ActorComponents } from '../actor/components.ts';
import { lengthOf } from '../embedding/embedding-models.ts';
import { checkedModel, embeddingDims } from '../embedding/plan-namespace.ts';
import { readBody } from '../thread/request-body.ts';
import { embedTexts } from './embed-texts.ts';
import type { NamespaceState } from './namespace-state.ts';

/** What shows that model and key work, and how long the vectors are. */
const probe = 'tide';

/**
 * Turns embedding on, to another model, or off. On means that the model was asked for one tiny embedding and made it as long
 * as the namespace's vectors are. Documents that are there keep their vectors. Answers the tokens that it took.
 */
export async function updateNamespace(
  components: ActorComponents,
  state: NamespaceState,
  body: Uint8Array,
  deadlineMs: number,
): Promise<number> {
  const { embed } = parseWith(namespacePatchSchema, readBody(body));
  const next = embed === null ? null : planned(state, embed);
  const tokens = next === null ? 0 : await tryModel(components, state, next, deadlineMs);
  const { tenantId, name, namespaceId } = state.identity;
  await components.directory.setEmbed(tenantId, name, { namespaceId, embed: next });
  state.embed = next;
  return tokens;
}

function planned({ vector }: NamespaceState, embed: EmbedConfig): EmbedConfig {
  if (embed.dims !== undefined) throw invalidField('embed.dims', 'can be given at creation only');
  const model = checkedModel(embed);
  if (vector === null) throw embeddingDims('this namespace was made without vectors');
  if (lengthOf(embed.provider, model, vector.dims) === 'impossible')
    throw embeddingDims(`${model} cannot make vectors of ${vector.dims} numbers`);
  return { provider: embed.provider, model };
}

async function tryModel(
  components: ActorComponents,
  { identity, vector }: NamespaceState,
  embed: EmbedConfig,
  deadlineMs: number,
): Promise<number> {
  const { provider, model = '' } = embed;
  // A model that we don't know is not told how long its vectors are to be; the probe tells.
  const isKnown = lengthOf(provider, model, undefined) !== 'unknown';
  const dims = isKnown ? (vector?.dims ?? null) : null;
  const texts = [probe];
  const wanted = {
    tenantId: identity.tenantId,
    embed,
    dims,
    texts,
    purpose: 'document' as const,
    deadlineMs,
  };
  const made = await embedTexts(components, wanted);
  if (made.dims !== vector?.dims)
    throw embeddingDims(
      `${model} makes vectors of ${made.dims} numbers and the namespace's have ${vector?.dims}`,
    );
  return made.tokens;
}
