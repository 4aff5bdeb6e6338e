/**
 * What we know of the providers' embedding models: which is the default, how long their vectors are, and how much a call
 * takes. A model that is not here can be used all the same: its namespace says the length, and the answer is checked.
 */
import { limits } from '../../protocol/limits.ts';
import type { embedProviders, keyedProviders } from '../../protocol/namespace.ts';

export type EmbedProvider = (typeof embedProviders)[number];
export type KeyedProvider = (typeof keyedProviders)[number];

export type Purpose = 'document' | 'query';

interface EmbeddingModel {
  /** The length of its vectors unless it is asked for another. */
  readonly ownDims: number;
  /** The lengths it can be asked for; absent: it makes one only and refuses to be asked. */
  readonly dims?: { readonly min: number; readonly max: number } | readonly number[];
  /** How the model hears whether a text is a document or a query; absent: not at all. */
  readonly purpose?: 'parameter' | 'prefix';
  /** Vectors shorter than its own come without the length of 1 that distances other than the cosine rely on. */
  readonly unscaledWhenShort?: true;
}

export interface CallLimits {
  readonly textsMax: number;
  /** Bytes of all texts of a call, in UTF-8. */
  readonly bytesMax: number;
}

interface Provider {
  readonly defaultModel: string;
  readonly models: Readonly<Record<string, EmbeddingModel>>;
  readonly call: CallLimits;
}

/**
 * Numbers that one call may answer with. They come as JSON, and reading 100,000 of them keeps a thread busy for some
 * 50 ms: 2,048 vectors of OpenAI's would be 1.5 s in which the thread does nothing else.
 */
const numbersPerCallMax = 262_144;

/** Numbers of a vector of a model that we don't know, for the bound above: the longest that a provider makes today. */
const unknownDims = 4_096;

/** Bounds that a provider gives in tokens are kept in bytes, of which a token has at least one. */
const providers: Readonly<Record<EmbedProvider, Provider>> = {
  openai: {
    defaultModel: 'text-embedding-3-small',
    models: {
      'text-embedding-3-small': { ownDims: 1_536, dims: { min: 1, max: 1_536 } },
      'text-embedding-3-large': { ownDims: 3_072, dims: { min: 1, max: 3_072 } },
      'text-embedding-ada-002': { ownDims: 1_536 },
    },
    // 300,000 tokens.
    call: { textsMax: 2_048, bytesMax: 300_000 },
  },
  cohere: {
    defaultModel: 'embed-v4.0',
    models: {
      'embed-v4.0': { ownDims: 1_536, dims: [256, 512, 1_024, 1_536], purpose: 'parameter' },
      'embed-english-v3.0': { ownDims: 1_024, purpose: 'parameter' },
      'embed-multilingual-v3.0': { ownDims: 1_024, purpose: 'parameter' },
      'embed-english-light-v3.0': { ownDims: 384, purpose: 'parameter' },
      'embed-multilingual-light-v3.0': { ownDims: 384, purpose: 'parameter' },
    },
    // 128,000 tokens.
    call: { textsMax: 96, bytesMax: 128_000 },
  },
  google: {
    defaultModel: 'gemini-embedding-001',
    models: {
      'gemini-embedding-001': {
        ownDims: 3_072,
        dims: { min: 128, max: 3_072 },
        purpose: 'parameter',
        unscaledWhenShort: true,
      },
      'gemini-embedding-2': { ownDims: 3_072, dims: { min: 128, max: 3_072 }, purpose: 'prefix' },
      'gemini-embedding-2-preview': { ownDims: 3_072, dims: { min: 128, max: 3_072 }, purpose: 'prefix' },
    },
    // No bound of the whole is documented.
    call: { textsMax: 100, bytesMax: 300_000 },
  },
  mistral: {
    defaultModel: 'mistral-embed',
    models: {
      'mistral-embed': { ownDims: 1_024 },
      // It can make others, but the client that we use can't ask for them.
      'codestral-embed': { ownDims: 1_536 },
    },
    // 16,384 tokens, beside a few that the provider adds to each text.
    call: { textsMax: 32, bytesMax: 16_000 },
  },
  service: {
    defaultModel: 'use-lite-512',
    models: { 'use-lite-512': { ownDims: 512 } },
    call: { textsMax: 2_048, bytesMax: 300_000 },
  },
};

export function modelOf({
  provider,
  model,
}: {
  readonly provider: EmbedProvider;
  readonly model?: string | undefined;
}): string {
  return model ?? providers[provider].defaultModel;
}

/**
 * Why the model cannot be asked for at all; null: it may exist. Google's name of a model is a part of the URL, where a
 * slash or a question mark would make another call of it.
 */
export function modelProblem(provider: EmbedProvider, model: string): string | null {
  const { defaultModel } = providers[provider];
  if (provider === 'service') return model === defaultModel ? null : `must be ${defaultModel}`;
  if (provider === 'google') return /^[\w.-]+$/.test(model) ? null : 'is no name of a Google model';
  return null;
}

/**
 * The length of the vectors that the model makes when it is asked for `dims`: `impossible` where it can't make that one,
 * `unknown` for a model that is not in our table. Without `dims`: its own, or the longest it can make that we take.
 */
export function lengthOf(
  provider: EmbedProvider,
  model: string,
  dims: number | undefined,
): number | 'unknown' | 'impossible' {
  if (dims !== undefined && dims > limits.vectorDimsMax) return 'impossible';
  const known = knownModel(provider, model);
  if (known === undefined) return dims ?? 'unknown';
  const length = dims ?? defaultDims(known);
  return length <= limits.vectorDimsMax && canMake(known, length) ? length : 'impossible';
}

/** The length that the request asks for; null where the model makes one only, or we don't know that it makes several. */
export function askedDims(provider: EmbedProvider, model: string, dims: number | null): number | null {
  const known = knownModel(provider, model);
  return known?.dims === undefined ? null : (dims ?? defaultDims(known));
}

/** Whether vectors asked for in this length must be brought to the length of 1 here. */
export function mustScale(provider: EmbedProvider, model: string, asked: number | null): boolean {
  const known = knownModel(provider, model);
  return known?.unscaledWhenShort === true && asked !== null && asked < known.ownDims;
}

/** Whether a call says what its vectors are for. With Cohere each does, also for models that came after this table. */
export function purposeIsParameter(provider: KeyedProvider, model: string): boolean {
  return provider === 'cohere' || knownModel(provider, model)?.purpose === 'parameter';
}

/** The text as the model wants to see it: Gemini's second models read from its beginning what it is for. */
export function textFor(provider: KeyedProvider, model: string, text: string, purpose: Purpose): string {
  if (knownModel(provider, model)?.purpose !== 'prefix') return text;
  return purpose === 'query' ? `task: search result | query: ${text}` : `title: none | text: ${text}`;
}

export function callLimits(provider: EmbedProvider, model: string, dims: number | null): CallLimits {
  const { textsMax, bytesMax } = providers[provider].call;
  const length = dims ?? askedDims(provider, model, null) ?? knownModel(provider, model)?.ownDims;
  return { textsMax: Math.min(textsMax, Math.floor(numbersPerCallMax / (length ?? unknownDims))), bytesMax };
}

/** JSON of a double takes at most 24 bytes; laid out on a line of its own it has white space around it. */
const numberBytesMax = 48;
const envelopeBytesMax = 65_536;

/** A longer answer to so many texts is not read to its end. */
export function answerBytesMax(texts: number, dims: number | null): number {
  return envelopeBytesMax + texts * (dims ?? unknownDims) * numberBytesMax;
}

function knownModel(provider: EmbedProvider, model: string): EmbeddingModel | undefined {
  const { models } = providers[provider];
  return Object.hasOwn(models, model) ? models[model] : undefined;
}

function defaultDims({ ownDims, dims }: EmbeddingModel): number {
  if (ownDims <= limits.vectorDimsMax || dims === undefined) return ownDims;
  return 'max' in dims ? limits.vectorDimsMax : Math.max(...dims.filter((d) => d <= limits.vectorDimsMax));
}

function canMake({ ownDims, dims }: EmbeddingModel, length: number): boolean {
  if (dims === undefined) return length === ownDims;
  return 'max' in dims ? length >= dims.min && length <= dims.max : dims.includes(length);
}
