/**
 * HTTP by uWebSockets. What it does not do itself, this file does:
 *
 * 1. A response is touched only while uWS says that it lives: `#response` is null from the end or the abort on.
 * 2. Nothing is buffered for a client that does not read: `tryEnd` and `onWritable` against our own deadline.
 * 3. An answer that ends the connection keeps the response open in uWS's eyes (see `#writeClosing`) until the unread
 *    rest of the body was thrown away or `lingerMs` passed. Closing at once would reset the connection, and the reset
 *    takes the answer from a client that still sends. A further request on it meets uWS's rule that a connection
 *    with an open response is cut when the next head arrives, so nothing smuggled behind a refusal is ever handled.
 * 4. uWS parses chunk sizes loosely, so a chunked request is always the last on its connection.
 * 5. A handler that answers within its turn costs no abort handler, no cork, no closure and no place among the deadlines.
 *
 * What can't be had from outside: requests of HTTP/1.0, in absolute form, with an unsafe character or with over 48 headers
 * stay unanswered and are cut after 10 s, as are idle connections and slow heads; a request that declares a body of ten digits or
 * more is 413 with the packaged version (http-uws-oversize.ts), so that files of 1 GB and more must come in chunks; a head over 4 KB must arrive in one
 * piece with the packaged version (upstream's reads UWS_HTTP_MAX_HEADERS_SIZE); pipelined requests are answered in order
 * only where each is answered within its turn, otherwise the connection is cut, which HTTP allows; a half-closed
 * connection counts as gone; the methods are those that its router knows.
 */
import { STATUS_CODES } from 'node:http';
import { ApiError } from '../../protocol/errors.ts';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { BodySlabs } from './collected-body.ts';
import { BodyIntake } from './http-body.ts';
import { Deadlines, type Waiting } from './http-deadlines.ts';
import {
  addressText,
  assertHeaderText,
  brokenHandler,
  CHUNKED_BODY,
  checkHead,
  errorAnswer,
  evictedBody,
  headerOf,
  isBodiless,
  lateBody,
  silentHandler,
} from './http-guards.ts';
import { Pace } from './http-pace.ts';
import {
  ClientGone,
  type HttpAnswer,
  type HttpExchange,
  type HttpListener,
  type HttpListenOptions,
  type NoteGrowth,
  type TakeChunk,
} from './http-types.ts';
import {
  type LoadedUws,
  packagedEngine,
  type Uws,
  type UwsApp,
  type UwsRequest,
  type UwsResponse,
} from './http-uws-load.ts';
import { declaredBytesMax, OversizeAnswers, tooLongToDeclare } from './http-uws-oversize.ts';

/** How long an unread body is thrown away after a refusal, in milliseconds: enough for a client to notice the answer. */
const lingerMs = 2_000;

/**
 * uWS cuts a body slower than 16 KB/s after 10 s without an answer. A pause and resume starts its count anew, so
 * this often, in milliseconds, keeps our own deadline the only one.
 */
const nudgeMs = 4_000;

/** What the exchanges of one listener share. */
interface Shared {
  readonly options: HttpListenOptions;
  readonly logger: Logger;
  readonly deadlines: Deadlines;
  readonly slabs: BodySlabs;
  /** Null where the parser takes any length. */
  readonly oversize: OversizeAnswers | null;
  stopping: boolean;
}

/** Rejects where the port is taken. */
export function listenUws(
  loaded: LoadedUws,
  options: HttpListenOptions,
  logger: Logger,
  clock: Clock,
): Promise<HttpListener> {
  const { uws, engine } = loaded;
  const deadlines = new Deadlines(clock);
  const ownPath = `/${options.nextRequestId()}`;
  const oversize = engine === packagedEngine ? new OversizeAnswers(deadlines, { lingerMs, ownPath }) : null;
  const shared: Shared = { options, logger, deadlines, slabs: new BodySlabs(), oversize, stopping: false };
  uws._cfg('silent'); // No header that names the server.
  const app = uws.App();
  oversize?.route(app);
  app.any('/*', (response, request) => accept(shared, response, request));
  return new Promise((resolve, reject) => {
    // Without exclusive use a second server on the same port would start and take half of the connections.
    app.listen(options.host, options.port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      if (socket === false) reject(new Error(`cannot listen on ${options.host} port ${options.port}`));
      else {
        const listener = listenerOf({ engine, uws, app, socket, shared });
        if (oversize === null) resolve(listener);
        else void oversize.prepare(options.host, listener.port).then(() => resolve(listener));
      }
    });
  });
}

interface Listening {
  readonly engine: string;
  readonly uws: Uws;
  readonly app: UwsApp;
  readonly socket: object;
  readonly shared: Shared;
}

function listenerOf({ engine, uws, app, socket, shared }: Listening): HttpListener {
  let closed = false;
  return {
    engine,
    port: uws.us_socket_local_port(socket),
    stopListening() {
      if (shared.stopping) return;
      shared.stopping = true;
      uws.us_listen_socket_close(socket);
    },
    async close() {
      this.stopListening();
      if (closed) return;
      closed = true;
      app.close();
      shared.deadlines.close();
    },
  };
}

// uWS calls the visitor of a head synchronously, so one visitor serves all requests: no closure per request.
let visited: string[] = [];
function visit(name: string, value: string): void {
  visited.push(name, value);
}

function accept(shared: Shared, response: UwsResponse, request: UwsRequest): void {
  visited = [];
  request.forEach(visit);
  const exchange = new UwsExchange(shared, response, request, visited);
  try {
    exchange.begin();
  } finally {
    exchange.leaveTurn();
  }
}

/** `closing`: answered in full, the connection ends once the rest of the body was thrown away. */
type Phase = 'handling' | 'writing' | 'closing' | 'over';

class UwsExchange implements HttpExchange, Waiting {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  dueMs = 0;
  readonly #shared: Shared;
  readonly #headers: readonly string[];
  #response: UwsResponse | null;
  #phase: Phase = 'handling';
  /** True while uWS is inside the call that brought the request: it corks by itself then, and can't abort. */
  #inTurn = true;
  #answered = false;
  #gone = false;
  #mayTakeEffect = false;
  #handlerMs: number | null = null;
  /** As `checkHead` gives it. */
  #declaredBytes = 0;
  #bodyAsked = false;
  #intake: BodyIntake | null = null;
  /** Of the body, then of the answer. */
  #pace: Pace | null = null;
  /** Bytes of the answer that is being written, its end included. */
  #answerBytes = 0;
  #sent: HttpAnswer['sent'] | null = null;
  #paused = false;
  #remoteAddress: string | null = null;
  #abortRuns: (() => void)[] | null = null;

  constructor(shared: Shared, response: UwsResponse, request: UwsRequest, headers: readonly string[]) {
    this.requestId = shared.options.nextRequestId();
    this.#shared = shared;
    this.#response = response;
    this.#headers = headers;
    this.method = request.getCaseSensitiveMethod();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
  }

  get aborted(): boolean {
    return this.#gone;
  }

  get declaredBytes(): number {
    return this.#declaredBytes;
  }

  get remoteAddress(): string {
    if (this.#remoteAddress === null) {
      if (this.#response === null) return '';
      this.#remoteAddress = addressText(new Uint8Array(this.#response.getRemoteAddress()));
    }
    return this.#remoteAddress;
  }

  header(name: string): string | undefined {
    return headerOf(this.#headers, name);
  }

  onAbort(run: () => void): void {
    if (this.#gone) run();
    else if (this.#abortRuns === null) this.#abortRuns = [run];
    else this.#abortRuns.push(run);
  }

  readBody(limitBytes: number, grown?: NoteGrowth): Promise<ArrayBuffer> {
    return this.#askForBody(new ArrayBuffer(0), (intake) => intake.read(limitBytes, grown));
  }

  streamBody(limitBytes: number, take: TakeChunk): Promise<number> {
    return this.#askForBody(0, (intake) => intake.stream(limitBytes, take));
  }

  allowHandlerMs(ms: number): void {
    this.#handlerMs = ms;
  }

  /** `empty`: what there is without a body. */
  #askForBody<T>(empty: T, ask: (intake: BodyIntake) => Promise<T>): Promise<T> {
    assert(!this.#bodyAsked, () => 'the body of an exchange is read once');
    this.#bodyAsked = true;
    if (this.#response === null || this.#phase !== 'handling') return Promise.reject(new ClientGone());
    if (this.#declaredBytes === 0) return Promise.resolve(empty);
    const intake = this.#intake ?? this.#receive(this.#response);
    const body = ask(intake);
    if (intake.waiting) {
      this.#pace = new Pace(this.#shared.options.bodyDeadlineMs, this.#shared.deadlines.soonMs);
      this.#awaitBody(intake, this.#pace);
      if (intake.isHeldUp) this.#pause();
      else this.#resume();
    }
    return body;
  }

  mayTakeEffect(): void {
    this.#mayTakeEffect = true;
  }

  secondsLeft(): number {
    const intake = this.#intake;
    const pace = this.#pace;
    if (pace === null) return 0;
    const { soonMs } = this.#shared.deadlines;
    if (this.#phase === 'writing') return pace.secondsLeft(this.#answerBytes, soonMs);
    if (this.#phase !== 'handling' || intake?.waiting !== true || intake.isHeldUp) return 0;
    return pace.secondsLeft(intake.expectedBytes, soonMs);
  }

  evict(): void {
    if (this.#phase === 'writing') this.#response?.close();
    else if (this.#phase === 'handling' && this.#intake?.waiting === true) {
      this.#intake.fail(evictedBody());
      this.#awaitHandler();
    }
  }

  respond(answer: HttpAnswer): void {
    assert(!this.#answered, () => 'an exchange is answered once');
    this.#sent = answer.sent ?? null;
    this.#answer(answer);
    this.#answered = true;
    if (this.#response === null || this.#phase === 'closing') this.#hasSent();
  }

  /** Nothing of the answer is in our memory any more. */
  #hasSent(): void {
    const sent = this.#sent;
    this.#sent = null;
    sent?.release();
  }

  #answerMyself(error: ApiError): void {
    if (this.#phase !== 'handling') return;
    this.#answer(errorAnswer(error, this.requestId));
    this.#shared.options.onOwnAnswer?.({ requestId: this.requestId, status: error.status });
  }

  #answer(answer: HttpAnswer): void {
    const response = this.#response;
    if (response === null || this.#phase !== 'handling') return;
    const closing = answer.close === true || this.#mustClose();
    // Nobody will ask for the body any more: what still comes of it is thrown away, not collected.
    if (this.#bodyUnread() && this.#intake?.waiting === false) this.#intake.fail(new ClientGone());
    const head = headText(answer, closing);
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
    if (this.#inTurn) this.#write(response, answer.status, head, body, closing);
    else response.cork(() => this.#write(response, answer.status, head, body, closing));
  }

  /** Checks the head and calls the handler. */
  begin(): void {
    try {
      this.#declaredBytes = checkHead(this.#headers);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#answerMyself(error);
      return;
    }
    if (this.#declaredBytes > declaredBytesMax && this.#shared.oversize !== null) {
      this.#refuseLength(this.#shared.oversize);
      return;
    }
    try {
      this.#shared.options.handler(this);
    } catch (error) {
      const { requestId } = this;
      this.#shared.logger.error('the HTTP handler threw', { requestId, error: describeError(error) });
      this.#answerMyself(brokenHandler());
    }
  }

  /** The parser cuts the connection after this turn. */
  #refuseLength(oversize: OversizeAnswers): void {
    const response = this.#response;
    if (response === null) return;
    const error = tooLongToDeclare();
    const answer = errorAnswer(error, this.requestId);
    if (!oversize.answer(response, headText(answer, true), answer.body)) return;
    this.#finish();
    this.#shared.options.onOwnAnswer?.({ requestId: this.requestId, status: error.status });
  }

  /** Before uWS gets control back: whatever may still happen to this exchange is registered here. */
  leaveTurn(): void {
    this.#inTurn = false;
    const response = this.#response;
    if (response === null) return;
    response.onAborted(() => this.#onAborted());
    if (this.#declaredBytes !== 0 && this.#intake === null) this.#receive(response);
    if (this.#phase === 'handling' && this.#intake?.waiting !== true) this.#awaitHandler();
    this.#shared.deadlines.add(this);
  }

  expire(): void {
    if (this.#phase === 'writing') this.#expireWriting();
    else if (this.#phase !== 'handling') this.#response?.close();
    else if (this.#intake?.waiting && this.#pace !== null) this.#expireBody(this.#intake, this.#pace);
    else this.#expireHandler();
  }

  #expireBody(intake: BodyIntake, pace: Pace): void {
    const { sweptMs } = this.#shared.deadlines;
    if (intake.isHeldUp) pace.restart(sweptMs);
    if (sweptMs < pace.dueMs || pace.kept(sweptMs)) {
      if (!intake.isHeldUp) {
        this.#response?.pause();
        this.#response?.resume();
      }
      this.#awaitBody(intake, pace);
      return;
    }
    intake.fail(lateBody());
    this.#awaitHandler();
  }

  #expireWriting(): void {
    const { sweptMs } = this.#shared.deadlines;
    if (this.#pace?.kept(sweptMs)) this.dueMs = this.#pace.dueMs;
    else this.#response?.close();
  }

  #expireHandler(): void {
    this.#answerMyself(silentHandler(this.#mayTakeEffect));
    this.#abandon();
  }

  /** Nobody waits for the handler's answer any more. */
  #abandon(): void {
    this.#gone = true;
    this.#intake?.fail(new ClientGone());
    const runs = this.#abortRuns;
    this.#abortRuns = null;
    for (const run of runs ?? []) run();
  }

  #onAborted(): void {
    const wasHandling = this.#phase === 'handling';
    this.#finish();
    if (wasHandling) this.#abandon();
  }

  #finish(): void {
    this.#phase = 'over';
    this.#response = null;
    this.#hasSent();
    if (!this.#inTurn) this.#shared.deadlines.delete(this);
  }

  #awaitHandler(): void {
    this.dueMs = this.#shared.deadlines.soonMs + (this.#handlerMs ?? this.#shared.options.handlerDeadlineMs);
  }

  #awaitBody(intake: BodyIntake, pace: Pace): void {
    const { soonMs } = this.#shared.deadlines;
    pace.moved(intake.receivedBytes, soonMs);
    this.dueMs = Math.min(pace.dueMs, soonMs + nudgeMs);
  }

  #receive(response: UwsResponse): BodyIntake {
    const intake = new BodyIntake(this.#declaredBytes, this.#shared.slabs, () => {
      if (this.#phase !== 'handling') return;
      if (intake.waiting) this.#resume();
      else this.#awaitHandler();
    });
    this.#intake = intake;
    response.onData((chunk, last) => this.#onData(intake, chunk, last));
    return intake;
  }

  #onData(intake: BodyIntake, chunk: ArrayBuffer, last: boolean): void {
    const wasWaiting = intake.waiting;
    intake.take(new Uint8Array(chunk), last);
    if (wasWaiting) this.#pace?.moved(intake.receivedBytes, this.#shared.deadlines.soonMs);
    if (this.#phase === 'closing') {
      if (last) this.dueMs = 0;
    } else if (wasWaiting) {
      if (!intake.waiting) this.#awaitHandler();
      else if (intake.isHeldUp && !last) this.#pause();
    } else if (!last && !this.#bodyAsked) this.#pause();
  }

  /** The handler has not asked for the body yet: what arrived in one piece with the head is kept, the rest waits in the kernel. */
  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#response?.pause();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#response?.resume();
  }

  #bodyUnread(): boolean {
    return this.#declaredBytes !== 0 && this.#intake?.complete !== true;
  }

  #mustClose(): boolean {
    return this.#shared.stopping || this.#declaredBytes === CHUNKED_BODY || this.#bodyUnread();
  }

  #write(response: UwsResponse, status: number, head: string, body: Uint8Array, closing: boolean): void {
    const isHead = this.method === 'HEAD';
    if (isHead || isBodiless(status)) {
      const whole = isBodiless(status) ? head : `${head}\r\ncontent-length: ${body.byteLength}`;
      if (closing) this.#writeClosing(response, whole, null);
      else this.#writeWithoutBody(response, whole);
    } else if (closing) this.#writeClosing(response, head, body);
    else {
      response.writeStatus(head);
      const [, done] = response.tryEnd(body, body.byteLength);
      if (done) this.#finish();
      else this.#writeRest(response, body, body.byteLength);
    }
  }

  #writeWithoutBody(response: UwsResponse, head: string): void {
    response.writeStatus(head);
    response.endWithoutBody();
    this.#finish();
  }

  /**
   * Sends the whole answer and keeps the response open. uWS holds a response for done when as many bytes were written
   * as announced; so the length is announced first, and the bytes are then written as part of one byte more. Without
   * bytes the empty line that ends the head is written by us.
   */
  #writeClosing(response: UwsResponse, head: string, body: Uint8Array | null): void {
    if (body === null || body.byteLength === 0) {
      response.writeStatus(body === null ? `${head}\r\n` : `${head}\r\ncontent-length: 0\r\n`);
      this.#linger();
      return;
    }
    response.writeStatus(head);
    response.tryEnd('', body.byteLength);
    const [taken] = response.tryEnd(body, body.byteLength + 1);
    if (taken) this.#linger();
    else this.#writeRest(response, body, body.byteLength + 1);
  }

  /** Writes on whenever the client has read, until its write deadline. */
  #writeRest(response: UwsResponse, body: Uint8Array, totalBytes: number): void {
    this.#phase = 'writing';
    const pace = new Pace(this.#shared.options.writeDeadlineMs, this.#shared.deadlines.soonMs);
    this.#pace = pace;
    this.#answerBytes = totalBytes;
    this.dueMs = pace.dueMs;
    const ends = totalBytes > body.byteLength;
    response.onWritable((offset) => {
      if (this.#phase !== 'writing') return true;
      pace.moved(offset, this.#shared.deadlines.soonMs);
      const [taken, done] = response.tryEnd(body.subarray(offset), totalBytes);
      if (done) this.#finish();
      else if (taken && ends) this.#linger();
      return taken;
    });
  }

  #linger(): void {
    this.#phase = 'closing';
    this.#hasSent();
    this.#resume();
    // Due at the next sweep where nothing is left to read: by then the answer has left our buffers.
    this.dueMs = this.#bodyUnread() ? this.#shared.deadlines.soonMs + lingerMs : 0;
  }
}

const statusTexts: readonly string[] = Array.from({ length: 600 }, (_, status) =>
  `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
);

/** Status and headers as one text: one call into uWS instead of one for each header. */
function headText(answer: HttpAnswer, closing: boolean): string {
  let text = statusTexts[answer.status] ?? String(answer.status);
  for (const [name, value] of answer.headers) {
    assertHeaderText(value);
    text += `\r\n${name}: ${value}`;
  }
  return closing ? `${text}\r\nconnection: close` : text;
}
