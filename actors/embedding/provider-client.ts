/**
 * Vectors of texts from a provider:
 *
 * 1. the texts become calls that keep the provider's limits (`plan-calls.ts`);
 * 2. some calls are under way at a time, each sent again while that may help and the time lasts (`provider-retries.ts`);
 *    with each one that the provider finds too many, fewer are;
 * 3. each answer is checked before it is taken (`provider-answer.ts`);
 * 4. the first call that fails for good ends the others, and the caller is told why (`provider-errors.ts`).
 *
 * All or nothing: there are vectors for every text, or an `ApiError`. Reading answers takes a good part of a millisecond a
 * vector, on the thread that calls; between two answers that thread does other work.
 */
import { ApiError } from '../../protocol/errors.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Random } from '../../src/base/random.ts';
import {
  answerBytesMax,
  askedDims,
  callLimits,
  type KeyedProvider,
  lengthOf,
  modelProblem,
  mustScale,
  type Purpose,
} from './embedding-models.ts';
import { type PlannedCall, planCalls } from './plan-calls.ts';
import { EmbeddedVectors } from './provider-answer.ts';
import { type CallAnswer, type CallComponents, callProvider } from './provider-call.ts';
import { apiErrorOf, isRateLimit, type ProviderFailure } from './provider-errors.ts';
import { retryInMs } from './provider-retries.ts';

export interface EmbedRequest {
  readonly provider: KeyedProvider;
  readonly model: string;
  /** The vectors' length: asked for where the model makes several, and expected of all. Null: the answer says. */
  readonly dims: number | null;
  readonly key: string;
  /** The texts to embed: only the beginning of a long one is, and one with nothing but white space gets a vector of zeros. */
  readonly texts: readonly string[];
  readonly purpose: Purpose;
  /** From now, for all calls and retries together. */
  readonly deadlineMs: number;
  /** Ends the calls that are under way; the request then fails. */
  readonly signal?: AbortSignal;
}

export interface EmbedComponents extends CallComponents {
  readonly clock: Clock;
  readonly random: Random;
}

export interface Embedded {
  /** One after the other: `texts.length` times `dims`. */
  readonly vectors: Float32Array;
  /** 0 where nothing was embedded and the length was not given. */
  readonly dims: number;
  /** As the provider counts them; estimated where it does not say. */
  readonly tokens: number;
}

/** Enough for 10,000 short texts in seconds. An account that may not have so many at once gets by with fewer. */
const callsInFlightMax = 4;
/** The largest call takes a provider a few seconds. */
const callMsMax = 15_000;
/** For the count of tokens where a provider gives none: English has about four characters in one. */
const bytesPerToken = 4;

export async function embedByProvider(request: EmbedRequest, components: EmbedComponents): Promise<Embedded> {
  refuseUnsendable(request);
  const { provider, model, texts } = request;
  const asked = askedDims(provider, model, request.dims);
  const dims = request.dims ?? asked;
  const calls = planCalls(texts, callLimits(provider, model, dims));
  const vectors = new EmbeddedVectors({
    texts: texts.length,
    dims,
    scaled: mustScale(provider, model, asked),
  });
  const run = new EmbedRun(request, components);
  let tokens = 0;
  await run.all(calls, (call, answer) => {
    tokens += answer.tokens ?? Math.ceil(call.bytes / bytesPerToken);
    const problem = vectors.take(answer.embeddings, call.places);
    return problem === null ? null : { kind: 'unusable', problem };
  });
  return { vectors: vectors.values, dims: vectors.dims, tokens };
}

/** What would not reach the provider as it is meant. Node's error about a header that can't be sent quotes it. */
function refuseUnsendable({ provider, model, key, dims }: EmbedRequest): void {
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ApiError(
      'embedding_key_invalid',
      `the tenant's key of ${provider} has characters that no key has: store a working key with PUT /v1/embedding-keys/${provider}`,
    );
  }
  const problem = modelProblem(provider, model);
  if (problem !== null) throw new ApiError('embedding_rejected', `the embedding model ${problem}`);
  if (dims !== null && lengthOf(provider, model, dims) === 'impossible') {
    throw new ApiError('embedding_dims', `${model} cannot make vectors of ${dims} numbers`);
  }
}

type Answer = CallAnswer & { readonly kind: 'embedded' };
type Take = (call: PlannedCall, answer: Answer) => ProviderFailure | null;

/** The calls of one request, which end together. */
class EmbedRun {
  readonly #request: EmbedRequest;
  readonly #components: EmbedComponents;
  readonly #deadlineAt: number;
  /** Aborted by the first failure, or by the caller. */
  readonly #stop = new AbortController();
  /** Those that will look for another call. */
  #lanes = 0;
  #failure: ProviderFailure | null = null;

  constructor(request: EmbedRequest, components: EmbedComponents) {
    this.#request = request;
    this.#components = components;
    this.#deadlineAt = components.clock.monotonic() + request.deadlineMs;
  }

  async all(calls: readonly PlannedCall[], take: Take): Promise<void> {
    const { signal } = this.#request;
    const cancel = () => this.#stop.abort();
    signal?.addEventListener('abort', cancel);
    if (signal?.aborted) cancel();
    const left = [...calls];
    this.#lanes = Math.min(callsInFlightMax, calls.length);
    const lanes = Array.from({ length: this.#lanes }, () => this.#lane(left, take));
    // Every lane ends before the answer: none may go on with a key that the caller has let go.
    const outcomes = await Promise.allSettled(lanes);
    signal?.removeEventListener('abort', cancel);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    if (this.#failure !== null) throw apiErrorOf(this.#failure, this.#request);
    if (this.#stop.signal.aborted)
      throw new ApiError('embedding_failed', 'the request was given up before its texts were embedded');
  }

  /** One call after the other, until none is left or one has failed. */
  async #lane(left: PlannedCall[], take: Take): Promise<void> {
    try {
      for (let call = left.shift(); call && !this.#stop.signal.aborted; call = left.shift()) {
        const answer = await this.#callPatiently(call);
        if (answer === 'give-way') {
          left.unshift(call);
          break;
        }
        const failure = answer.kind === 'failed' ? answer.failure : take(call, answer);
        if (failure !== null) this.#fail(failure);
      }
    } catch (error) {
      this.#stop.abort();
      throw error;
    } finally {
      this.#lanes--;
    }
  }

  /** Only the first: the others are its consequence. */
  #fail(failure: ProviderFailure): void {
    if (this.#stop.signal.aborted) return;
    this.#failure = failure;
    this.#stop.abort();
  }

  /** Gives way where the provider limits the rate and others go on: this call is theirs then. */
  async #callPatiently(call: PlannedCall): Promise<CallAnswer | 'give-way'> {
    for (let attempts = 1; ; attempts++) {
      const answer = await this.#callOnce(call);
      if (answer.kind === 'embedded' || this.#stop.signal.aborted) return answer;
      const { failure } = answer;
      const wait = retryInMs({ failure, attempts, msLeft: this.#msLeft() }, this.#components.random);
      if (wait === null) return answer;
      if (isRateLimit(failure) && this.#lanes > 1) return 'give-way';
      await this.#sleep(wait);
      if (this.#stop.signal.aborted) return answer;
    }
  }

  async #callOnce({ texts }: PlannedCall): Promise<CallAnswer> {
    const { provider, model, key, dims, purpose } = this.#request;
    const over = new AbortController();
    const abort = () => over.abort();
    const cancelTimer = this.#components.clock.after(Math.min(callMsMax, this.#msLeft()), abort);
    const { signal: stop } = this.#stop;
    stop.addEventListener('abort', abort);
    if (stop.aborted) abort();
    try {
      const bytesMax = answerBytesMax(texts.length, dims);
      const call = { provider, model, key, texts, dims, purpose, answerBytesMax: bytesMax };
      return await callProvider({ ...call, signal: over.signal }, this.#components);
    } finally {
      cancelTimer();
      stop.removeEventListener('abort', abort);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#stop;
      const wake = () => {
        cancel();
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const cancel = this.#components.clock.after(ms, wake);
      signal.addEventListener('abort', wake);
    });
  }

  #msLeft(): number {
    return Math.max(this.#deadlineAt - this.#components.clock.monotonic(), 0);
  }
}
