import { effectOf } from '../../protocol/effect-of.ts';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type ActorCall, actorCallToWire, apiErrorFromWire, movedFromWire } from '../../protocol/messages.ts';
import type { Clock } from '../base/clock.ts';
import type { Message } from '../base/port-channel.ts';
import { type PeerAnswer, PeerCallError } from '../peers/call.ts';
import type { IncomingBody } from '../peers/incoming-body.ts';
import { endUnread, type SentBody, type StreamedBody } from '../peers/message.ts';
import { apiErrorOfPeer, type PeerDelivery, type Peers } from '../peers/peers.ts';
import type { BodyRoom } from './body-room.ts';
import { type CallBudgets, callKindOf } from './call-budgets.ts';
import type { Deliver, Delivery } from './delivery.ts';
import type { ForwardMetrics, ForwardOutcome } from './forward-metrics.ts';
import type { KnownMembers } from './members.ts';
import { callAsk, readReply } from './peer-messages.ts';
import { type FailedTry, planForward } from './plan-forward.ts';

export interface ForwardParts {
  readonly members: KnownMembers;
  readonly peers: Pick<Peers, 'call' | 'cancel' | 'thirdBeside'>;
  /** Hands a call to a thread of this server. */
  readonly here: Deliver;
  readonly budgets: CallBudgets;
  /** Room for answers that other servers owe. */
  readonly room: BodyRoom;
  readonly clock: Clock;
  readonly metrics: ForwardMetrics;
}

export interface ForwardedCall {
  readonly call: ActorCall;
  /** A stream is read once: it is sent to the owner that is known now, or not at all. */
  readonly body: SentBody;
  readonly answer: (message: Message) => void;
  readonly fail: (error: ApiError) => void;
}

/** One try, which has been sent. */
interface Try {
  readonly logId: string;
  readonly placement: number;
  readonly wentByThird: boolean;
  /** Null while it is being made, and where it has failed already. */
  delivery: PeerDelivery | null;
}

/**
 * A call on its way to the server that owns what it is about, with all its tries; plan-forward.ts says what follows each. It ends once: with an
 * answer, or with an error that says whether it may have been done.
 */
export class Forward implements Delivery {
  readonly #parts: ForwardParts;
  readonly #asked: ForwardedCall;
  readonly #beganMs: number;
  #moves = 0;
  #losses = 0;
  #try: Try | null = null;
  /** Set once an actor of this server has it. */
  #here: Delivery | null = null;
  #stopWaiting: (() => void) | null = null;
  #cancelled = false;

  constructor(parts: ForwardParts, asked: ForwardedCall) {
    this.#parts = parts;
    this.#asked = asked;
    this.#beganMs = parts.clock.monotonic();
  }

  begin(): void {
    this.#send(false);
  }

  /** Begins to forward a call of which an actor of this server has found that its data moved with this placement. */
  beginMoved(placement: number): void {
    const never = { logId: '', placement: noPlacement, wentByThird: false, delivery: null };
    this.#failed(never, { kind: 'moved', placement });
    this.#moves = 0;
  }

  cancel(): void {
    this.#cancelled = true;
    const sent = this.#try?.delivery;
    if (this.#here !== null) this.#here.cancel();
    else if (sent !== null && sent !== undefined) this.#parts.peers.cancel(sent);
    else if (this.#stopWaiting !== null) {
      this.#stopWaiting();
      this.#stopWaiting = null;
      this.#fail(moving());
    }
  }

  #send(byThird: boolean): void {
    const { members } = this.#parts;
    const { call } = this.#asked;
    const { owners, logs } = members.now;
    const owner = members.ownerOf(call.tenantId, call.namespace);
    if (owner === owners.self) return this.#deliverHere();
    const logId = owner === null ? undefined : logs.get(owner);
    const { placement } = owners;
    const made: Try = { logId: logId ?? '', placement, wentByThird: byThird, delivery: null };
    if (logId === undefined) {
      endUnread(this.#asked.body);
      this.#failed(made, { kind: 'unreachable' });
    } else this.#sendTo(made);
  }

  #deliverHere(): void {
    const { answer, body } = this.#asked;
    if (isStream(body)) {
      endUnread(body);
      return this.#fail(moving());
    }
    this.#here = this.#parts.here(
      this.#callNow(),
      body,
      (message) => {
        if (movedFromWire(message.head) !== null) return this.#fail(moving());
        this.#count('answered');
        answer(message);
      },
      (error) => this.#fail(error),
    );
  }

  #sendTo(made: Try): void {
    const { budgets, peers } = this.#parts;
    const { call, body } = this.#asked;
    const { logId, wentByThird, placement } = made;
    const via = wentByThird ? peers.thirdBeside(logId) : null;
    const kind = callKindOf(call.operation);
    const bytes = countedBytes(body);
    if (!budgets.take(logId, kind, bytes)) {
      endUnread(body);
      return this.#failed(made, { kind: 'full' });
    }
    this.#try = made;
    const now = this.#callNow();
    const release = () => budgets.release(logId, kind, bytes);
    const deadlineMs = now.deadlineMs + (isStream(body) ? limits.forwardedFileMs : limits.forwardLateMs);
    const ask = { head: callAsk(actorCallToWire(now)), body, deadlineMs, placement };
    const delivery = peers.call(
      logId,
      via === null ? ask : { ...ask, via },
      (answer) => {
        release();
        this.#answered(made, answer);
      },
      (error) => {
        release();
        this.#failed(made, failedTryOf(error), error);
      },
    );
    // Another try may have begun, where this one has failed at once.
    if (this.#try === made) made.delivery = delivery;
    if (this.#cancelled && delivery !== null && this.#try === made) peers.cancel(delivery);
  }

  #answered(made: Try, { head, body }: PeerAnswer): void {
    const reply = readReply(head);
    if (reply?.kind === 'done' && (body === null || body instanceof Uint8Array)) {
      this.#count('answered');
      this.#asked.answer({ head: reply.head, body });
      return;
    }
    if (reply?.kind === 'done') {
      void this.#read(made, reply.head, body as IncomingBody);
      return;
    }
    if (body !== null && !(body instanceof Uint8Array)) body.close();
    if (reply?.kind === 'moved') return this.#failed(made, reply);
    if (reply === null) return this.#failed(made, { kind: 'lost' });
    this.#fail(apiErrorFromWire(reply.error));
  }

  async #read(made: Try, head: unknown, body: IncomingBody): Promise<void> {
    const { owner } = this.#asked.call.caller;
    let whole: Awaited<ReturnType<BodyRoom['read']>>;
    try {
      whole = await this.#parts.room.read(body, { owner, copies: 1 });
    } catch {
      return this.#failed(made, { kind: 'lost' });
    }
    if (whole === null) {
      // What it did is done, and cannot be told.
      if (this.#does === 'write') return this.#failed(made, { kind: 'lost' });
      return this.#failed(made, { kind: 'full' });
    }
    this.#count('answered');
    // From here on it is counted by whoever sends it to the client.
    whole.hold.release();
    this.#asked.answer({ head, body: whole.bytes });
  }

  #failed(made: Try, failed: FailedTry, error: PeerCallError | null = null): void {
    if (this.#try === made) this.#try = null;
    const { peers, members, metrics, clock } = this.#parts;
    const { call } = this.#asked;
    const tookMs = clock.monotonic() - this.#beganMs;
    const next = planForward(failed, {
      does: this.#does,
      placement: made.placement,
      moves: this.#moves,
      losses: this.#losses,
      wentByThird: made.wentByThird,
      hasThird: made.logId !== '' && peers.thirdBeside(made.logId) !== null,
      waitMsLeft: Math.min(limits.handoverWaitMs, call.deadlineMs) - tookMs,
      isRepeatable: !isStream(this.#asked.body),
      isWanted: !this.#cancelled && tookMs < call.deadlineMs,
    });
    if (failed.kind === 'moved') this.#moves++;
    if (failed.kind === 'lost') this.#losses++;
    switch (next.kind) {
      case 'fail':
        return this.#end(failed, error);
      case 'send':
        metrics.repeated(next.byThird ? 'third' : 'lost');
        return this.#send(next.byThird);
      case 'wait':
        this.#stopWaiting = members.until(
          ({ owners }) => owners.placement >= next.placement,
          next.ms,
          (how) => {
            this.#stopWaiting = null;
            if (how === 'full' || (how === 'over' && next.otherwise === 'fail'))
              return this.#end(failed, error);
            metrics.repeated(failed.kind === 'moved' ? 'moved' : 'unreachable');
            this.#send(false);
          },
        );
    }
  }

  #end(failed: FailedTry, error: PeerCallError | null): void {
    switch (failed.kind) {
      case 'moved':
        return this.#fail(moving());
      case 'full':
        return this.#fail(tooMany());
      case 'lost':
        return this.#fail(apiErrorOfPeer(error ?? answerLost(), effectOf(this.#asked.call.operation).lost));
      default:
        return this.#fail(apiErrorOfPeer(error ?? nobodyThere(), 'unavailable'));
    }
  }

  #fail(error: ApiError): void {
    this.#count(outcomeOf(error));
    this.#asked.fail(error);
  }

  #count(outcome: ForwardOutcome): void {
    const { clock, metrics } = this.#parts;
    metrics.forwarded(outcome, (clock.monotonic() - this.#beganMs) / 1_000);
  }

  get #does(): 'read' | 'write' {
    return effectOf(this.#asked.call.operation).does;
  }

  /** The call with what is left of its time. */
  #callNow(): ActorCall {
    const { call } = this.#asked;
    const tookMs = this.#parts.clock.monotonic() - this.#beganMs;
    return tookMs < 1 ? call : { ...call, deadlineMs: Math.max(1, call.deadlineMs - tookMs) };
  }
}

/** A placement that is older than every real one. */
const noPlacement = -1;

function isStream(body: SentBody): body is StreamedBody {
  return body !== null && !(body instanceof Uint8Array);
}

/** Bytes that count in the budget of a kind: larger bodies go over a connection of their own, which has its own bound. */
function countedBytes(body: SentBody): number {
  return body === null || isStream(body) || body.byteLength > limits.peerBulkBytesMin ? 0 : body.byteLength;
}

function failedTryOf({ outcome, isFull }: PeerCallError): FailedTry {
  if (outcome === 'lost') return { kind: 'lost' };
  if (isFull) return { kind: 'full' };
  return { kind: outcome === 'refused' ? 'refused' : 'unreachable' };
}

function outcomeOf({ code }: ApiError): ForwardOutcome {
  if (code === 'write_unknown') return 'unknown';
  return code === 'rate_limited' ? 'full' : 'unavailable';
}

function moving(): ApiError {
  return new ApiError('unavailable', 'this data is moving to another server; nothing was done', {
    retryAfter: 1,
  });
}

function tooMany(): ApiError {
  return new ApiError(
    'rate_limited',
    'too many requests wait for the server that holds this data; nothing was done',
    { retryAfter: 1 },
  );
}

function answerLost(): PeerCallError {
  return new PeerCallError('lost', 'its answer did not come whole');
}

function nobodyThere(): PeerCallError {
  return new PeerCallError('not-sent', 'no server owns it');
}
