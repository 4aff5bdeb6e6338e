/**
 * HTTP by node:http, for machines where uWebSockets does not load. The same contract at about half the speed; node's
 * parser refuses most of what `checkHead` refuses, and its refusals are answered in our error shape too.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { BodySlabs } from './collected-body.ts';
import { BodyIntake } from './http-body.ts';
import { Deadlines, type Waiting } from './http-deadlines.ts';
import {
  assertHeaderText,
  brokenHandler,
  checkHead,
  errorAnswer,
  evictedBody,
  headerOf,
  isBodiless,
  lateBody,
  plainAddress,
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

/** How long an unread body is thrown away after a refusal, in milliseconds: enough for a client to notice the answer. */
const lingerMs = 2_000;

const serverOptions: ServerOptions = {
  /** Bytes. Schemas travel in query strings. */
  maxHeaderSize: limits.requestHeadBytesMax,
  /** Milliseconds for a head, and between requests: what uWebSockets does and does not let us change. */
  headersTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  /** Bodies have our own deadline. */
  requestTimeout: 0,
  /** `checkHead` answers in our error shape. */
  requireHostHeader: false,
};

/** An answer is handed to its socket in pieces of so many bytes: of one piece nobody could tell how much of it was read. */
const pieceBytes = 256 * 1024;

/** Sockets with an answer that ends them: node would go on to parse what follows on them. */
const ending = new WeakSet<Socket>();

interface Shared {
  readonly options: HttpListenOptions;
  readonly logger: Logger;
  readonly deadlines: Deadlines;
  readonly slabs: BodySlabs;
  stopping: boolean;
}

/** Rejects where the port is taken. */
export function listenNode(options: HttpListenOptions, logger: Logger, clock: Clock): Promise<HttpListener> {
  const shared: Shared = {
    options,
    logger,
    deadlines: new Deadlines(clock),
    slabs: new BodySlabs(),
    stopping: false,
  };
  const server = createServer(serverOptions);
  server.on('request', (request, response) => new NodeExchange(shared, request, response, false).begin());
  server.on('checkContinue', (request, response) =>
    new NodeExchange(shared, request, response, true).begin(),
  );
  server.on('clientError', (error, socket) => refuseUnparsed(options, error, socket));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => resolve(listenerOf(server, shared)));
  });
}

function listenerOf(server: Server, shared: Shared): HttpListener {
  return {
    engine: 'node:http',
    port: (server.address() as AddressInfo).port,
    stopListening() {
      if (shared.stopping) return;
      shared.stopping = true;
      // The close of node:http would also end connections that are idle at this moment.
      NetServer.prototype.close.call(server);
    },
    async close() {
      this.stopListening();
      server.closeAllConnections();
      server.close();
      shared.deadlines.close();
    },
  };
}

/** What node's parser refuses never becomes a request; it is answered on the bare socket. */
function refuseUnparsed(options: HttpListenOptions, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const requestId = options.nextRequestId();
  const { status, headers, body } = errorAnswer(unparsed(error.code), requestId);
  const head = [`HTTP/1.1 ${status} Refused`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  socket.end(`${head.join('\r\n')}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
  options.onOwnAnswer?.({ requestId, status });
}

function unparsed(code: string | undefined): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError('bad_request', 'The request head is too large.', { status: 431 });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiError('bad_request', 'The request head did not arrive in time.', { status: 408 });
  }
  return new ApiError('bad_request', 'The request is not valid HTTP.');
}

/** `closing`: answered in full, the connection ends once the rest of the body was thrown away. */
type Phase = 'handling' | 'writing' | 'closing' | 'over';

class NodeExchange implements HttpExchange, Waiting {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly remoteAddress: string;
  dueMs = 0;
  readonly #shared: Shared;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #headers: readonly string[];
  readonly #expectsContinue: boolean;
  #phase: Phase = 'handling';
  #answered = false;
  #gone = false;
  #mayTakeEffect = false;
  #handlerMs: number | null = null;
  /** As `checkHead` gives it. */
  #declaredBytes = 0;
  #bodyAsked = false;
  /** Of the body, then of the answer. */
  #pace: Pace | null = null;
  #answerBytes = 0;
  #sent: HttpAnswer['sent'] | null = null;
  #intake: BodyIntake | null = null;
  #abortRuns: (() => void)[] = [];

  constructor(shared: Shared, request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) {
    this.requestId = shared.options.nextRequestId();
    this.#shared = shared;
    this.#request = request;
    this.#response = response;
    this.#expectsContinue = expectsContinue;
    this.#headers = headersOf(request);
    const url = asUtf8(request.url ?? '');
    const mark = url.indexOf('?');
    this.method = request.method ?? '';
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? '' : url.slice(mark + 1);
    this.remoteAddress = plainAddress(request.socket.remoteAddress ?? '');
  }

  get aborted(): boolean {
    return this.#gone;
  }

  get declaredBytes(): number {
    return this.#declaredBytes;
  }

  header(name: string): string | undefined {
    return headerOf(this.#headers, name);
  }

  onAbort(run: () => void): void {
    if (this.#gone) run();
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
    if (this.#phase !== 'handling') return Promise.reject(new ClientGone());
    if (this.#declaredBytes === 0) return Promise.resolve(empty);
    const intake = new BodyIntake(this.#declaredBytes, this.#shared.slabs, () => {
      if (intake.waiting) this.#request.resume();
      else if (this.#phase === 'handling') this.#awaitHandler();
    });
    this.#intake = intake;
    const body = ask(intake);
    if (intake.waiting) this.#receive(intake);
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
    if (this.#phase === 'writing') this.#request.socket.destroy();
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
    if (this.#phase === 'over' || this.#phase === 'closing') this.#hasSent();
  }

  /** Nothing of the answer is in our memory any more. */
  #hasSent(): void {
    const sent = this.#sent;
    this.#sent = null;
    sent?.release();
  }

  /** Checks the head and calls the handler. */
  begin(): void {
    if (ending.has(this.#request.socket)) return;
    this.#response.on('close', () => this.#onClose());
    this.#response.on('error', () => undefined); // 'close' follows and says the same.
    try {
      this.#declaredBytes = checkHead(this.#headers);
      if (!this.path.startsWith('/')) throw new ApiError('bad_request', 'The request target is not a path.');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#answerMyself(error);
      return;
    }
    this.#awaitHandler();
    this.#shared.deadlines.add(this);
    try {
      this.#shared.options.handler(this);
    } catch (error) {
      const { requestId } = this;
      this.#shared.logger.error('the HTTP handler threw', { requestId, error: describeError(error) });
      this.#answerMyself(brokenHandler());
    }
  }

  expire(): void {
    // A pipelined answer that never got its turn hears nothing of the end of its connection.
    if (this.#request.socket.destroyed) this.#onClose();
    else if (this.#phase === 'writing') this.#expireWriting();
    else if (this.#phase !== 'handling') this.#request.socket.destroy();
    else if (this.#intake?.waiting && this.#pace !== null) this.#expireBody(this.#intake, this.#pace);
    else {
      this.#answerMyself(silentHandler(this.#mayTakeEffect));
      this.#abandon();
    }
  }

  #expireBody(intake: BodyIntake, pace: Pace): void {
    const { sweptMs } = this.#shared.deadlines;
    if (intake.isHeldUp) pace.restart(sweptMs);
    if (sweptMs < pace.dueMs || pace.kept(sweptMs)) {
      this.dueMs = pace.dueMs;
      return;
    }
    intake.fail(lateBody());
    this.#awaitHandler();
  }

  #expireWriting(): void {
    const { sweptMs } = this.#shared.deadlines;
    if (this.#pace?.kept(sweptMs)) this.dueMs = this.#pace.dueMs;
    else this.#request.socket.destroy();
  }

  #receive(intake: BodyIntake): void {
    if (this.#expectsContinue) this.#response.writeContinue();
    const pace = new Pace(this.#shared.options.bodyDeadlineMs, this.#shared.deadlines.soonMs);
    this.#pace = pace;
    this.dueMs = pace.dueMs;
    this.#request.on('data', (chunk: Buffer) => {
      const wasWaiting = intake.waiting;
      intake.take(chunk, false);
      if (wasWaiting) pace.moved(intake.receivedBytes, this.#shared.deadlines.soonMs);
      if (intake.isHeldUp) this.#request.pause();
      if (wasWaiting && !intake.waiting && this.#phase === 'handling') this.#awaitHandler();
    });
    this.#request.on('end', () => {
      if (this.#phase === 'handling') this.#awaitHandler();
      intake.take(new Uint8Array(0), true);
    });
  }

  #onClose(): void {
    const wasHandling = this.#phase === 'handling';
    this.#phase = 'over';
    this.#hasSent();
    this.#shared.deadlines.delete(this);
    if (wasHandling) this.#abandon();
  }

  /** Nobody waits for the handler's answer any more. */
  #abandon(): void {
    this.#gone = true;
    this.#intake?.fail(new ClientGone());
    const runs = this.#abortRuns;
    this.#abortRuns = [];
    for (const run of runs) run();
  }

  #awaitHandler(): void {
    this.dueMs = this.#shared.deadlines.soonMs + (this.#handlerMs ?? this.#shared.options.handlerDeadlineMs);
  }

  #answerMyself(error: ApiError): void {
    if (this.#phase !== 'handling') return;
    this.#answer(errorAnswer(error, this.requestId));
    this.#shared.options.onOwnAnswer?.({ requestId: this.requestId, status: error.status });
  }

  #answer(answer: HttpAnswer): void {
    if (this.#phase !== 'handling') return;
    const unread = this.#declaredBytes !== 0 && !this.#request.complete;
    const closing = answer.close === true || this.#shared.stopping || unread;
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
    for (const [, value] of answer.headers) assertHeaderText(value);
    if (closing) ending.add(this.#request.socket);
    this.#response.writeHead(answer.status, this.#head(answer, body, closing));
    this.#phase = 'writing';
    const pace = new Pace(this.#shared.options.writeDeadlineMs, this.#shared.deadlines.soonMs);
    this.#pace = pace;
    this.dueMs = pace.dueMs;
    const sent = this.method === 'HEAD' || isBodiless(answer.status) ? noBytes : body;
    this.#answerBytes = sent.byteLength;
    if (unread) this.#endAfterBody(sent);
    else this.#writePieces(sent, 0, (last) => this.#response.end(last));
    this.#shared.deadlines.add(this);
  }

  /** Each piece goes when the one before has left; `end` is given the last one. */
  #writePieces(body: Uint8Array, from: number, end: (last: Uint8Array) => void): void {
    if (body.byteLength - from <= pieceBytes) return end(from === 0 ? body : body.subarray(from));
    this.#response.write(body.subarray(from, from + pieceBytes), () => {
      if (this.#phase !== 'writing') return;
      this.#pace?.moved(from + pieceBytes, this.#shared.deadlines.soonMs);
      this.#writePieces(body, from + pieceBytes, end);
    });
  }

  #head(answer: HttpAnswer, body: Uint8Array, closing: boolean): string[] {
    const head = answer.headers.flat();
    if (!isBodiless(answer.status)) head.push('content-length', String(body.byteLength));
    if (closing) head.push('connection', 'close');
    return head;
  }

  /**
   * The client has its whole answer by the length announced; the connection ends once the unread rest was thrown away.
   * Ending at once would reset the connection, and the reset takes the answer from a client that still sends.
   */
  #endAfterBody(body: Uint8Array): void {
    const written = () => {
      if (this.#phase !== 'writing') return;
      this.#phase = 'closing';
      this.#hasSent();
      this.dueMs = this.#shared.deadlines.soonMs + lingerMs;
    };
    if (body.length === 0) {
      this.#response.flushHeaders();
      written();
    } else this.#writePieces(body, 0, (last) => this.#response.write(last, written));
    this.#request.on('end', () => this.#response.end());
    this.#request.resume();
  }
}

const noBytes = new Uint8Array();

/** Flat, names in lower case, in the order sent. */
function headersOf(request: IncomingMessage): string[] {
  return request.rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : asUtf8(text)));
}

const beyondAscii = /[\x80-\xff]/;

/** node reads heads as Latin-1, uWebSockets as UTF-8; the latter is what clients send. */
function asUtf8(text: string): string {
  return beyondAscii.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text;
}
