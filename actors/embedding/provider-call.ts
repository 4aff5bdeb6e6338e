/**
 * The door to the AI SDK, `ai` and the clients of the four providers: one call, sent once. The packages are loaded when
 * the first one is made (0.3 s, 30 MB): threads that embed nothing do without them.
 *
 * The SDK also cuts requests into calls and sends failed ones again, but on the system's clock, for as long as a provider
 * says (a minute), and knowing no deadline; so it is given what fits one call and no second try.
 *
 * Its errors hold the request, and some of Node's the header with the key: none leaves this file. What is known of one
 * leaves as a `ProviderFailure`.
 */
import type { EmbeddingModel, embedMany } from 'ai';
import type { Clock } from '../../src/base/clock.ts';
import {
  askedDims,
  type KeyedProvider,
  type Purpose,
  purposeIsParameter,
  textFor,
} from './embedding-models.ts';
import { inOrder, type ProviderVectors } from './provider-answer.ts';
import type { ProviderFailure } from './provider-errors.ts';
import { readRefusal } from './read-refusal.ts';

export interface ProviderCall {
  readonly provider: KeyedProvider;
  readonly model: string;
  readonly key: string;
  /** As many and as long as one call takes, none of them empty. */
  readonly texts: readonly string[];
  readonly dims: number | null;
  readonly purpose: Purpose;
  readonly answerBytesMax: number;
  /** An aborted call ends as a time-out. */
  readonly signal: AbortSignal;
}

export type CallAnswer =
  | { readonly kind: 'embedded'; readonly embeddings: ProviderVectors; readonly tokens: number | null }
  | { readonly kind: 'failed'; readonly failure: ProviderFailure };

export type Fetch = typeof globalThis.fetch;

export interface CallComponents {
  readonly baseUrls: Readonly<Record<KeyedProvider, string | null>>;
  readonly fetch: Fetch;
  readonly clock: Pick<Clock, 'now'>;
}

/** Given always: of one that is missing the SDK would look into the environment for itself. */
const ownBaseUrls: Readonly<Record<KeyedProvider, string>> = {
  openai: 'https://api.openai.com/v1',
  cohere: 'https://api.cohere.com/v2',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  mistral: 'https://api.mistral.ai/v1',
};

type EmbedManyResult = Awaited<ReturnType<typeof embedMany>>;

export async function callProvider(call: ProviderCall, components: CallComponents): Promise<CallAnswer> {
  const { embedMany, APICallError } = await import('ai');
  const { provider, model, texts, purpose, signal } = call;
  const reading = new BoundedFetch(components.fetch, call.answerBytesMax);
  try {
    const result = await embedMany({
      model: await modelFor(call, components.baseUrls, reading.fetch),
      values: texts.map((text) => textFor(provider, model, text, purpose)),
      providerOptions: providerOptions(call),
      maxRetries: 0,
      abortSignal: signal,
    });
    return answerOf(result);
  } catch (error) {
    if (signal.aborted) return failed({ kind: 'timeout' });
    if (reading.tooLarge) return failed({ kind: 'unusable', problem: 'too many bytes' });
    if (!APICallError.isInstance(error)) return failed({ kind: 'unreachable', problem: networkCode(error) });
    return failed(apiFailure(error, components.clock.now()));
  }
}

async function modelFor(
  { provider, model, key }: ProviderCall,
  baseUrls: CallComponents['baseUrls'],
  fetch: Fetch,
): Promise<EmbeddingModel> {
  const settings = { apiKey: key, baseURL: baseUrls[provider] ?? ownBaseUrls[provider], fetch };
  switch (provider) {
    case 'openai':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).embeddingModel(model);
    case 'cohere':
      return (await import('@ai-sdk/cohere')).createCohere(settings).embeddingModel(model);
    case 'google':
      return (await import('@ai-sdk/google')).createGoogleGenerativeAI(settings).embeddingModel(model);
    case 'mistral':
      return (await import('@ai-sdk/mistral')).createMistral(settings).embeddingModel(model);
  }
}

type ProviderOptions = Record<string, Record<string, string | number>>;

function providerOptions({ provider, model, dims, purpose }: ProviderCall): ProviderOptions {
  const asked = askedDims(provider, model, dims);
  const isQuery = purpose === 'query';
  const told = purposeIsParameter(provider, model);
  switch (provider) {
    case 'openai':
      return { openai: asked === null ? {} : { dimensions: asked } };
    case 'cohere':
      return {
        cohere: {
          inputType: isQuery ? 'search_query' : 'search_document',
          ...(asked === null ? {} : { outputDimension: asked }),
        },
      };
    case 'google':
      return {
        google: {
          ...(told ? { taskType: isQuery ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT' } : {}),
          ...(asked === null ? {} : { outputDimensionality: asked }),
        },
      };
    case 'mistral':
      return {};
  }
}

function answerOf({ embeddings, usage, responses }: EmbedManyResult): CallAnswer {
  const body = responses?.[0]?.body;
  const ordered = inOrder(embeddings, body);
  if (ordered === null) return failed({ kind: 'unusable', problem: 'vectors in no order' });
  return { kind: 'embedded', embeddings: ordered, tokens: tokensOf(usage.tokens, body) };
}

/** The SDK does not read Google's count, which newer models send. Null: the provider says nothing. */
function tokensOf(tokens: number, body: unknown): number | null {
  const google = (body as { readonly usageMetadata?: { readonly promptTokenCount?: unknown } } | undefined)
    ?.usageMetadata?.promptTokenCount;
  const count = Number.isFinite(tokens) ? tokens : google;
  return Number.isSafeInteger(count) && Number(count) >= 0 ? Number(count) : null;
}

interface SdkError {
  readonly statusCode?: number | undefined;
  readonly responseHeaders?: Record<string, string> | undefined;
  readonly responseBody?: string | undefined;
}

function apiFailure(error: SdkError, nowMs: number): ProviderFailure {
  const { statusCode: status, responseHeaders: headers = {}, responseBody: body = '' } = error;
  if (status !== undefined && status >= 400) return readRefusal({ status, headers, body, nowMs });
  const code = networkCode(error);
  // Also a connection that broke in the middle of an answer.
  if (status === undefined || code !== null) return { kind: 'unreachable', problem: code };
  return { kind: 'unusable', problem: 'something other than vectors' };
}

const failed = (failure: ProviderFailure): CallAnswer => ({ kind: 'failed', failure });

/** The system's code of a failed connection, from the error or its causes. */
function networkCode(error: unknown): string | null {
  let at: unknown = error;
  for (let depth = 0; depth < 8 && typeof at === 'object' && at !== null; depth++) {
    const { code, cause } = at as { readonly code?: unknown; readonly cause?: unknown };
    if (
      typeof code === 'string' &&
      /^(E[A-Z]+|UND_ERR_[A-Z_]+|ERR_TLS_[A-Z_]+|[A-Z_]*CERT[A-Z_]*)$/.test(code)
    )
      return code;
    at = cause;
  }
  return null;
}

/** Reads no more than so many bytes of an answer, and follows no redirect: the key would go with it. */
class BoundedFetch {
  tooLarge = false;
  readonly #fetch: Fetch;
  readonly #bytesMax: number;

  constructor(fetch: Fetch, bytesMax: number) {
    this.#fetch = fetch;
    this.#bytesMax = bytesMax;
  }

  readonly fetch: Fetch = async (input, init) => {
    const response = await this.#fetch(input, { ...init, redirect: 'error' });
    return new Response(response.body?.pipeThrough(this.#meter()) ?? null, response);
  };

  #meter(): TransformStream<Uint8Array, Uint8Array> {
    let bytes = 0;
    return new TransformStream({
      transform: (chunk, controller) => {
        bytes += chunk.byteLength;
        this.tooLarge ||= bytes > this.#bytesMax;
        if (this.tooLarge) controller.error(new RangeError('the answer is too large'));
        else controller.enqueue(chunk);
      },
    });
  }
}
