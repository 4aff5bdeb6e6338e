import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { NumberMap } from '../base/number-map.ts';
import {
  type Asked,
  askedToWire,
  type CallFailure,
  type CallOutcome,
  type PeerAnswer,
  PeerCallError,
  refusals,
} from './call.ts';
import { frameKinds, type PeerFrame, PeerProtocolError, pings } from './frame.ts';
import type { FrameWriter } from './frame-writer.ts';
import { IncomingBody } from './incoming-body.ts';
import { endUnread, HeadTooLarge, type ReceivedBody, type SentBody } from './message.ts';
import { Messages, type Sending } from './messages.ts';

/** A call and who waits for its end: exactly one of the two is called, once. */
export interface WaitingCall {
  readonly asked: Asked;
  readonly body: SentBody;
  /** When nobody waits any more, by the monotonic clock. */
  readonly deadlineAt: number;
  answered(answer: PeerAnswer): void;
  failed(error: PeerCallError): void;
  /** Calls once at most, before one of the others: the line has become silent while it waits. An answer may still come. */
  readonly silent?: (() => void) | undefined;
}

interface Waiting {
  readonly call: WaitingCall;
  readonly sending: Sending;
  /** Counted against `peerCallBytesMax`. */
  readonly bytes: number;
}

/** The calling side of a connection: it asks, and the other side answers. */
export class CallingSide {
  readonly #writer: FrameWriter;
  readonly #clock: Clock;
  readonly #messages: Messages;
  /** Calls whose answer has not begun. */
  readonly #waiting = new NumberMap<Waiting>();
  #nextId = 1;
  #bytes = 0;
  #closed: string | null = null;
  #leaving = false;
  #stopLooking: (() => void) | null = null;
  readonly #asksPings: boolean;
  #pingsAsked = 0;
  /** Looks since a ping was asked for that has not come; null where none is owed. */
  #looksUnanswered: number | null = null;

  /** `asksPings`: whether the other side answers pings, and nothing large stands before them. */
  constructor(writer: FrameWriter, clock: Clock, asksPings = false) {
    this.#writer = writer;
    this.#clock = clock;
    this.#asksPings = asksPings;
    this.#messages = new Messages(writer, {
      mayBegin: (id) => this.#mayBegin(id),
      came: (id, said, body) => this.#answered(id, said, body),
      aborted: (id) => this.#fail(id, 'lost', 'the other server gave it up'),
      unwanted: () => {},
      sourceFailed: (id) => this.#sourceFailed(id),
    });
  }

  /** Calls that wait for an answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether nothing is under way, either way. */
  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#messages.isIdle;
  }

  /** Whether calls can be made. */
  get takesCalls(): boolean {
    return this.#closed === null && !this.#leaving;
  }

  /** Whether a ping has been owed for so long that the line may be cut. */
  get isSilent(): boolean {
    return this.#looksUnanswered !== null && this.#looksUnanswered >= limits.peerSilentLooksMax;
  }

  /** The other side has answered the ping of this number. */
  pingAnswered(number: number): void {
    if (number === this.#pingsAsked) this.#looksUnanswered = null;
  }

  /** Answers the call's id, for `cancel`; 0 where it has failed already. */
  call(call: WaitingCall): number {
    const refusal = this.#refusalNow();
    if (refusal !== null) return notSent(call, refusal);
    if (this.#waiting.size >= limits.peerCallsMax || this.#bytes >= limits.peerCallBytesMax)
      return notSent(call, 'the other server has too many requests in flight', 'full');
    const id = this.#nextId++;
    try {
      const sending = this.#messages.send(id, askedToWire(call.asked), call.body);
      const bytes = call.body instanceof Uint8Array ? call.body.byteLength : 0;
      this.#waiting.set(id, { call, sending, bytes });
      this.#bytes += bytes;
    } catch (error) {
      if (!(error instanceof HeadTooLarge)) throw error;
      return notSent(call, error.message);
    }
    this.#stopLooking ??= this.#clock.after(limits.peerLookMs, () => this.#look());
    return id;
  }

  /** Nobody waits for the answer any more, which comes all the same. */
  cancel(id: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    if (waiting.sending.hasLeft) this.#writer.send(frameKinds.cancel, id);
    else this.#giveUp(id, 'nobody waits for it any more');
  }

  /** Throws `PeerProtocolError`. */
  take(frame: PeerFrame): void {
    if (this.#messages.take(frame)) return;
    if (frame.kind === frameKinds.refused) this.#refused(frame.id, frame.content);
    else if (frame.kind === frameKinds.bye) this.#leaving = true;
  }

  close(reason: string): void {
    if (this.#closed !== null) return;
    this.#closed = reason;
    this.#stopLooking?.();
    this.#messages.close(reason);
    for (const [id, { sending }] of this.#waiting.entries())
      this.#fail(id, sending.hasLeft ? 'lost' : 'not-sent', reason);
  }

  #refusalNow(): string | null {
    if (this.#closed !== null) return this.#closed;
    return this.#leaving ? 'the other server is leaving' : null;
  }

  #mayBegin(id: number): boolean {
    if (id >= this.#nextId) throw new PeerProtocolError('an answer to what nobody asked');
    return this.#waiting.has(id);
  }

  #answered(id: number, head: unknown, body: ReceivedBody): void {
    const waiting = this.#remove(id);
    if (waiting === null) {
      if (body instanceof IncomingBody) body.close();
      return;
    }
    // A request that was answered before it was read needs no more of its body.
    if (waiting.sending.stop()) this.#writer.send(frameKinds.abort, id);
    waiting.call.answered({ head, body });
  }

  #refused(id: number, content: Uint8Array): void {
    const refusal = refusals[content[0] ?? refusals.length];
    if (refusal === undefined) throw new PeerProtocolError('a refusal without a reason');
    this.#waiting.get(id)?.sending.stop();
    // The first of its name may have been done.
    const error =
      refusal === 'copy'
        ? new PeerCallError('lost', 'a request of this name has come before', 'copy')
        : new PeerCallError('refused', refusal, refusal === 'busy' ? 'full' : null);
    this.#remove(id)?.call.failed(error);
  }

  /** What is left of the body can't be had: its client has gone, say. */
  #sourceFailed(id: number): void {
    const hasLeft = this.#waiting.get(id)?.sending.hasLeft === true;
    this.#fail(id, hasLeft ? 'lost' : 'not-sent', 'its body did not come to its end');
  }

  #fail(id: number, outcome: CallOutcome, reason: string): void {
    this.#remove(id)?.call.failed(new PeerCallError(outcome, reason));
  }

  /** Ends a call from this side. The other one is told where it knows of it. */
  #giveUp(id: number, reason: string): void {
    const sending = this.#waiting.get(id)?.sending;
    if (sending === undefined) return;
    const { hasLeft } = sending;
    if (sending.stop()) this.#writer.send(frameKinds.abort, id);
    if (hasLeft) {
      this.#writer.send(frameKinds.cancel, id);
      this.#writer.send(frameKinds.enough, id);
    }
    this.#fail(id, hasLeft ? 'lost' : 'not-sent', reason);
  }

  #remove(id: number): Waiting | null {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return null;
    this.#waiting.delete(id);
    this.#bytes -= waiting.bytes;
    return waiting;
  }

  #look(): void {
    this.#stopLooking = null;
    const now = this.#clock.monotonic();
    for (const [id, { call }] of this.#waiting.entries())
      if (call.deadlineAt <= now) this.#giveUp(id, 'it took longer than it may');
    if (this.#waiting.size === 0) return;
    if (this.#asksPings) this.#askPing();
    // Whoever hears that it is silent may have ended this side.
    if (this.#closed === null) this.#stopLooking = this.#clock.after(limits.peerLookMs, () => this.#look());
  }

  /** Counted in looks and not in time: a process that slept must first read what came meanwhile. */
  #askPing(): void {
    if (this.#looksUnanswered === null) {
      this.#looksUnanswered = 0;
      this.#writer.send(frameKinds.ping, ++this.#pingsAsked, pings.asked);
      return;
    }
    this.#looksUnanswered++;
    if (this.#looksUnanswered !== limits.peerSilentLooksMax) return;
    for (const [, { call }] of this.#waiting.entries()) call.silent?.();
  }
}

const noId = 0;

function notSent(call: WaitingCall, reason: string, why: CallFailure | null = null): number {
  failUnsent(call, reason, why);
  return noId;
}

/** Ends a call of which nothing has left. Whoever made a stream for it hears that nobody reads it. */
export function failUnsent(call: WaitingCall, reason: string, why: CallFailure | null = null): void {
  call.failed(new PeerCallError('not-sent', reason, why));
  endUnread(call.body);
}
