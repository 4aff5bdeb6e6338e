/**
 * The closed table of error codes. Clients branch on `code`; wording may change.
 * The code decides the HTTP status, whether the same request may be sent again, and who has to act.
 */
import { limits } from './limits.ts';

export type Remedy = 'retry' | 'fix-request' | 'fix-credentials' | 'upgrade-or-wait' | 'tell-us';

interface ErrorKind {
  readonly status: number;
  readonly remedy: Remedy;
}

const retry = (status: number): ErrorKind => ({ status, remedy: 'retry' });
const fixRequest = (status: number): ErrorKind => ({ status, remedy: 'fix-request' });
const upgradeOrWait = (status: number): ErrorKind => ({ status, remedy: 'upgrade-or-wait' });

export const errorKinds = {
  bad_request: fixRequest(400),
  unauthorized: { status: 401, remedy: 'fix-credentials' },
  payment_required: upgradeOrWait(402),
  namespace_limit: upgradeOrWait(402),
  email_unverified: upgradeOrWait(402),
  forbidden: { status: 403, remedy: 'fix-credentials' },
  not_found: fixRequest(404),
  conflict: fixRequest(409),
  embedding_dims: fixRequest(409),
  too_large: fixRequest(413),
  invalid: fixRequest(422),
  query_timeout: fixRequest(422),
  scan_refused: fixRequest(422),
  embedding_key_missing: fixRequest(422),
  embedding_key_invalid: fixRequest(422),
  embedding_rejected: fixRequest(422),
  rate_limited: retry(429),
  write_busy: retry(429),
  embedding_rate_limited: retry(429),
  internal: { status: 500, remedy: 'tell-us' },
  not_implemented: { status: 501, remedy: 'tell-us' },
  billing_failed: retry(502),
  embedding_failed: retry(502),
  unavailable: retry(503),
  write_unknown: retry(503),
  quota_full: upgradeOrWait(507),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

export interface ErrorDetails {
  /** Input field (a path such as `docs[3].id`) to what is wrong with it. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Seconds after which the same request may succeed; also sent as `Retry-After`. */
  readonly retryAfter?: number;
  /** Where one code answers with another status: 405 and 408 are `bad_request`. */
  readonly status?: number;
  /** Headers that the status demands, such as `Allow`. */
  readonly headers?: readonly (readonly [string, string])[];
  readonly cause?: unknown;
}

/** An error that the caller sees: a sentence to act on, and a stable code. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ErrorCode;
  readonly fields: Readonly<Record<string, string>> | undefined;
  readonly retryAfter: number | undefined;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  #body: Uint8Array | null = null;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    // A refusal is an answer and nobody reads its stack; capturing one was a third of the cost of refusing a flood.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.fields = details.fields;
    this.retryAfter = details.retryAfter;
    this.status = details.status ?? errorKinds[code].status;
    this.headers = details.headers ?? [];
  }

  /** The one shape of every error answer. Made once: not to be changed. */
  toBody(): Uint8Array {
    this.#body ??= Buffer.from(
      JSON.stringify({
        error: this.message,
        code: this.code,
        ...(this.fields === undefined ? {} : { fields: this.fields }),
        ...(this.retryAfter === undefined ? {} : { retry_after: this.retryAfter }),
      }),
    );
    return this.#body;
  }
}

/** 404 for a namespace: the same sentence whether it is missing, another tenant's or outside the key's patterns. */
export function noSuchNamespace(name: string): ApiError {
  // No namespace has a longer name: the rest of it would only make the sentence as long as the address.
  const { namespaceNameCharactersMax } = limits;
  const shown =
    name.length <= namespaceNameCharactersMax ? name : `${name.slice(0, namespaceNameCharactersMax)}…`;
  return new ApiError('not_found', `there is no namespace named "${shown}"`);
}

/** 404 for a link that leads nowhere any more. Who may use its name has its source's in the list too. */
export function sourceIsGone({ name, source }: { readonly name: string; readonly source: string }): ApiError {
  const sentence = `"${name}" is a link whose source, "${source}", is gone: delete the link to use its name again`;
  return new ApiError('not_found', sentence);
}

/** 400 for a request without the JSON body that its operation needs. */
export function missingBody(): ApiError {
  return new ApiError('bad_request', 'this request needs a JSON body');
}

/** 422 with one offending field, the commonest refusal. */
export function invalidField(field: string, problem: string): ApiError {
  return new ApiError('invalid', `${field}: ${problem}`, { fields: { [field]: problem } });
}

/** The inverse of `ApiError.toBody`, for callers on another thread. */
export function apiErrorFromBody(body: Uint8Array): ApiError {
  const { code, error, fields, retry_after } = JSON.parse(Buffer.from(body).toString()) as {
    code: ErrorCode;
    error: string;
    fields?: Readonly<Record<string, string>>;
    retry_after?: number;
  };
  return new ApiError(code, error, {
    ...(fields === undefined ? {} : { fields }),
    ...(retry_after === undefined ? {} : { retryAfter: retry_after }),
  });
}
