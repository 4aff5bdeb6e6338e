/**
 * What the front asks of an HTTP server, whichever one serves. front/http.ts is the door that chooses one.
 *
 * Contract of an exchange, kept by every implementation and checked by one suite (test/contract/http.suite.ts):
 *
 * 1. The handler is called once a request, synchronously, on the event loop. `method`, `path`, `query` and `header`
 *    answer at any time, also after an await and after an abort.
 * 2. Before the handler is called the request head was checked: one `Host` header (400), no two different
 *    `Content-Length` headers, `Transfer-Encoding` absent or exactly `chunked`, not both together (400, closed).
 * 3. `readBody` may be called at most once. It refuses a declared length over the limit before any byte is read (413),
 *    a longer chunked body as soon as it passes the limit (413), and a body that is not complete at its deadline (408);
 *    all three close the connection after the answer. It rejects with `ClientGone` where the client went away.
 * 4. `respond` may be called once; after an abort it does nothing. A request whose handler never responds is answered
 *    503 at the handler deadline. A client that does not read its answer within the write deadline is cut off.
 * 5. A HEAD request gets the headers of the GET and no body.
 */
export interface HttpExchange {
  /** Upper case. */
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  /** As sent, without the question mark; empty where there is none. */
  readonly query: string;
  /** The client's address as text, from the socket. */
  readonly remoteAddress: string;
  /** True once the client went away. */
  readonly aborted: boolean;
  /** The value of a header by its lower-case name, or undefined. Equal names are joined with ", ". */
  header(name: string): string | undefined;
  /** Called once when the client goes away before the answer was written; at once where it already did. */
  onAbort(run: () => void): void;
  /** The whole body as an ArrayBuffer of its own (it may be transferred to another thread). Empty where there is none. */
  readBody(limitBytes: number): Promise<ArrayBuffer>;
  respond(answer: HttpAnswer): void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array | string;
  /** Ends the connection after the answer: for answers given with an unread body. */
  readonly close?: boolean;
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
  /** Milliseconds from head to complete body (server grants more to bodies that keep arriving: see limits.ts). */
  readonly bodyDeadlineMs: number;
  readonly handlerDeadlineMs: number;
  /** Milliseconds that a client may take to read its whole answer. */
  readonly writeDeadlineMs: number;
  readonly handler: HttpHandler;
}

export interface HttpListener {
  readonly port: number;
  /** `uWebSockets.js`, `uws-packaged` or `node:http`. */
  readonly engine: string;
  /** Stops accepting connections; those that are open go on. */
  stopListening(): void;
  /** Ends every connection. */
  close(): Promise<void>;
}
