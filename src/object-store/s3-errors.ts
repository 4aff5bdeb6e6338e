import { StoreError, type StoreFailure, type StoreOutcome } from './object-store.ts';

/** Connecting failed, so not one byte of the request was sent. */
const notConnectedCodes: readonly string[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'];

/** What the SDK throws: no class of it is needed to read it. */
interface SdkError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly code?: unknown;
}

/** The HTTP status of the answer; undefined where none came. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error ? (error as SdkError).$metadata?.httpStatusCode : undefined;
}

/** The store says that the object is not there. Any other 404 (a bucket, a proxy in between) says nothing about it. */
export function isMissingKey(error: unknown): boolean {
  return statusOf(error) === 404 && error instanceof Error && error.name === 'NoSuchKey';
}

/** The multipart upload was aborted, or is complete. */
export function isMissingUpload(error: unknown): boolean {
  return statusOf(error) === 404 && error instanceof Error && error.name === 'NoSuchUpload';
}

/** `place` is named in the error's cause, for the operator. */
export function failureOf(
  error: unknown,
  place: string,
  operation: string,
  key: string,
  kind: 'read' | 'write',
): StoreError {
  const [outcome, reason] = judge(error);
  const cause = new Error(describe(error, place), { cause: error });
  return new StoreError(operation, key, kind === 'read' ? 'not-applied' : outcome, reason, { cause });
}

function judge(error: unknown): readonly [StoreOutcome, StoreFailure] {
  const status = statusOf(error);
  if (!(error instanceof Error)) return ['unknown', 'failed'];
  const { name, code } = error as SdkError;
  if (name === 'CredentialsProviderError') return ['not-applied', 'failed'];
  if (notConnectedCodes.includes(String(code))) return ['not-applied', 'failed'];
  // The SDK calls a reset connection a time-out too.
  const timeout = name === 'TimeoutError' && code !== 'ECONNRESET' && code !== 'EPIPE';
  if (status === undefined) return ['unknown', timeout ? 'timeout' : 'failed'];
  if (status === 409) return ['not-applied', 'conflict'];
  if (status === 429 || status === 503) return ['unknown', 'throttled'];
  if (status === 408) return ['unknown', 'timeout'];
  // Refused before anything was done: rights, a missing bucket, a malformed request.
  return [status >= 400 && status < 500 ? 'not-applied' : 'unknown', 'failed'];
}

function describe(error: unknown, place: string): string {
  if (!(error instanceof Error)) return `the S3 client failed for ${place}: ${String(error)}`;
  const { name, message } = error;
  const status = statusOf(error);
  // Node's error for several refused addresses has no message, the SDK's for some answers has this one.
  const words =
    message === '' || message === 'UnknownError' ? String((error as SdkError).code ?? name) : message;
  return status === undefined
    ? `no answer from S3 for ${place}: ${words}`
    : `S3 answered ${status} ${name} for ${place}: ${words}`;
}
