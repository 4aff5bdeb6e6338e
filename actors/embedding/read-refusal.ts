import type { ProviderFailure } from './provider-errors.ts';

export interface RefusalAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Milliseconds since 1970: a time of day in the headers is counted from here. */
  readonly nowMs: number;
}

/**
 * Reads an error answer. The four providers' shapes, and those of proxies before them:
 *
 * - OpenAI: `{ error: { message, type, code } }`
 * - Google: `{ error: { code, message, status, details: [{ reason }, { retryDelay: "34s" }] } }`
 * - Cohere: `{ message }`
 * - Mistral: `{ object: "error", message, type, code }`, `{ detail: "…" }` or `{ detail: [{ msg }] }`
 */
export function readRefusal({ status, headers, body, nowMs }: RefusalAnswer): ProviderFailure {
  const answer = parsed(body);
  const error = isRecord(answer.error) ? answer.error : answer;
  const details = Array.isArray(error.details) ? error.details.filter(isRecord) : [];
  const reasons = [error.type, error.code, error.status, ...details.map((detail) => detail.reason)];
  const message = [error.message, answer.error, answer.detail, firstMessage(answer.detail)].find(isText);
  return {
    kind: 'refused',
    status,
    message: message ?? '',
    reasons: reasons.filter(isText),
    retryAfterMs: retryAfterOf(headers, nowMs) ?? retryDelayOf(details),
  };
}

/** `Retry-After` in seconds or as a date, or OpenAI's finer header. */
function retryAfterOf(headers: Readonly<Record<string, string>>, nowMs: number): number | null {
  const fine = waitOf(headers['retry-after-ms'], 1);
  if (fine !== null) return fine;
  const value = headers['retry-after'];
  const seconds = waitOf(value, 1_000);
  // Date.parse takes almost anything for a date, a number below zero too; HTTP's begin with the day of the week.
  if (seconds !== null || value === undefined || !/^[A-Z][a-z]{2,8},? /.test(value)) return seconds;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(date - nowMs, 0);
}

/** Google's `RetryInfo`. */
function retryDelayOf(details: readonly Record<string, unknown>[]): number | null {
  for (const { retryDelay } of details) {
    if (isText(retryDelay) && retryDelay.endsWith('s')) return waitOf(retryDelay.slice(0, -1), 1_000);
  }
  return null;
}

function waitOf(value: string | undefined, unitMs: number): number | null {
  return value !== undefined && /^\d{1,9}(\.\d{1,9})?$/.test(value.trim()) ? Number(value) * unitMs : null;
}

function firstMessage(detail: unknown): unknown {
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  return isRecord(first) ? first.msg : undefined;
}

/** The body as an object; an empty one where it is no JSON (a proxy's page), of which nothing is repeated. */
function parsed(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
