/** An HTTP client that sends exactly the bytes it is given: for what a well-behaved client never sends. */
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** Far longer than a busy machine takes: an answer that is missing ends the wait. */
const answerMsMax = 60_000;

export class RawConnection {
  readonly socket: Socket;
  /** True once the server ended or reset the connection. */
  closed = false;
  /** Grows by doubling: an answer of many megabytes is looked at after each of its pieces. */
  #buffer = Buffer.alloc(4_096);
  #length = 0;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#append(chunk);
      this.#wake();
    });
    socket.on('error', () => undefined);
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.closed = true;
        this.#wake();
      });
    }
  }

  /** Text is sent as Latin-1: one byte a character. */
  send(bytes: string | Uint8Array): void {
    if (this.socket.writable)
      this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Everything received so far. */
  received(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** The complete answers received so far, 1xx left out. `head` says which requests were HEAD, in order. */
  answers(head: readonly boolean[] = []): RawAnswer[] {
    return parseAnswers(this.received(), head);
  }

  /** Waits until so many answers are complete, or the connection is closed, or `timeoutMs` passed; gives what is there. */
  async waitForAnswers(
    count: number,
    timeoutMs = answerMsMax,
    head: readonly boolean[] = [],
  ): Promise<RawAnswer[]> {
    await this.#until(() => this.answers(head).length >= count, timeoutMs);
    return this.answers(head);
  }

  /** True when the server ended the connection within `timeoutMs`. */
  async waitForClose(timeoutMs: number): Promise<boolean> {
    await this.#until(() => false, timeoutMs);
    return this.closed;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(length, this.#buffer.length * 2));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  async #until(done: () => boolean, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!this.closed && !done()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

export function connectRaw(port: number): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    // Half-open, so that a test sees when the server ends and can still go on sending.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(new RawConnection(socket)));
  });
}

/** Answers with a Content-Length, one after the other; stops at the first incomplete one. */
export function parseAnswers(bytes: Buffer, head: readonly boolean[] = []): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let at = 0;
  for (;;) {
    const headEnd = bytes.indexOf('\r\n\r\n', at);
    if (headEnd === -1) return answers;
    const [statusLine = '', ...lines] = bytes.toString('latin1', at, headEnd).split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    at = headEnd + 4;
    if (status < 200) continue;
    const headers = new Map(lines.map((line) => splitHeader(line)));
    const length = head[answers.length] === true ? 0 : Number(headers.get('content-length') ?? 0);
    if (at + length > bytes.length) return answers;
    answers.push({ status, headers, body: bytes.subarray(at, at + length) });
    at += length;
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
