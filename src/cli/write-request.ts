/**
 * One write over the public API, tried again while the server says that it may be: 429, 503, and a connection that
 * broke. Putting a document twice under one id leaves one document, so a write of unknown outcome may be repeated.
 */
import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import type { Random } from '../base/random.ts';

export interface WriteTarget {
  /** Without a slash at its end. */
  readonly url: string;
  readonly namespace: string;
  readonly key: string;
}

export interface WriteComponents {
  readonly clock: Clock;
  readonly random: Random;
}

/** The write was refused, or not answered, for good. The message is for a person. */
export class WriteFailed extends Error {
  override name = 'WriteFailed';
}

/** With the waits below about a minute: longer than a server takes to restart or to catch up. */
export const attemptsMax = 10;
export const firstWaitMs = 250;
export const waitMsMax = 10_000;
/** A server that asks for more than this does not mean a moment: its message is shown instead. */
export const retryAfterSecondsMax = 60;
/** Longer than the server's own deadlines for a body and a handler together. */
const answerMsMax = 90_000;

export interface WriteProgress {
  /** Set once the server has answered anything: one that never did is not worth waiting for. */
  reached: boolean;
  retries: number;
}

/** Resolves once the write is acknowledged. Rejects with WriteFailed. */
export async function putDocuments(
  components: WriteComponents,
  target: WriteTarget,
  body: Uint8Array<ArrayBuffer>,
  progress: WriteProgress,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await post(components.clock, target, body);
    if (outcome.kind === 'answered') progress.reached = true;
    const waitMs = waitOf(components.random, outcome, { attempt, reached: progress.reached });
    if (waitMs === 'done') return;
    if (waitMs === 'hopeless') throw new WriteFailed(sentenceOf(target, outcome));
    progress.retries += 1;
    await components.clock.sleep(waitMs);
  }
}

type Outcome =
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter: number; readonly text: string }
  | { readonly kind: 'broken'; readonly error: unknown };

async function post(clock: Clock, target: WriteTarget, body: Uint8Array<ArrayBuffer>): Promise<Outcome> {
  const abort = new AbortController();
  const cancel = clock.after(answerMsMax, () =>
    abort.abort(new Error(`no answer in ${answerMsMax / 1_000} s`)),
  );
  try {
    const answer = await fetch(`${target.url}/v1/namespaces/${target.namespace}/docs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${target.key}`, 'content-type': 'application/json' },
      body,
      // A redirect would repeat the write as a GET, or hand the key to another server.
      redirect: 'error',
      signal: abort.signal,
    });
    const retryAfter = Number(answer.headers.get('retry-after') ?? 0);
    return { kind: 'answered', status: answer.status, retryAfter, text: await answer.text() };
  } catch (error) {
    return { kind: 'broken', error };
  } finally {
    cancel();
  }
}

/** What to do after an outcome: pure but for the jitter, which keeps several writers from coming back together. */
function waitOf(
  random: Random,
  outcome: Outcome,
  tries: { readonly attempt: number; readonly reached: boolean },
): number | 'done' | 'hopeless' {
  if (outcome.kind === 'answered' && outcome.status < 300) return 'done';
  if (outcome.kind === 'answered' && outcome.status !== 429 && outcome.status !== 503) return 'hopeless';
  if (!tries.reached || tries.attempt >= attemptsMax) return 'hopeless';
  const askedSeconds = outcome.kind === 'answered' && outcome.retryAfter > 0 ? outcome.retryAfter : 0;
  if (askedSeconds > retryAfterSecondsMax) return 'hopeless';
  const backoffMs = Math.min(firstWaitMs * 2 ** (tries.attempt - 1), waitMsMax);
  return Math.max(askedSeconds * 1_000, backoffMs) + jitterMs(random);
}

function jitterMs(random: Random): number {
  return ((random.bytes(1)[0] ?? 0) / 256) * firstWaitMs;
}

function sentenceOf(target: WriteTarget, outcome: Outcome): string {
  if (outcome.kind === 'broken')
    return `the server at ${target.url} cannot be reached: ${reasonOf(outcome.error)}`;
  const { message, fields } = errorOf(outcome.text);
  if (outcome.status === 401) return `the server does not accept the API key: ${message}`;
  return `the server refused the documents (${outcome.status}): ${message}${fields}`;
}

/** `fetch` says only that it failed; its cause says why. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error && cause.message !== '' ? cause.message : describeError(cause);
}

const errorTextMax = 500;
const errorFieldsMax = 5;

/** The server's own words, or the beginning of whatever came instead of them, from a proxy for example. */
function errorOf(text: string): { readonly message: string; readonly fields: string } {
  try {
    const { error, fields } = JSON.parse(text) as { error?: unknown; fields?: unknown };
    if (typeof error === 'string') return { message: error.slice(0, errorTextMax), fields: fieldsOf(fields) };
  } catch {
    // Not ours: shown as it is.
  }
  return { message: text.slice(0, errorTextMax), fields: '' };
}

function fieldsOf(fields: unknown): string {
  if (typeof fields !== 'object' || fields === null) return '';
  const shown = Object.entries(fields).slice(0, errorFieldsMax);
  return shown.map(([name, problem]) => `\n  ${name}: ${String(problem).slice(0, errorTextMax)}`).join('');
}
