import type { ApiError } from '../../protocol/errors.ts';
import { assert } from '../base/assert.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { BodySlabs } from './collected-body.ts';
import type { BodyIntake } from './http-body.ts';
import type { Deadlines, Waiting } from './http-deadlines.ts';
import { Departure } from './http-departure.ts';
import { brokenHandler, errorAnswer, evictedBody, headerOf, lateBody, silentHandler } from './http-guards.ts';
import { type Pace, secondsLeftOf } from './http-pace.ts';
import {
  ClientGone,
  type HttpAnswer,
  type HttpExchange,
  type HttpListenOptions,
  type NoteGrowth,
  type TakeChunk,
} from './http-types.ts';

/** `closing`: answered in full, the connection ends once the rest of the body was thrown away. */
export type Phase = 'handling' | 'writing' | 'closing' | 'over';

/** What the exchanges of one listener share. */
export interface ListenerShared {
  readonly options: HttpListenOptions;
  readonly logger: Logger;
  readonly deadlines: Deadlines;
  readonly slabs: BodySlabs;
  stopping: boolean;
}

/**
 * One request and its answer, as far as both HTTP servers keep it alike: what its handler is told, who has read its body, and what
 * happens when it is late. A server's own exchange adds how bytes come and go.
 */
export abstract class ExchangeBase<Shared extends ListenerShared> implements HttpExchange, Waiting {
  readonly requestId: string;
  abstract readonly method: string;
  abstract readonly path: string;
  abstract readonly query: string;
  abstract readonly remoteAddress: string;
  dueMs = 0;
  listed = 0;
  protected readonly shared: Shared;
  protected readonly headers: readonly string[];
  protected phase: Phase = 'handling';
  /** The length that the head declares, as `checkHead` gives it. */
  protected bodyBytes = 0;
  protected bodyAsked = false;
  protected intake: BodyIntake | null = null;
  /** The pace of the body, then of the answer. */
  protected pace: Pace | null = null;
  /** Bytes of the answer that is being written. */
  protected answerBytes = 0;
  protected readonly departure = new Departure();
  #answered = false;
  #mayTakeEffect = false;
  #handlerMs: number | null = null;
  #sent: HttpAnswer['sent'] | null = null;

  /** `headers`: flat, names in lower case, in the order sent. */
  constructor(shared: Shared, headers: readonly string[]) {
    this.requestId = shared.options.nextRequestId();
    this.shared = shared;
    this.headers = headers;
  }

  get aborted(): boolean {
    return this.departure.gone;
  }

  get declaredBytes(): number {
    return this.bodyBytes;
  }

  header(name: string): string | undefined {
    return headerOf(this.headers, name);
  }

  onAbort(run: () => void): void {
    this.departure.onAbort(run);
  }

  readBody(limitBytes: number, grown?: NoteGrowth): Promise<ArrayBuffer> {
    return this.#askForBody(new ArrayBuffer(0), (intake) => intake.read(limitBytes, grown));
  }

  streamBody(limitBytes: number, take: TakeChunk): Promise<number> {
    return this.#askForBody(0, (intake) => intake.stream(limitBytes, take));
  }

  /** Asks for the body once; answers `empty` where the request has none. Rejects with `ClientGone` where the request is over. */
  #askForBody<T>(empty: T, ask: (intake: BodyIntake) => Promise<T>): Promise<T> {
    assert(!this.bodyAsked, () => 'the body of an exchange is read once');
    this.bodyAsked = true;
    if (this.phase !== 'handling') return Promise.reject(new ClientGone());
    if (this.bodyBytes === 0) return Promise.resolve(empty);
    const intake = this.takeIn();
    const body = ask(intake);
    if (intake.waiting) this.awaitRest(intake);
    return body;
  }

  allowHandlerMs(ms: number): void {
    this.#handlerMs = ms;
  }

  mayTakeEffect(): void {
    this.#mayTakeEffect = true;
  }

  secondsLeft(): number {
    const { phase, pace, intake, answerBytes } = this;
    return secondsLeftOf({ phase, pace, intake, answerBytes }, this.shared.deadlines.soonMs);
  }

  evict(): void {
    if (this.phase === 'writing') this.cut();
    else if (this.phase === 'handling' && this.intake?.waiting === true) {
      this.intake.fail(evictedBody());
      this.awaitHandler();
    }
  }

  respond(answer: HttpAnswer): void {
    assert(!this.#answered, () => 'an exchange is answered once');
    this.#sent = answer.sent ?? null;
    this.answer(answer);
    this.#answered = true;
    if (this.phase === 'over' || this.phase === 'closing') this.hasSent();
  }

  expire(): void {
    if (this.phase === 'writing') this.#expireWriting();
    else if (this.phase !== 'handling') this.cut();
    else if (this.intake?.waiting && this.pace !== null) this.#expireBody(this.intake, this.pace);
    else {
      this.answerMyself(silentHandler(this.#mayTakeEffect));
      this.departure.abandon(this.intake);
    }
  }

  #expireBody(intake: BodyIntake, pace: Pace): void {
    const { sweptMs } = this.shared.deadlines;
    if (intake.isHeldUp) pace.restart(sweptMs);
    if (sweptMs < pace.dueMs || pace.kept(sweptMs)) {
      this.keepReceiving(intake, pace);
      return;
    }
    intake.fail(lateBody());
    this.awaitHandler();
  }

  #expireWriting(): void {
    if (this.pace?.kept(this.shared.deadlines.sweptMs)) this.dueMs = this.pace.dueMs;
    else this.cut();
  }

  /** Nothing of the answer is in our memory any more. */
  protected hasSent(): void {
    const sent = this.#sent;
    this.#sent = null;
    sent?.release();
  }

  /** Hands the request to the handler of the listener, and answers for one that throws. */
  protected callHandler(): void {
    try {
      this.shared.options.handler(this);
    } catch (error) {
      const { requestId } = this;
      this.shared.logger.error('the HTTP handler threw', { requestId, error: describeError(error) });
      this.answerMyself(brokenHandler());
    }
  }

  protected answerMyself(error: ApiError): void {
    if (this.phase !== 'handling') return;
    this.answer(errorAnswer(error, this.requestId));
    this.shared.options.onOwnAnswer?.({ requestId: this.requestId, status: error.status });
  }

  protected awaitHandler(): void {
    this.dueMs = this.shared.deadlines.soonMs + (this.#handlerMs ?? this.shared.options.handlerDeadlineMs);
  }

  /** Answers what takes the body in; what has come of it already is in it. */
  protected abstract takeIn(): BodyIntake;
  /** The body was asked for, and not all of it is there. */
  protected abstract awaitRest(intake: BodyIntake): void;
  /** The body comes in at its pace: says when it is due again. */
  protected abstract keepReceiving(intake: BodyIntake, pace: Pace): void;
  /** Writes the answer, unless the request is over. */
  protected abstract answer(answer: HttpAnswer): void;
  /** Ends the connection at once. */
  protected abstract cut(): void;
}
