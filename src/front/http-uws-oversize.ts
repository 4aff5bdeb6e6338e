/**
 * An answer to heads that the packaged uWebSockets can't take: a Content-Length of ten digits and more. Its parser keeps the
 * length in 30 bits, and cuts the connection in the turn in which the handler was called, with everything that was written.
 *
 * 1. What it does not cut is a connection that has become a WebSocket. So the answer is written, reading is paused, and the
 *    response is upgraded; nothing is read of that socket any more.
 * 2. The upgrade writes a few headers of its own behind what was written. The answer comes in chunks, and ends where its
 *    trailers begin: there those headers are harmless.
 * 3. After a while, in which the client has noticed the answer, the connection is closed.
 *
 * An upgrade needs the app's context, which uWebSockets shows to a handler of an upgrade alone: one connection to ourselves brings it.
 */
import { connect } from 'node:net';
import { ApiError } from '../../protocol/errors.ts';
import type { Deadlines, Waiting } from './http-deadlines.ts';
import type { HttpAnswer } from './http-types.ts';
import type { UwsApp, UwsResponse, UwsSocket } from './http-uws-load.ts';

/** The longest length that its parser takes, in bytes. */
export const declaredBytesMax = 999_999_999;

/** Any key of this form will do: nobody reads what is made of it. */
const webSocketKey = 'AAAAAAAAAAAAAAAAAAAAAA==';
/** How long the connection to ourselves may take, in milliseconds. Without it the connections are cut, as before. */
const contextMsMax = 2_000;

export class OversizeAnswers {
  readonly #deadlines: Deadlines;
  readonly #lingerMs: number;
  readonly #ownPath: string;
  #context: object | null = null;

  /** `ownPath`: one that nobody else asks for. */
  constructor(deadlines: Deadlines, options: { readonly lingerMs: number; readonly ownPath: string }) {
    this.#deadlines = deadlines;
    this.#lingerMs = options.lingerMs;
    this.#ownPath = options.ownPath;
  }

  /** Adds the routes that answer, before the app's other routes. A client's own upgrade is a request like any other. */
  route(app: UwsApp): void {
    app.ws('/*', {
      sendPingsAutomatically: false,
      upgrade: (response, request, context) => {
        if (request.getUrl() !== this.#ownPath) {
          request.setYield(true);
          return;
        }
        this.#context = context;
        response.close();
      },
      open: (socket) => {
        heldBy(socket).hold(socket, this.#deadlines);
      },
      close: (socket) => {
        this.#deadlines.delete(heldBy(socket));
      },
    });
  }

  /** Resolves when such heads can be answered, or can't be. */
  prepare(host: string, port: number): Promise<void> {
    const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
    return new Promise((resolve) => {
      const socket = connect({ host: address, port, timeout: contextMsMax });
      for (const event of ['close', 'error', 'timeout']) {
        socket.once(event, () => {
          socket.destroy();
          resolve();
        });
      }
      socket.write(
        `GET ${this.#ownPath} HTTP/1.1\r\nHost: ours\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${webSocketKey}\r\n\r\n`,
      );
    });
  }

  /** Call in the turn of the request. `head` begins with the status. Answers false where nothing could be written. */
  answer(response: UwsResponse, head: string, body: HttpAnswer['body']): boolean {
    if (this.#context === null) return false;
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('latin1');
    response.pause();
    response.writeStatus(
      `${head}\r\ntransfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0`,
    );
    response.upgrade({ held: new Held(this.#lingerMs) }, webSocketKey, '', '', this.#context);
    return true;
  }
}

/** uWebSockets copies the properties of what is given to an upgrade, and nothing else of it. */
function heldBy(socket: UwsSocket): Held {
  return (socket.getUserData() as { readonly held: Held }).held;
}

/** A connection that was answered and is closed after a while. */
class Held implements Waiting {
  dueMs = 0;
  listed = 0;
  readonly #lingerMs: number;
  #socket: UwsSocket | null = null;

  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs;
  }

  hold(socket: UwsSocket, deadlines: Deadlines): void {
    this.#socket = socket;
    this.dueMs = deadlines.soonMs + this.#lingerMs;
    deadlines.add(this);
  }

  expire(): void {
    this.#socket?.close();
  }
}

export function tooLongToDeclare(): ApiError {
  return new ApiError(
    'too_large',
    `this server takes no Content-Length over ${declaredBytesMax}: send a larger file in chunks ` +
      '("Transfer-Encoding: chunked"), as "tidebase import" does',
  );
}
