/**
 * What a provider did instead of embedding, and what the caller is told about it. Nothing here may repeat the tenant's
 * key: an error is logged, sent and kept, and the client's own errors carry the headers of the request.
 */
import { ApiError, type ErrorDetails } from '../../protocol/errors.ts';
import type { KeyedProvider } from './embedding-models.ts';

export type ProviderFailure =
  | {
      readonly kind: 'refused';
      readonly status: number;
      /** In the provider's words; empty where it said nothing. */
      readonly message: string;
      /** Machine-readable words of the answer, such as `insufficient_quota`. */
      readonly reasons: readonly string[];
      readonly retryAfterMs: number | null;
    }
  /** An answer that can't be used; `problem` continues "answered with". */
  | { readonly kind: 'unusable'; readonly problem: string }
  /** No answer; `problem` is the system's code of it, if any. */
  | { readonly kind: 'unreachable'; readonly problem: string | null }
  | { readonly kind: 'timeout' };

export interface ProviderContext {
  readonly provider: KeyedProvider;
  readonly model: string;
  readonly key: string;
}

/** Where the provider names no time. Rates are counted by the minute at all four. */
const retryAfterSecondsDefault = 20;
const retryAfterSecondsMax = 3_600;
const messageCharactersMax = 300;
/** A piece of the key so long is taken for a quotation of it: providers shorten keys that they quote. */
const keyPieceCharacters = 12;

export function apiErrorOf(failure: ProviderFailure, context: ProviderContext): ApiError {
  const { provider, model } = context;
  const error = (code: ApiError['code'], sentence: string, details?: ErrorDetails) =>
    new ApiError(code, withoutKey(sentence, context.key), details);
  switch (failure.kind) {
    case 'unusable':
      return error('embedding_failed', `${provider} (${model}) answered with ${failure.problem}: try again`);
    case 'unreachable': {
      const code = failure.problem === null ? '' : ` (${failure.problem})`;
      return error('embedding_failed', `${provider} could not be reached${code}: try again`);
    }
    case 'timeout':
      return error('embedding_failed', `${provider} (${model}) did not answer in time: try again`);
    case 'refused':
      return refusal(failure, context);
  }
}

/** Whether the same call may succeed a moment later. */
export function mayPass(failure: ProviderFailure): boolean {
  if (failure.kind !== 'refused') return failure.kind !== 'unusable';
  const verdict = judge(failure);
  return verdict === 'failed' || verdict === 'rate-limited';
}

export function isRateLimit(failure: ProviderFailure): boolean {
  return failure.kind === 'refused' && judge(failure) === 'rate-limited';
}

type Refusal = ProviderFailure & { readonly kind: 'refused' };
type Verdict = 'key-invalid' | 'rejected' | 'rate-limited' | 'quota' | 'failed';

/** Reasons that say more than their status: Google answers 400 to a wrong key, OpenAI 403 to a model that is not there. */
function judge({ status, reasons }: Refusal): Verdict {
  if (reasons.includes('API_KEY_INVALID') || reasons.includes('API_KEY_EXPIRED')) return 'key-invalid';
  if (reasons.includes('model_not_found')) return 'rejected';
  if (status === 401 || status === 403 || status === 498) return 'key-invalid';
  if (reasons.includes('insufficient_quota')) return 'quota';
  if (status === 429) return 'rate-limited';
  if (status === 408 || status === 409 || status === 425 || status < 400 || status >= 500) return 'failed';
  return 'rejected';
}

function refusal(failure: Refusal, { provider, model, key }: ProviderContext): ApiError {
  const { status, retryAfterMs } = failure;
  const verdict = judge(failure);
  const words = failure.message === '' ? '' : `: ${shortened(redact(failure.message, key))}`;
  const retryAfter = Math.min(
    Math.max(retryAfterMs === null ? retryAfterSecondsDefault : Math.ceil(retryAfterMs / 1_000), 1),
    retryAfterSecondsMax,
  );
  const error = (code: ApiError['code'], sentence: string, details?: ErrorDetails) =>
    new ApiError(code, withoutKey(sentence, key), details);
  switch (verdict) {
    case 'key-invalid':
      // Without its words: they may quote the key in part.
      return error(
        'embedding_key_invalid',
        `${provider} refused the tenant's key (status ${status}): store a working key with PUT /v1/embedding-keys/${provider}`,
      );
    case 'rejected':
      return error(
        'embedding_rejected',
        `${provider} refused the request to ${model} (status ${status})${words}`,
      );
    case 'quota':
      return error(
        'embedding_rate_limited',
        `the quota of the tenant's key at ${provider} is used up: add credit there, or send vectors`,
        { retryAfter },
      );
    case 'rate-limited':
      return error(
        'embedding_rate_limited',
        `${provider} limits the rate of the tenant's key for ${model}: try again in ${retryAfter} s`,
        { retryAfter },
      );
    case 'failed':
      return error('embedding_failed', `${provider} (${model}) failed with status ${status}: try again`);
  }
}

/** A provider's words without the key, or none where a piece of it is left over. */
export function redact(words: string, key: string): string {
  const without = withoutKey(words, key);
  for (let i = 0; i + keyPieceCharacters <= key.length; i++) {
    if (without.includes(key.slice(i, i + keyPieceCharacters))) return '(its words quote the key)';
  }
  return without;
}

/** For sentences of ours, in which only the model's name can repeat it. */
function withoutKey(text: string, key: string): string {
  return key === '' ? text : text.replaceAll(key, '[key]');
}

/** One line of bounded length. */
function shortened(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length <= messageCharactersMax
    ? line
    : `${line.slice(0, messageCharactersMax).toWellFormed()}…`;
}
