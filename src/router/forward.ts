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
import type { RequestName } from '../peers/request-names.ts';
import type { BodyRoom } from './body-room.ts';
import { type CallBudgets, callKindOf } from './call-budgets.ts';
import type { Deliver, Delivery } from './delivery.ts';
import type { ForwardMetrics, ForwardOutcome } from './forward-metrics.ts';
import type { KnownMembers } from './members.ts';
import { callAsk, readReply } from './peer-messages.ts';
import { type FailedTry, type NextStep, planForward } from './plan-forward.ts';

export interface ForwardParts {
  readonly members: KnownMembers;
  readonly peers: Pick<Peers, 'call' | 'newName' | 'cancel' | 'thirdBeside' | 'reachability' | 'isSilent'>;
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

/** One try: a request to one process, of which copies may be under way, by several ways. */
class Try {
  readonly logId: string;
  readonly placement: number;
  readonly wentByThird: boolean;
  /** What all copies are called. */
  readonly name: RequestName;
  /** Copies that have not ended. */
  underWay = 0;
  /** Copies that were sent after all before them had ended. */
  copies = 0;
  /** When bytes of it had left, and no copy was under way any more, for the first time; null where that was never so. */
  lostAtMs: number | null = null;
  isLost = false;
  isOver = false;
  readonly deliveries: PeerDelivery[] = [];

  constructor(
    name: RequestName,
    { logId, placement, wentByThird }: Pick<Try, 'logId' | 'placement' | 'wentByThird'>,
  ) {
    this.name = name;
    this.logId = logId;
    this.placement = placement;
    this.wentByThird = wentByThird;
  }
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
    this.#send(null);
  }

  /** Begins to forward a call of which an actor of this server has found that its data moved with this placement. */
  beginMoved(placement: number): void {
    this.#failed(neverSent(noPlacement), { kind: 'moved', placement });
    this.#moves = 0;
  }

  cancel(): void {
    this.#cancelled = true;
    const made = this.#try;
    if (this.#here !== null) this.#here.cancel();
    else if (made !== null && made.underWay > 0) this.#cancelCopies(made);
    else if (this.#stopWaiting !== null) {
      this.#stopWaiting();
      this.#stopWaiting = null;
      if (made?.isLost === true) this.#end({ kind: 'lost', isForgotten: false }, null);
      else this.#fail(moving());
    }
  }

  #cancelCopies({ deliveries }: Try): void {
    for (const delivery of deliveries) this.#parts.peers.cancel(delivery);
  }

  /** `byThird`: null where a third server is asked only if the line to the owner is silent. */
  #send(byThird: boolean | null): void {
    const { members, peers } = this.#parts;
    const { call } = this.#asked;
    const { owners, logs } = members.now;
    const owner = members.ownerOf(call.tenantId, call.namespace);
    if (owner === owners.self) return this.#deliverHere();
    const logId = owner === null ? undefined : logs.get(owner);
    const { placement } = owners;
    if (logId === undefined) {
      endUnread(this.#asked.body);
      return this.#failed(neverSent(placement), { kind: 'unreachable' });
    }
    const avoids = byThird === null && peers.isSilent(logId);
    const wentByThird = byThird === true || (avoids && !isStream(this.#asked.body) && this.#hasThird(logId));
    this.#sendCopy(new Try(peers.newName(), { logId, placement, wentByThird }), wentByThird);
  }

  #hasThird(logId: string): boolean {
    return logId !== '' && this.#parts.peers.thirdBeside(logId) !== null;
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

  #sendCopy(made: Try, byThird: boolean): void {
    const { budgets, peers } = this.#parts;
    const { call, body } = this.#asked;
    const { logId, placement, name } = made;
    const via = byThird ? peers.thirdBeside(logId) : null;
    const kind = callKindOf(call.operation);
    const bytes = countedBytes(body);
    this.#try = made;
    made.underWay++;
    if (!budgets.take(logId, kind, bytes)) {
      endUnread(body);
      return this.#copyFailed(made, { kind: 'full' });
    }
    const now = this.#callNow();
    const release = () => budgets.release(logId, kind, bytes);
    const deadlineMs = now.deadlineMs + (isStream(body) ? limits.forwardedFileMs : limits.forwardLateMs);
    const ask = { head: callAsk(actorCallToWire(now)), body, deadlineMs, placement, name };
    const delivery = peers.call(
      logId,
      via === null ? ask : { ...ask, via },
      (answer) => {
        release();
        this.#answered(made, answer);
      },
      (error) => {
        release();
        this.#copyFailed(made, failedTryOf(error), error);
      },
      byThird ? undefined : () => this.#silent(made),
    );
    if (delivery === null) return;
    made.deliveries.push(delivery);
    if (this.#cancelled && !made.isOver) peers.cancel(delivery);
  }

  /** Sends a copy another way, beside the one that waits: whichever comes first is done, and the answer of that is both's. */
  #silent(made: Try): void {
    const isAlone = this.#try === made && !made.isOver && made.underWay === 1;
    if (!isAlone || this.#cancelled || isStream(this.#asked.body) || !this.#hasThird(made.logId)) return;
    this.#parts.metrics.repeated('silent');
    this.#sendCopy(made, true);
  }

  /** Where a copy is still under way, it may yet be answered. */
  #copyFailed(made: Try, failed: FailedTry, error: PeerCallError | null = null): void {
    made.underWay--;
    if (failed.kind === 'lost') made.isLost = true;
    if (made.isOver) return;
    const isForgotten = failed.kind === 'lost' && failed.isForgotten;
    // A read that was answered on a way that says nothing any more is better read again.
    const isReadAgain = isForgotten && this.#does === 'read';
    if (made.underWay > 0 && !isReadAgain) return;
    if (made.underWay > 0) this.#cancelCopies(made);
    if (!made.isLost) return this.#failed(made, failed, error);
    made.lostAtMs ??= this.#parts.clock.monotonic();
    this.#failed(made, { kind: 'lost', isForgotten }, failed.kind === 'lost' ? error : null);
  }

  #answered(made: Try, { head, body }: PeerAnswer): void {
    made.underWay--;
    if (made.isOver) {
      if (body !== null && !(body instanceof Uint8Array)) body.close();
      return;
    }
    made.isOver = true;
    if (made.underWay > 0) this.#cancelCopies(made);
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
    if (reply === null) return this.#failed(made, answerGone);
    this.#fail(apiErrorFromWire(reply.error));
  }

  async #read(made: Try, head: unknown, body: IncomingBody): Promise<void> {
    const { owner } = this.#asked.call.caller;
    let whole: Awaited<ReturnType<BodyRoom['read']>>;
    try {
      whole = await this.#parts.room.read(body, { owner, copies: 1 });
    } catch {
      return this.#failed(made, answerGone);
    }
    if (whole === null) {
      // What it did is done, and cannot be told.
      if (this.#does === 'write') return this.#failed(made, answerGone);
      return this.#failed(made, { kind: 'full' });
    }
    this.#count('answered');
    // From here on it is counted by whoever sends it to the client.
    whole.hold.release();
    this.#asked.answer({ head, body: whole.bytes });
  }

  #failed(made: Try, failed: FailedTry, error: PeerCallError | null = null): void {
    const { peers, members, metrics, clock } = this.#parts;
    const { call } = this.#asked;
    const { logId } = made;
    const now = clock.monotonic();
    const tookMs = now - this.#beganMs;
    const waitsMs = now - (made.lostAtMs ?? this.#beganMs);
    const reached = peers.reachability(logId);
    const next = planForward(failed, {
      does: this.#does,
      placement: made.placement,
      copies: made.copies,
      isGone: reached === null || reached.refusedSinceMs !== null,
      moves: this.#moves,
      losses: this.#losses,
      wentByThird: made.wentByThird,
      hasThird: this.#hasThird(logId),
      waitMsLeft: Math.min(limits.handoverWaitMs - waitsMs, call.deadlineMs - tookMs),
      isRepeatable: !isStream(this.#asked.body),
      isWanted: !this.#cancelled && tookMs < call.deadlineMs,
    });
    if (failed.kind === 'moved') this.#moves++;
    if (failed.kind === 'lost') this.#losses++;
    // What waits may be cancelled, and then it matters whether it may have been done.
    if (next.kind !== 'copy') made.isOver = true;
    switch (next.kind) {
      case 'fail':
        return this.#end(failed, error);
      case 'send':
        metrics.repeated(next.byThird ? 'third' : 'lost');
        return this.#send(next.byThird ? true : null);
      case 'copy':
        return this.#copyLater(made, next);
      case 'wait':
        this.#try = null;
        this.#stopWaiting = members.until(
          ({ owners }) => owners.placement >= next.placement,
          next.ms,
          (how) => {
            this.#stopWaiting = null;
            if (how === 'full' || (how === 'over' && next.otherwise === 'fail'))
              return this.#end(failed, error);
            metrics.repeated(failed.kind === 'moved' ? 'moved' : 'unreachable');
            // A third that does not reach it either leaves its own line, be it slow.
            this.#send(made.wentByThird ? false : null);
          },
        );
    }
  }

  #copyLater(made: Try, { byThird, afterMs }: NextStep & { readonly kind: 'copy' }): void {
    const send = () => {
      this.#stopWaiting = null;
      made.copies++;
      this.#parts.metrics.repeated('copy');
      this.#sendCopy(made, byThird);
    };
    if (afterMs === 0) send();
    else this.#stopWaiting = this.#parts.clock.after(afterMs, send);
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

function neverSent(placement: number): Try {
  return new Try({ origin: '', sequence: 0 }, { logId: '', placement, wentByThird: false });
}

function isStream(body: SentBody): body is StreamedBody {
  return body !== null && !(body instanceof Uint8Array);
}

/** Bytes that count in the budget of a kind: larger bodies go over a connection of their own, which has its own bound. */
function countedBytes(body: SentBody): number {
  return body === null || isStream(body) || body.byteLength > limits.peerBulkBytesMin ? 0 : body.byteLength;
}

/** An answer came, and is lost: no copy would bring it again. */
const answerGone: FailedTry = { kind: 'lost', isForgotten: true };

function failedTryOf({ outcome, why }: PeerCallError): FailedTry {
  if (outcome === 'lost') return { kind: 'lost', isForgotten: why === 'copy' };
  if (why === 'full') return { kind: 'full' };
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
