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
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { BodySlabs } from './collected-body.ts';
import { ExchangeBase, type ListenerShared } from './http-base.ts';
import { BodyIntake } from './http-body.ts';
import { Deadlines } from './http-deadlines.ts';
import { assertHeaderText, checkHead, errorAnswer, isBodiless, plainAddress } from './http-guards.ts';
import { Pace } from './http-pace.ts';
import type { HttpAnswer, HttpListener, HttpListenOptions } from './http-types.ts';

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

/** Rejects where the port is taken. */
export function listenNode(options: HttpListenOptions, logger: Logger, clock: Clock): Promise<HttpListener> {
  const shared: ListenerShared = {
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

function listenerOf(server: Server, shared: ListenerShared): HttpListener {
  return {
    engine: 'node:http',
    port: (server.address() as AddressInfo).port,
    get collectedBytes() {
      return shared.slabs.takenBytes;
    },
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
    return new ApiError('bad_request', 'the request head is too large', { status: 431 });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiError('bad_request', 'the request head did not arrive in time', { status: 408 });
  }
  return new ApiError('bad_request', 'the request is not valid HTTP');
}

class NodeExchange extends ExchangeBase<ListenerShared> {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly remoteAddress: string;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #expectsContinue: boolean;

  constructor(
    shared: ListenerShared,
    request: IncomingMessage,
    response: ServerResponse,
    expectsContinue: boolean,
  ) {
    super(shared, headersOf(request));
    this.#request = request;
    this.#response = response;
    this.#expectsContinue = expectsContinue;
    const url = asUtf8(request.url ?? '');
    const mark = url.indexOf('?');
    this.method = request.method ?? '';
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? '' : url.slice(mark + 1);
    this.remoteAddress = plainAddress(request.socket.remoteAddress ?? '');
  }

  protected override takeIn(): BodyIntake {
    const intake = new BodyIntake(this.bodyBytes, this.shared.slabs, () => {
      if (intake.waiting) this.#request.resume();
      else if (this.phase === 'handling') this.awaitHandler();
    });
    this.intake = intake;
    return intake;
  }

  protected override keepReceiving(_: BodyIntake, pace: Pace): void {
    this.dueMs = pace.dueMs;
  }

  protected override cut(): void {
    this.#request.socket.destroy();
  }

  /** Checks the head and calls the handler. */
  begin(): void {
    if (ending.has(this.#request.socket)) return;
    this.#response.on('close', () => this.#onClose());
    this.#response.on('error', () => undefined); // 'close' follows and says the same.
    try {
      this.bodyBytes = checkHead(this.headers);
      if (!this.path.startsWith('/')) throw new ApiError('bad_request', 'the request target is not a path');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.answerMyself(error);
      return;
    }
    this.awaitHandler();
    this.shared.deadlines.add(this);
    this.callHandler();
  }

  override expire(): void {
    // A pipelined answer that never got its turn hears nothing of the end of its connection.
    if (this.#request.socket.destroyed) this.#onClose();
    else super.expire();
  }

  protected override awaitRest(intake: BodyIntake): void {
    if (this.#expectsContinue) this.#response.writeContinue();
    const pace = new Pace(this.shared.options.bodyDeadlineMs, this.shared.deadlines.soonMs);
    this.pace = pace;
    this.dueMs = pace.dueMs;
    this.#request.on('data', (chunk: Buffer) => {
      const wasWaiting = intake.waiting;
      intake.take(chunk, false);
      if (wasWaiting) pace.moved(intake.receivedBytes, this.shared.deadlines.soonMs);
      if (intake.isHeldUp) this.#request.pause();
      if (wasWaiting && !intake.waiting && this.phase === 'handling') this.awaitHandler();
    });
    this.#request.on('end', () => {
      if (this.phase === 'handling') this.awaitHandler();
      intake.take(new Uint8Array(0), true);
    });
  }

  #onClose(): void {
    const wasHandling = this.phase === 'handling';
    this.phase = 'over';
    this.hasSent();
    this.shared.deadlines.delete(this);
    if (wasHandling) this.departure.abandon(this.intake);
  }

  protected override answer(answer: HttpAnswer): void {
    if (this.phase !== 'handling') return;
    const unread = this.bodyBytes !== 0 && !this.#request.complete;
    const closing = answer.close === true || this.shared.stopping || unread;
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
    for (const [, value] of answer.headers) assertHeaderText(value);
    if (closing) ending.add(this.#request.socket);
    this.#response.writeHead(answer.status, this.#head(answer, body, closing));
    this.phase = 'writing';
    const pace = new Pace(this.shared.options.writeDeadlineMs, this.shared.deadlines.soonMs);
    this.pace = pace;
    this.dueMs = pace.dueMs;
    const sent = this.method === 'HEAD' || isBodiless(answer.status) ? noBytes : body;
    this.answerBytes = sent.byteLength;
    if (unread) this.#endAfterBody(sent);
    else this.#writePieces(sent, 0, (last) => this.#response.end(last));
    this.shared.deadlines.add(this);
  }

  /** Each piece goes when the one before has left; `end` is given the last one. */
  #writePieces(body: Uint8Array, from: number, end: (last: Uint8Array) => void): void {
    if (body.byteLength - from <= pieceBytes) return end(from === 0 ? body : body.subarray(from));
    this.#response.write(body.subarray(from, from + pieceBytes), () => {
      if (this.phase !== 'writing') return;
      this.pace?.moved(from + pieceBytes, this.shared.deadlines.soonMs);
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
      if (this.phase !== 'writing') return;
      this.phase = 'closing';
      this.hasSent();
      this.dueMs = this.shared.deadlines.soonMs + lingerMs;
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
