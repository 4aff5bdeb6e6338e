/**
 * What routers of two servers say to each other, as heads of peers' calls. Arrays, as between threads: a forwarded call is encoded for
 * every request. Whoever changes a shape here, or one of `ActorCallWire` and `ActorAnswerWire`, moves `peerVersions`; a kind
 * that is new is refused by name where it is not known, and whoever asks has to live with that.
 */
import { isKnownCall } from '../../protocol/effect-of.ts';
import type { ActorCallWire, ApiErrorWire } from '../../protocol/messages.ts';
import type { Cached } from '../auth/key-cache.ts';
import { type AttemptAsk, type AttemptSaid, attemptKinds, attemptSteps } from '../identity/attempt-counts.ts';

const asks = { call: 0, forget: 1, view: 2, forgetPerson: 3, prepare: 4, attempt: 5 } as const;
const replies = { done: 0, failed: 1, moved: 2 } as const;

export type RouterAsk =
  /** A call for an actor of the other server. */
  | { readonly kind: 'call'; readonly call: ActorCallWire }
  /** What is cached of this tenant or person is void. */
  | { readonly kind: 'forget'; readonly cached: Cached }
  /** The body is a cluster view. */
  | { readonly kind: 'view' }
  /** What the asker will own once it has joined is to be flushed; answered when that is done. */
  | { readonly kind: 'prepare' }
  /** Attempts of a key that the other server counts. */
  | { readonly kind: 'attempt'; readonly ask: AttemptAsk };

export type RouterReply =
  /** `head` is the actor's, as it crosses threads. */
  | { readonly kind: 'done'; readonly head: unknown }
  /** It ended with an error, which says by its code what was done. */
  | { readonly kind: 'failed'; readonly error: ApiErrorWire }
  /** It was not begun: the other server does not own it, as far as it knows. Here is which placement that is. */
  | { readonly kind: 'moved'; readonly placement: number };

export function callAsk(call: ActorCallWire): unknown {
  return [asks.call, call];
}

export function forgetAsk({ of, id }: Cached): unknown {
  return [of === 'tenant' ? asks.forget : asks.forgetPerson, id];
}

export const viewAsk: unknown = [asks.view];
export const prepareAsk: unknown = [asks.prepare];

export function attemptAsk({ of, step, key }: AttemptAsk): unknown {
  return [asks.attempt, [of, step, key]];
}

export function attemptReply({ waitMs, areTooMany }: AttemptSaid): unknown {
  return doneReply([waitMs, areTooMany]);
}

/** Null for what is no answer to an attempt. */
export function readAttemptReply(head: unknown): AttemptSaid | null {
  const reply = readReply(head);
  if (reply?.kind !== 'done' || !Array.isArray(reply.head)) return null;
  const [waitMs, areTooMany] = reply.head as [unknown, unknown];
  return typeof waitMs === 'number' && typeof areTooMany === 'boolean' ? { waitMs, areTooMany } : null;
}

/** Null for what this version does not know. */
export function readAsk(head: unknown): RouterAsk | null {
  if (!Array.isArray(head)) return null;
  const [kind, value] = head as [unknown, unknown];
  switch (kind) {
    case asks.call:
      return isCall(value) ? { kind: 'call', call: value } : null;
    case asks.forget:
      return Number.isSafeInteger(value)
        ? { kind: 'forget', cached: { of: 'tenant', id: value as number } }
        : null;
    case asks.forgetPerson:
      return Number.isSafeInteger(value)
        ? { kind: 'forget', cached: { of: 'person', id: value as number } }
        : null;
    case asks.view:
      return { kind: 'view' };
    case asks.prepare:
      return { kind: 'prepare' };
    case asks.attempt:
      return readAttempt(value);
    default:
      return null;
  }
}

export function doneReply(head: unknown): unknown {
  return [replies.done, head];
}

export function failedReply(error: ApiErrorWire): unknown {
  return [replies.failed, error];
}

export function movedReply(placement: number): unknown {
  return [replies.moved, placement];
}

/** Null for what this version does not know. */
export function readReply(head: unknown): RouterReply | null {
  if (!Array.isArray(head)) return null;
  const [kind, value] = head as [unknown, unknown];
  switch (kind) {
    case replies.done:
      return { kind: 'done', head: value };
    case replies.failed:
      return { kind: 'failed', error: value as ApiErrorWire };
    case replies.moved:
      return Number.isSafeInteger(value) ? { kind: 'moved', placement: value as number } : null;
    default:
      return null;
  }
}

function readAttempt(value: unknown): RouterAsk | null {
  if (!Array.isArray(value)) return null;
  const [of, step, key] = value as [unknown, unknown, unknown];
  const [knownOf, knownStep] = [
    attemptKinds.find((kind) => kind === of),
    attemptSteps.find((each) => each === step),
  ];
  if (knownOf === undefined || knownStep === undefined || typeof key !== 'string') return null;
  return { kind: 'attempt', ask: { of: knownOf, step: knownStep, key } };
}

/** Fields of the shortest form of a call. */
const callFieldsMin = 15;

function isCall(value: unknown): value is ActorCallWire {
  if (!Array.isArray(value) || value.length < callFieldsMin) return false;
  const [operation, tenantId, namespace] = value as [unknown, unknown, unknown];
  const isNamed = typeof operation === 'string' && isKnownCall(operation);
  return isNamed && Number.isSafeInteger(tenantId) && typeof namespace === 'string';
}
