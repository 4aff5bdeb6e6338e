import { createGunzip, type Gunzip } from 'node:zlib';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { ZstdStream } from '../base/zstd.ts';
import type { Packing } from './body-packing.ts';
import type { TakeChunk } from './http-types.ts';

const gzipStepBytes = 256 * 1024;

/** Unpacks one stream: `take` resolves when all that a piece holds was passed on, or rejects where that fails. */
interface Stream {
  take(packed: Uint8Array): Promise<void>;
  /** Says that nothing follows; rejects where the stream lacks its end. */
  end(): Promise<void>;
  close(): void;
}

/**
 * Unpacks a body while it comes, and passes it on in pieces of at most 256 KB, each when the one before was taken. What comes of it is
 * bounded by what has come, and by what a file may have, so that a bomb is refused before it has filled anything.
 */
export class Unpacker {
  readonly #packing: Packing;
  readonly #pass: TakeChunk;
  readonly #stream: Stream;
  #packedBytes = 0;
  #bytes = 0;

  constructor(packing: Packing, pass: TakeChunk, clock: Clock) {
    this.#packing = packing;
    this.#pass = pass;
    const take = (chunk: Uint8Array) => this.#passOn(chunk);
    this.#stream = packing === 'gzip' ? new GzipPieces(take) : new ZstdPieces(take, clock);
  }

  /** Takes the next piece of the body. Rejects with ApiError: 413 where it unpacks to too much, 422 where it does not unpack. */
  async take(packed: Uint8Array): Promise<void> {
    this.#packedBytes += packed.byteLength;
    await this.#understood(this.#stream.take(Uint8Array.from(packed)));
  }

  /** Says that the body has ended. Rejects with ApiError 422 where its stream has not. */
  async end(): Promise<void> {
    if (this.#packedBytes > 0) await this.#understood(this.#stream.end());
  }

  close(): void {
    this.#stream.close();
  }

  async #passOn(chunk: Uint8Array): Promise<void> {
    this.#bytes += chunk.byteLength;
    const most = this.#packedBytes * limits.importUnpackedMost + limits.importUnpackedSlackBytes;
    if (this.#bytes > limits.importBodyBytesMax)
      throw tooMuch(`more than ${limits.importBodyBytesMax} bytes: split it`);
    if (this.#bytes > most)
      throw tooMuch(`more than ${limits.importUnpackedMost} times its packed size: send it unpacked`);
    await this.#pass(chunk);
  }

  async #understood(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      const problem = `the body's ${this.#packing} stream ${error.message}`;
      throw new ApiError('invalid', `nothing was imported: ${problem}`, {
        fields: { file: problem },
        cause: error,
      });
    }
  }
}

function tooMuch(what: string): ApiError {
  const problem = `the file unpacks to ${what}`;
  return new ApiError('too_large', `nothing was imported: ${problem}`, {
    fields: { file: problem },
  });
}

/** Thrown where the bytes are no whole stream of their kind. Its message is the rest of a sentence that begins with the stream. */
class Damaged extends Error {
  override name = 'Damaged';
}

const endsEarly = 'ends early: send all of it';

type PassOn = (chunk: Uint8Array) => Promise<void>;

/** Unpacks gzip, on threads that Node has for it. Several members one behind the other are one file. */
class GzipPieces implements Stream {
  readonly #gunzip: Gunzip = createGunzip({ chunkSize: gzipStepBytes });
  readonly #passed: Promise<void>;
  #takenBytes = 0;

  constructor(pass: PassOn) {
    this.#passed = this.#passAll(pass);
    this.#passed.catch(() => {});
  }

  async take(packed: Uint8Array): Promise<void> {
    this.#takenBytes += packed.byteLength;
    const taken = new Promise<void>((resolve, reject) => {
      this.#gunzip.write(packed, (error) => (error ? reject(damaged(error)) : resolve()));
    });
    taken.catch(() => {});
    // It ends early where nothing more is understood: then `end` says so.
    await Promise.race([taken, this.#passed]);
  }

  async end(): Promise<void> {
    this.#gunzip.end();
    await this.#passed;
    // Node reads past what follows the last member, as if it were not there.
    if (this.#gunzip.bytesWritten < this.#takenBytes)
      throw new Damaged('is followed by something else: send the packed file alone');
  }

  close(): void {
    this.#gunzip.destroy();
  }

  async #passAll(pass: PassOn): Promise<void> {
    const chunks = this.#gunzip[Symbol.asyncIterator]();
    for (;;) {
      const next = await chunks.next().catch((error: unknown) => {
        throw damaged(error);
      });
      if (next.done === true) return;
      try {
        await pass(next.value as Uint8Array);
      } catch (error) {
        this.#gunzip.destroy();
        throw error;
      }
    }
  }
}

function damaged(error: unknown): Damaged {
  const isCut = (error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR';
  return new Damaged(isCut ? endsEarly : 'is damaged, or is not gzip: pack the file again', { cause: error });
}

/** Unpacks zstd on this thread, a quarter of a megabyte a turn. */
class ZstdPieces implements Stream {
  readonly #stream = new ZstdStream();
  readonly #pass: PassOn;
  readonly #clock: Clock;

  constructor(pass: PassOn, clock: Clock) {
    this.#pass = pass;
    this.#clock = clock;
  }

  async take(packed: Uint8Array): Promise<void> {
    const pieces = this.#stream.unpack(packed);
    for (;;) {
      const piece = nextPiece(pieces);
      if (piece === null) return;
      await this.#pass(piece);
      await this.#clock.yieldTurn();
    }
  }

  async end(): Promise<void> {
    if (!this.#stream.isWhole) throw new Damaged(endsEarly);
  }

  close(): void {}
}

function nextPiece(pieces: Generator<Uint8Array, void, void>): Uint8Array | null {
  try {
    const next = pieces.next();
    return next.done === true ? null : next.value;
  } catch (error) {
    const needsMore = String(error).includes('too much memory');
    throw new Damaged(
      needsMore
        ? 'needs a window of more than 8 MB: pack it without --long and --ultra'
        : 'is damaged, or is not zstd: pack the file again',
      { cause: error },
    );
  }
}
