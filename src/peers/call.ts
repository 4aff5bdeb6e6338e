import { PeerProtocolError } from './frame.ts';
import type { PeerIdentity } from './hello.ts';
import type { ReceivedBody, SentBody } from './message.ts';
import type { RequestName } from './request-names.ts';

/** What one server asks of another. */
export interface PeerCall {
  /** As it crosses threads. */
  readonly head: unknown;
  /** Handed over. A stream is read only as far as the other server takes it. */
  readonly body: SentBody;
  /** Milliseconds that it may take, from now. */
  readonly deadlineMs: number;
  /** The version of the placement by which the caller chose this server. */
  readonly placement: number;
  /** The log of a third server, which is to pass it on: for a server that this one can't reach itself. */
  readonly via?: string;
  /**
   * What all copies of it are called, which go to one process: where one has come, the next gets its answer, and nothing is done twice.
   * Without, there are no copies.
   */
  readonly name?: RequestName;
}

export interface PeerAnswer {
  readonly head: unknown;
  readonly body: ReceivedBody;
}

/** A call that another server makes. */
export interface ServedCall extends PeerAnswer {
  readonly from: PeerIdentity;
  readonly name: RequestName;
  /** Milliseconds that it may still take, by its caller. */
  readonly deadlineMs: number;
  readonly placement: number;
  /** Calls `run` once if nobody waits for the answer any more, or the caller is gone. The answer is given all the same. */
  onCancel(run: () => void): void;
}

/**
 * Must be called exactly once for each call. `isKept`: a copy of the call that comes later, because this answer was lost, gets it too; such a
 * body is short.
 */
export type PeerRespond = (head: unknown, body?: SentBody, isKept?: boolean) => void;

export interface PeerHandler {
  /** Throws nothing that is not a bug. A body that it takes no interest in, it closes. */
  call(call: ServedCall, respond: PeerRespond): void;
}

/**
 * How a call failed, by what its caller may do:
 *
 * * `not-sent`: no byte of it has left this server. It may go elsewhere.
 * * `refused`: it arrived and was not begun. It may be sent again.
 * * `lost`: bytes of it have left and no answer came. Whether it was done is not known: a write is not sent again, but for copies with its
 *   name, which the same process answers as it answered the first.
 */
export type CallOutcome = 'not-sent' | 'refused' | 'lost';

/** `full`: it was not begun, since there are too many others; `copy`: one of its name has come before, and its answer is not known any more. */
export type CallFailure = 'full' | 'copy';

export class PeerCallError extends Error {
  override name = 'PeerCallError';
  readonly outcome: CallOutcome;
  /** Null where the outcome says it all. */
  readonly why: CallFailure | null;

  constructor(outcome: CallOutcome, message: string, why: CallFailure | null = null) {
    // An answer like others, of which there are many when a server goes; nobody reads the stack.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.outcome = outcome;
    this.why = why;
  }
}

/**
 * Why a request is not begun; `copy`: one of this name has come before, may have been done, and its answer was not kept; `unreachable`: it
 * was to be passed on, and nothing of it was.
 */
export const refusals = ['copy', 'busy', 'leaving', 'unreachable'] as const;
export type PeerRefusal = (typeof refusals)[number];

/** A request as it travels. `to` is the log of the server that it is for; empty: the one that receives it. */
export interface Asked extends Omit<PeerCall, 'body'> {
  readonly name: RequestName;
  readonly to: string;
}

/** One of the two, once. */
export interface PassedOnEvents {
  answered(answer: PeerAnswer): void;
  failed(error: PeerCallError): void;
}

/** Passes a request on to the server whose log it names; the answered function says that nobody waits any more. */
export type PassOn = (asked: Asked, body: SentBody, events: PassedOnEvents) => () => void;

type AskedWire = [
  origin: string,
  sequence: number,
  deadlineMs: number,
  placement: number,
  to: string,
  head: unknown,
];

export function askedToWire({ name, deadlineMs, placement, to, head }: Asked): AskedWire {
  return [name.origin, name.sequence, deadlineMs, placement, to, head];
}

export function askedFromWire(wire: unknown): Asked {
  if (Array.isArray(wire) && wire.length === 6) {
    const [origin, sequence, deadlineMs, placement, to, head] = wire as AskedWire;
    const isText = typeof origin === 'string' && typeof to === 'string';
    const isCounted = Number.isSafeInteger(sequence) && sequence > 0 && Number.isFinite(deadlineMs);
    if (isText && isCounted && Number.isFinite(placement)) {
      return { name: { origin, sequence }, deadlineMs, placement, to, head };
    }
  }
  throw new PeerProtocolError('a request of another shape');
}
