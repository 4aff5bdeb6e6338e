/** What a writer hears whose reader has gone. */
export class PipeClosed extends Error {
  override name = 'PipeClosed';

  constructor() {
    super('nobody reads any more');
  }
}

/**
 * Bytes from one writer to one reader, who work beside each other: the writer is held up while more than `aheadBytesMax`
 * wait. One iteration, by one reader; whoever stops reading closes the pipe.
 */
export class BytePipe implements AsyncIterable<Uint8Array> {
  readonly #aheadBytesMax: number;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #end: { readonly failure: unknown } | null = null;
  #closed = false;
  #wakeReader = () => {};
  #wakeWriter = () => {};

  constructor(aheadBytesMax: number) {
    this.#aheadBytesMax = aheadBytesMax;
  }

  /** The chunk is the reader's to keep. Await a promise before the next call. Throws `PipeClosed`. */
  write(chunk: Uint8Array): void | Promise<void> {
    if (this.#closed) throw new PipeClosed();
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.byteLength;
    this.#wakeReader();
    if (this.#waitingBytes > this.#aheadBytesMax) return this.#room();
  }

  /** No more comes; with a failure, the reader gets it in place of what still waits. */
  end(failure: unknown = null): void {
    this.#end = { failure };
    this.#wakeReader();
  }

  /** Nobody reads any more. */
  close(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#wakeWriter();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (;;) {
        if (this.#end !== null && this.#end.failure !== null) throw this.#end.failure;
        const chunk = this.#waiting.shift();
        if (chunk !== undefined) {
          this.#waitingBytes -= chunk.byteLength;
          if (this.#waitingBytes <= this.#aheadBytesMax) this.#wakeWriter();
          yield chunk;
        } else if (this.#end !== null) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wakeReader = resolve;
          });
        }
      }
    } finally {
      this.close();
    }
  }

  async #room(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
    });
    if (this.#closed) throw new PipeClosed();
  }
}
