/**
 * From the threads that read a file to the one that makes its segment: entries, blocks and columns, in memory that both share. Each reader is a
 * few parts ahead at most: each part that was taken is a credit for another, and the memory of its entries and blocks comes back. Moved memory
 * would do as well, but V8 counts that, and collects for it.
 */
import type { MessagePort } from 'node:worker_threads';
import { ApiError } from '../../protocol/errors.ts';
import { type ApiErrorWire, apiErrorFromWire, apiErrorToWire } from '../../protocol/messages.ts';
import { unreachable } from '../../src/base/assert.ts';
import { sawSharedIn, sharedBriefly, usedBriefly } from '../../src/base/garbage.ts';
import { describeError } from '../../src/base/log.ts';
import type { RowStamp } from '../storage/document-block.ts';
import type { PackedDocuments } from '../storage/document-packer.ts';
import type { FileRange } from './file-ranges.ts';
import { OfAnotherKind } from './import-error.ts';
import { type ImportedRows, joinRows, type ReadRows } from './import-rows.ts';
import { blocksBytes, type PackedBlocks, RowPacker } from './row-packer.ts';
import { batchBytes, type ColumnsChunk, type RowSink, type RowsBatch } from './row-sink.ts';

/** Entries of rows, one after the other, with blocks of documents, or the columns of rows. */
export type ImportPart =
  | {
      readonly kind: 'rows';
      readonly bytes: Uint8Array;
      readonly rowCount: number;
      /** Blocks of the rows so far, each of which comes once, all in one memory; a range ends with all of its rows in blocks. */
      readonly blocks: readonly PackedDocuments[];
      /** The memory of the blocks. */
      readonly memory: ArrayBufferLike;
    }
  | ({ readonly kind: 'chunk' } & ColumnsChunk);

type ReaderMessage =
  | ImportPart
  /** Begins a range: what the reader sends next is of it. */
  | { readonly kind: 'range'; readonly number: number }
  /** Says that the reader has found no other range; `rangeCount` is how many all readers have taken. */
  | { readonly kind: 'end'; readonly read: ReadRows; readonly rangeCount: number }
  /** Says that a value is not of its column's kind: all of the file has to be read anew. */
  | { readonly kind: 'again' }
  | { readonly kind: 'failed'; readonly error: ApiErrorWire };

interface PartTaken {
  /** The memory of entries and of blocks that nobody uses any more, for the next ones. */
  readonly buffers: readonly ArrayBufferLike[];
}

/** Each has 2 MB of entries and as much memory for blocks, now and then a chunk's columns. */
const partsAheadMax = 8;

/** The reader's end of a port: sends entries, blocks and columns of the rows that it reads. */
export class PartsSender implements RowSink {
  readonly #port: MessagePort;
  readonly #packer: RowPacker;
  /** Memory that came back, for batches and for blocks. */
  readonly #spare: ArrayBufferLike[] = [];
  readonly #spareForBlocks: ArrayBufferLike[] = [];
  #ahead = 0;
  #wake = () => {};
  #hasBegun = false;
  #isOver = false;

  constructor(port: MessagePort, stamp: RowStamp) {
    this.#port = port;
    this.#packer = new RowPacker(stamp);
    port.on('message', ({ buffers }: PartTaken) => {
      for (const buffer of buffers) {
        if (buffer.byteLength === batchBytes) this.#spare.push(buffer);
        else if (buffer.byteLength === blocksBytes) this.#spareForBlocks.push(buffer);
      }
      this.#ahead--;
      this.#wake();
    });
    // The other thread has all that it wants, or has failed, and says so to who asked for it.
    port.on('close', () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  batchBuffer(bytes: number): ArrayBufferLike {
    if (bytes > batchBytes) return sharedBriefly(bytes).buffer;
    return this.#spare.pop() ?? sharedBriefly(batchBytes).buffer;
  }

  /** Whether the rows of a range were begun. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  async range({ number, firstRow }: Pick<FileRange, 'number' | 'firstRow'>): Promise<void> {
    await this.#endRange();
    this.#hasBegun = true;
    this.#packer.begin(firstRow);
    await this.#send({ kind: 'range', number });
  }

  async rows({ buffer, rowCount }: RowsBatch): Promise<void> {
    await this.#sendRows(buffer, rowCount, this.#packer.pack(buffer, rowCount, this.#blocksBuffer()));
  }

  async chunk(chunk: ColumnsChunk): Promise<void> {
    await this.#send({ kind: 'chunk', ...chunk });
  }

  async end(read: ReadRows, rangeCount: number): Promise<void> {
    await this.#endRange();
    await this.#send({ kind: 'end', read, rangeCount });
  }

  /** Tells why the file is not read to its end: nothing is sent after it. */
  fail(error: unknown): void {
    this.#port.postMessage(failureOf(error));
  }

  /** Resolves when the other end wants nothing more. */
  async closed(): Promise<void> {
    while (!this.#isOver) await this.#change();
  }

  /** Resolves when the other end has taken all that was sent, or wants nothing more. */
  async taken(): Promise<void> {
    while (this.#ahead > 0 && !this.#isOver) await this.#change();
  }

  #blocksBuffer(): ArrayBufferLike {
    return this.#spareForBlocks.pop() ?? sharedBriefly(blocksBytes).buffer;
  }

  async #endRange(): Promise<void> {
    const last = this.#packer.end(() => this.#blocksBuffer());
    if (last !== null) await this.#sendRows(Buffer.alloc(0), 0, last);
  }

  #sendRows(bytes: Buffer, rowCount: number, { blocks, memory }: PackedBlocks): Promise<void> {
    return this.#send({ kind: 'rows', bytes, rowCount, blocks, memory });
  }

  async #send(message: ReaderMessage): Promise<void> {
    while (this.#ahead >= partsAheadMax && !this.#isOver) await this.#change();
    if (this.#isOver) throw new PartsRefused();
    this.#ahead++;
    this.#port.postMessage(message);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function failureOf(error: unknown): ReaderMessage {
  if (error instanceof OfAnotherKind) return { kind: 'again' };
  const known =
    error instanceof ApiError
      ? error
      : new ApiError('internal', `the file could not be read: ${describeError(error)}`);
  return { kind: 'failed', error: apiErrorToWire(known) };
}

/** Thrown where a part is sent to a thread that wants nothing more: it has all, or has failed. */
export class PartsRefused extends Error {
  override name = 'PartsRefused';
}

/** A reader, as the thread knows it that makes the segment. */
interface Reader {
  readonly port: MessagePort;
  /** Messages of the reader that nobody has taken. */
  readonly waiting: ReaderMessage[];
  hasSent: boolean;
  hasGivenRange: boolean;
  hasEnded: boolean;
  isClosed: boolean;
}

/**
 * Receives the parts of all readers, in the order of the file, whoever has read them. The first reader reads all that no other one does;
 * others may come late, or never.
 */
export class PartsReceiver {
  readonly #readers: readonly Reader[];
  readonly #first: Reader;
  readonly #read: ReadRows[] = [];
  /** The reader whose range is being taken; null between two ranges. */
  #current: Reader | null = null;
  #nextRange = 0;
  #rangeCount = 0;
  #wake = () => {};

  constructor([first, ...others]: readonly [MessagePort, ...MessagePort[]]) {
    this.#first = this.#listen(first);
    this.#readers = [this.#first, ...others.map((port) => this.#listen(port))];
  }

  /**
   * All parts, one after the other; the memory of one is given back before the next one comes. Returns what is known of all rows. Throws what a
   * reader could not do, and `OfAnotherKind`, in the order of the file: of several mistakes the first one is told.
   */
  async *parts(): AsyncGenerator<ImportPart, ImportedRows, void> {
    for (;;) {
      const reader = this.#whoseTurn();
      const part = reader === null ? null : this.#take(reader);
      if (reader !== null && part !== null) {
        yield part;
        giveBack(reader, part.kind === 'rows' ? [part.bytes.buffer, part.memory] : []);
      } else if (reader === null) {
        if (this.#isOver) return joinRows(this.#read);
        if (this.#current === null) this.#throwWhereStuck();
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #listen(port: MessagePort): Reader {
    const reader: Reader = {
      port,
      waiting: [],
      hasSent: false,
      hasGivenRange: false,
      hasEnded: false,
      isClosed: false,
    };
    port.on('message', (message: ReaderMessage) => {
      reader.hasSent = true;
      reader.waiting.push(message);
      this.#wake();
    });
    port.on('close', () => {
      reader.isClosed = true;
      this.#wake();
    });
    return reader;
  }

  /** The reader of whom the next message is to be taken, which is there; null where it has not come yet. */
  #whoseTurn(): Reader | null {
    if (this.#current !== null) return this.#hasSentMore(this.#current) ? this.#current : null;
    for (const reader of this.#readers) {
      const [message] = reader.waiting;
      if (message === undefined) continue;
      if (message.kind !== 'range' || message.number === this.#nextRange) return reader;
    }
    this.#hasSentMore(this.#first);
    return null;
  }

  /** Throws where nothing more will come of one that has not ended. */
  #hasSentMore({ waiting, hasEnded, isClosed }: Reader): boolean {
    if (waiting.length === 0 && isClosed && !hasEnded) throw new Error(endedEarly);
    return waiting.length > 0;
  }

  /** Takes the next message; answers the part that it is, and null of another. */
  #take(reader: Reader): ImportPart | null {
    const message = reader.waiting[0] as ReaderMessage;
    if (message.kind === 'range' && message.number !== this.#nextRange) {
      this.#current = null;
      return null;
    }
    reader.waiting.shift();
    switch (message.kind) {
      case 'chunk':
        sawSharedIn(message.columns, usedBriefly);
        return message;
      case 'rows':
        // Memory of the usual lengths goes back to its reader, who uses it again; any other is garbage soon.
        for (const { byteLength } of [message.bytes.buffer, message.memory])
          if (byteLength !== batchBytes && byteLength !== blocksBytes) usedBriefly(byteLength);
        return message;
      case 'range':
        this.#current = reader;
        this.#nextRange++;
        reader.hasGivenRange = true;
        break;
      case 'end':
        this.#current = null;
        reader.hasEnded = true;
        this.#rangeCount = Math.max(this.#rangeCount, message.rangeCount);
        this.#read.push(message.read);
        break;
      case 'again':
        throw new OfAnotherKind();
      case 'failed':
        // The first one reads what this one would have, or fails as well.
        if (reader.hasGivenRange || reader === this.#first) throw apiErrorFromWire(message.error);
        reader.hasEnded = true;
        break;
      default:
        return unreachable(message);
    }
    giveBack(reader, []);
    return null;
  }

  /** Whether the first reader has ended, and all ranges that were taken have come. */
  get #isOver(): boolean {
    const isUnderWay = this.#readers.some(({ hasSent, hasEnded }) => hasSent && !hasEnded);
    return this.#first.hasEnded && !isUnderWay && this.#nextRange === this.#rangeCount;
  }

  /** Throws where no reader will send what is wanted: each has ended, or waits until parts of others are taken. */
  #throwWhereStuck(): void {
    const isStuck = ({ waiting, hasEnded, isClosed }: Reader) => waiting.length > 0 || hasEnded || isClosed;
    if (this.#readers.every(isStuck)) throw new Error(endedEarly);
  }
}

const endedEarly = 'a thread that reads the file has ended';

function giveBack({ port }: Reader, buffers: readonly ArrayBufferLike[]): void {
  port.postMessage({ buffers } satisfies PartTaken);
}
