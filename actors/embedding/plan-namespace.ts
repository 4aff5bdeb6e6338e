import { ApiError, invalidField } from '../../protocol/errors.ts';
import type { EmbedConfig, NamespaceRequest, VectorConfig } from '../../protocol/namespace.ts';
import { lengthOf, modelOf, modelProblem } from './embedding-models.ts';

/** What a namespace is made with. Pure; asks no provider, and needs no key yet. */
export interface PlannedNamespace {
  readonly vector: VectorConfig | null;
  readonly embed: EmbedConfig | null;
}

/**
 * The vectors' length is the one that `embed` asks for, else the one of `vector`, else what is known of the model. Throws
 * ApiError 422 where it can't be known, 409 where the model can't make it.
 */
export function planNamespace({ vector, embed }: NamespaceRequest): PlannedNamespace {
  if (embed === undefined) return { vector: vector ?? null, embed: null };
  const { provider } = embed;
  const model = checkedModel(embed);
  if (embed.dims !== undefined && vector !== undefined && embed.dims !== vector.dims)
    throw embeddingDims(`embed.dims asks for ${embed.dims} numbers and vector.dims for ${vector.dims}`);
  const length = lengthOf(provider, model, embed.dims ?? vector?.dims);
  if (length === 'unknown')
    throw invalidField('embed.dims', `is required: how long the vectors of ${model} are is not known here`);
  if (length === 'impossible')
    throw embeddingDims(`${model} cannot make vectors of ${embed.dims ?? vector?.dims} numbers`);
  return {
    vector: { dims: length, metric: vector?.metric ?? 'cosine' },
    embed: { provider, model, ...(embed.dims !== undefined && { dims: embed.dims }) },
  };
}

/** The model's name, the provider's default where none is given. Throws ApiError 422 for one that can't be. */
export function checkedModel(embed: EmbedConfig): string {
  const model = modelOf(embed);
  const problem = modelProblem(embed.provider, model);
  if (problem !== null) throw invalidField('embed.model', problem);
  return model;
}

export function embeddingDims(sentence: string): ApiError {
  return new ApiError('embedding_dims', `${sentence}: take another model, or make a new namespace`);
}
