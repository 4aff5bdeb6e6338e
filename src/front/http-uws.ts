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
 * stay unanswered and are cut after 8 to 12 s, as are idle connections and slow heads; a request that declares a body of ten digits or
 * more is 413 with the packaged version (http-uws-oversize.ts), so that files of 1 GB and more must come in chunks; a head over 4 KB must arrive in one
 * piece with the packaged version (upstream's reads UWS_HTTP_MAX_HEADERS_SIZE); pipelined requests are answered in order
 * only where each is answered within its turn, otherwise the connection is cut, which HTTP allows; a half-closed
 * connection counts as gone; the methods are those that its router knows.
 */
import { STATUS_CODES } from 'node:http';
import { ApiError } from '../../protocol/errors.ts';
import { must } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { BodySlabs } from './collected-body.ts';
import { ExchangeBase, type ListenerShared } from './http-base.ts';
import { BodyIntake } from './http-body.ts';
import { Deadlines } from './http-deadlines.ts';
import {
  addressText,
  assertHeaderText,
  CHUNKED_BODY,
  checkHead,
  errorAnswer,
  isBodiless,
} from './http-guards.ts';
import { Pace } from './http-pace.ts';
import { ClientGone, type HttpAnswer, type HttpListener, type HttpListenOptions } from './http-types.ts';
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
interface Shared extends ListenerShared {
  /** Null where the parser takes any length. */
  readonly oversize: OversizeAnswers | null;
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
    get collectedBytes() {
      return shared.slabs.takenBytes;
    },
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

class UwsExchange extends ExchangeBase<Shared> {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  #response: UwsResponse | null;
  /** True while uWS is inside the call that brought the request: it corks by itself then, and can't abort. */
  #inTurn = true;
  #paused = false;
  #remoteAddress: string | null = null;

  constructor(shared: Shared, response: UwsResponse, request: UwsRequest, headers: readonly string[]) {
    super(shared, headers);
    this.#response = response;
    this.method = request.getCaseSensitiveMethod();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
  }

  get remoteAddress(): string {
    if (this.#remoteAddress === null) {
      if (this.#response === null) return '';
      this.#remoteAddress = addressText(new Uint8Array(this.#response.getRemoteAddress()));
    }
    return this.#remoteAddress;
  }

  protected override takeIn(): BodyIntake {
    return this.intake ?? this.#receive(must(this.#response, 'the response of a request that is handled'));
  }

  protected override awaitRest(intake: BodyIntake): void {
    this.pace = new Pace(this.shared.options.bodyDeadlineMs, this.shared.deadlines.soonMs);
    this.#awaitBody(intake, this.pace);
    if (intake.isHeldUp) this.#pause();
    else this.#resume();
  }

  protected override cut(): void {
    this.#response?.close();
  }

  protected override answer(answer: HttpAnswer): void {
    const response = this.#response;
    if (response === null || this.phase !== 'handling') return;
    const closing = answer.close === true || this.#mustClose();
    // Nobody will ask for the body any more: what still comes of it is thrown away, not collected.
    if (this.#bodyUnread() && this.intake?.waiting === false) this.intake.fail(new ClientGone());
    const head = headText(answer, closing);
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
    if (this.#inTurn) this.#write(response, answer.status, head, body, closing);
    else response.cork(() => this.#write(response, answer.status, head, body, closing));
  }

  /** Checks the head and calls the handler. */
  begin(): void {
    try {
      this.bodyBytes = checkHead(this.headers);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.answerMyself(error);
      return;
    }
    if (this.bodyBytes > declaredBytesMax && this.shared.oversize !== null) {
      this.#refuseLength(this.shared.oversize);
      return;
    }
    this.callHandler();
  }

  /** The parser cuts the connection after this turn. */
  #refuseLength(oversize: OversizeAnswers): void {
    const response = this.#response;
    if (response === null) return;
    const error = tooLongToDeclare();
    const answer = errorAnswer(error, this.requestId);
    if (!oversize.answer(response, headText(answer, true), answer.body)) return;
    this.#finish();
    this.shared.options.onOwnAnswer?.({ requestId: this.requestId, status: error.status });
  }

  /** Called before uWS gets control back: whatever may still happen to this exchange is registered here. */
  leaveTurn(): void {
    this.#inTurn = false;
    const response = this.#response;
    if (response === null) return;
    response.onAborted(() => this.#onAborted());
    if (this.bodyBytes !== 0 && this.intake === null) this.#receive(response);
    if (this.phase === 'handling' && this.intake?.waiting !== true) this.awaitHandler();
    this.shared.deadlines.add(this);
  }

  protected override keepReceiving(intake: BodyIntake, pace: Pace): void {
    if (!intake.isHeldUp) {
      this.#response?.pause();
      this.#response?.resume();
    }
    this.#awaitBody(intake, pace);
  }

  #onAborted(): void {
    const wasHandling = this.phase === 'handling';
    this.#finish();
    if (wasHandling) this.departure.abandon(this.intake);
  }

  #finish(): void {
    this.phase = 'over';
    this.#response = null;
    this.hasSent();
    if (!this.#inTurn) this.shared.deadlines.delete(this);
  }

  #awaitBody(intake: BodyIntake, pace: Pace): void {
    const { soonMs } = this.shared.deadlines;
    pace.moved(intake.receivedBytes, soonMs);
    this.dueMs = Math.min(pace.dueMs, soonMs + nudgeMs);
  }

  #receive(response: UwsResponse): BodyIntake {
    const intake = new BodyIntake(this.bodyBytes, this.shared.slabs, () => {
      if (this.phase !== 'handling') return;
      if (intake.waiting) this.#resume();
      else this.awaitHandler();
    });
    this.intake = intake;
    // What comes of a request that was answered within its turn is thrown away: nobody's part of the memory is taken for it.
    if (this.phase !== 'handling') intake.fail(new ClientGone());
    response.onData((chunk, last) => this.#onData(intake, chunk, last));
    return intake;
  }

  #onData(intake: BodyIntake, chunk: ArrayBuffer, last: boolean): void {
    const wasWaiting = intake.waiting;
    intake.take(new Uint8Array(chunk), last);
    if (wasWaiting) this.pace?.moved(intake.receivedBytes, this.shared.deadlines.soonMs);
    if (this.phase === 'closing') {
      if (last) this.dueMs = 0;
    } else if (wasWaiting) {
      if (!intake.waiting) this.awaitHandler();
      else if (intake.isHeldUp && !last) this.#pause();
    } else if (!last && !this.bodyAsked) this.#pause();
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
    return this.bodyBytes !== 0 && this.intake?.complete !== true;
  }

  #mustClose(): boolean {
    return this.shared.stopping || this.bodyBytes === CHUNKED_BODY || this.#bodyUnread();
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
    this.phase = 'writing';
    const pace = new Pace(this.shared.options.writeDeadlineMs, this.shared.deadlines.soonMs);
    this.pace = pace;
    this.answerBytes = totalBytes;
    this.dueMs = pace.dueMs;
    const ends = totalBytes > body.byteLength;
    response.onWritable((offset) => {
      if (this.phase !== 'writing') return true;
      pace.moved(offset, this.shared.deadlines.soonMs);
      const [taken, done] = response.tryEnd(body.subarray(offset), totalBytes);
      if (done) this.#finish();
      else if (taken && ends) this.#linger();
      return taken;
    });
  }

  #linger(): void {
    this.phase = 'closing';
    this.hasSent();
    this.#resume();
    // Due at the next sweep where nothing is left to read: by then the answer has left our buffers.
    this.dueMs = this.#bodyUnread() ? this.shared.deadlines.soonMs + lingerMs : 0;
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
