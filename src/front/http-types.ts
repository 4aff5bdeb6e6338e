/**
 * What the front asks of an HTTP server, whichever one serves. front/http.ts is the door that chooses one.
 *
 * Contract of an exchange, kept by every implementation and checked by one suite (test/contract/http.suite.ts):
 *
 * 1. The handler is called once a request, synchronously, on the event loop. `method`, `path`, `query` and `header`
 *    answer at any time, also after an await and after an abort. A handler that throws is answered 500.
 * 2. Before the handler is called the request head was checked: one `Host` header, at most one `Content-Length` (digits
 *    alone), `Transfer-Encoding` absent or exactly `chunked`, not both together. Otherwise 400 or, where the parser
 *    itself refuses, a closed connection; nothing that follows on that connection is handled.
 * 3. `readBody` may be called at most once, at once or after an await. It rejects with ApiError: 413 for a declared length
 *    over the limit, before any byte is read; 413 for a longer chunked body as soon as it passes the limit; 408 for a
 *    body that is not complete at its deadline. The handler answers with it. It rejects with `ClientGone` where the
 *    client went away: then no answer is needed.
 * 4. An answer given while a body is not read to its end ends the connection, whatever its status. The client still gets
 *    to read it: what it goes on sending is thrown away for two seconds.
 * 5. `respond` may be called once (a second call is an assertion error); after an abort it does nothing. A request whose
 *    handler never responds is answered 503 (`write_unknown` after `mayTakeEffect`, else `unavailable`) at the handler deadline, which counts from the head or, where the body was
 *    read, from its end; the exchange then counts as aborted. A client that does not read its answer at the least pace
 *    is cut off.
 * 6. A HEAD request gets the headers of the GET, its length too, and no body: answer it as the GET. Statuses 204 and 304 get
 *    neither body nor length.
 * 7. Pipelined requests are answered in order, or the connection is cut (uWebSockets does so where one has to wait).
 * 8. Deadlines are looked at four times a second: never early, late by up to a quarter of a second and more under load.
 *
 * Every answer that the door gives itself (400, 408 of a head, 431, 500, 503) has the shape of `ApiError`, as JSON, and an
 * `X-Request-Id`; `onOwnAnswer` hears of it. What the parser of uWebSockets refuses by itself has neither.
 */
export interface HttpExchange {
  /**
   * What the request is called in its answer and in logs. Always ours: a client's own `X-Request-Id` is not taken over, because
   * an id that anybody may choose is no name: two requests could share it, and it would carry their text into our logs.
   */
  readonly requestId: string;
  /** Upper case. */
  readonly method: string;
  /** The path as it was sent, percent-encoded, without the query. */
  readonly path: string;
  /** The query as it was sent, without the question mark; empty where there is none. */
  readonly query: string;
  /** The client's address as text, from the socket; IPv4 always in its four-part form. Ask before answering: then it may be empty. */
  readonly remoteAddress: string;
  /** True once nobody waits for the handler: the client went away, or the handler deadline passed. */
  readonly aborted: boolean;
  /** Bytes of body that the head declares; -1 where it comes in chunks. */
  readonly declaredBytes: number;
  /** The value of a header by its lower-case name, or undefined. Equal names are joined with ", ". */
  header(name: string): string | undefined;
  /** Called once when the exchange becomes `aborted` before it was answered; at once where it already is. */
  onAbort(run: () => void): void;
  /**
   * The whole body as an ArrayBuffer of its own (it may be transferred to another thread). Empty where there is none. `grown`
   * is told how many bytes there are, whenever more have come; the client is held up while its promise is open, and where that
   * rejects, so does this.
   */
  readBody(limitBytes: number, grown?: NoteGrowth): Promise<ArrayBuffer>;
  /**
   * Reads the body as `readBody` does, but piece by piece, for bodies that no memory has room for; answers how many bytes came.
   * The client is held up while a promise of `take` is open; where it rejects, so does this. A taker copies what it keeps: a
   * piece is only there during the call.
   */
  streamBody(limitBytes: number, take: TakeChunk): Promise<number>;
  /** The handler deadline of this exchange. Before its body is asked for. */
  allowHandlerMs(ms: number): void;
  /** What the handler begins now may be done although it never answers: the door's answer in its place says so. */
  mayTakeEffect(): void;
  /**
   * How long its body will take to come, or its answer to be read, at the client's present pace: 0 where neither is under way
   * or nothing is known yet, infinite where the client has stopped.
   */
  secondsLeft(): number;
  /** Ends what `secondsLeft` is about, because others need the room: the body fails with 408, an answer is cut off. */
  evict(): void;
  respond(answer: HttpAnswer): void;
}

export type NoteGrowth = (bytes: number) => Promise<void> | undefined;
export type TakeChunk = (chunk: Uint8Array) => Promise<void> | undefined;

export interface HttpAnswer {
  readonly status: number;
  /** Values in printable ASCII, else an assertion error. Length, date and connection are the door's own. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The answer's bytes or text, which must not change until they are sent. */
  readonly body: Uint8Array | string;
  /** Ends the connection after the answer: for answers given with an unread body. */
  readonly close?: boolean;
  /** Released once, when the last byte has left our memory, however the exchange ends. */
  readonly sent?: { release(): void };
}

export type HttpHandler = (exchange: HttpExchange) => void;

/** The client closed the connection before the request was complete. Nobody waits for an answer. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

export interface HttpListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /**
   * Milliseconds from `readBody` to the complete body. A body of which 16 KB a second came in that time gets as much time again,
   * so one that keeps this pace never meets it, and one that stops does, however much came before.
   */
  readonly bodyDeadlineMs: number;
  readonly handlerDeadlineMs: number;
  /** Milliseconds that a client may take to read its answer, with more of it for who keeps reading, as above. */
  readonly writeDeadlineMs: number;
  readonly handler: HttpHandler;
  readonly nextRequestId: () => string;
  /** The door itself has answered, in place of the handler or before it was asked. */
  readonly onOwnAnswer?: (answer: OwnAnswer) => void;
}

export interface OwnAnswer {
  readonly requestId: string;
  readonly status: number;
}

export interface HttpListener {
  readonly port: number;
  /** `uWebSockets.js`, `uws-packaged` or `node:http`. */
  readonly engine: string;
  /** Bytes of memory that large bodies lie in while they come. */
  readonly collectedBytes: number;
  /** Stops accepting connections. Those that are open go on and end with their next answer, which says so. */
  stopListening(): void;
  /** Ends every connection. */
  close(): Promise<void>;
}
