import { type FileHandle, mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ReceivedFile } from '../../protocol/messages.ts';
import { ByteGate, type Hold } from '../base/byte-gate.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { randomHex } from '../base/random.ts';
import type { Share } from '../base/share.ts';
import type { Packing } from './body-packing.ts';
import { BodySlabs } from './collected-body.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { HttpExchange, TakeChunk } from './http-types.ts';
import type { IntakeShares } from './intake-shares.ts';
import { Unpacker } from './unpack-body.ts';

/** What may wait for the disk. */
const waitingBytesMax = 8 * 1024 * 1024;

/** A file whose length is not known takes at first, and then always more. */
const unknownBytesStep = 16 * 1024 * 1024;

/** Whose a file is, and how it comes. */
export interface FileTerms {
  readonly share: Share;
  /** What the tenant may store in all; null: no limit. */
  readonly quotaBytes: number | null;
  /** What the body is packed with; null: it is the file itself. */
  readonly packing: Packing | null;
}

/** What a file comes from: a client, or another server that passes a client's on. */
export type FileSource = Pick<HttpExchange, 'declaredBytes' | 'streamBody' | 'secondsLeft' | 'evict'>;

export interface FileReceiverOptions {
  /** Made where it is missing; what is in it at a start is somebody else's to remove. */
  readonly folder: string;
  readonly random: Random;
  readonly clock: Clock;
  /** What all namespaces of a tenant take in the object store, in bytes. */
  readonly storedBytes: (tenantId: number) => Promise<number>;
  /** Holds up who sends more than its part. */
  readonly intake: Pick<IntakeShares, 'came'>;
  /** Hears once of a file that comes and has `importHelpedBytesMin` or more: it is worth getting ready for. */
  readonly fileComes?: (share: Share) => void;
}

/**
 * Turns bodies that no memory has room for into files of the local disk while they come, which is at the client's pace: who
 * reads them has them whole. The client is held up while the disk is slower than it. Places and bytes of the disk are held
 * in gates, by owner: who finds no room waits with the body unread, and who is slow goes first while others wait.
 */
export class FileReceiver {
  readonly #options: FileReceiverOptions;
  readonly #places: ByteGate;
  readonly #disk: ByteGate;
  readonly #slabs = new BodySlabs(limits.fileSlabsKept);

  constructor(options: FileReceiverOptions) {
    const { clock } = options;
    const waitersMax = limits.roomWaitersMax;
    this.#options = options;
    this.#places = new ByteGate({ max: limits.importsAtOnceMax, clock, waitersMax });
    this.#disk = new ByteGate({ max: limits.receivedBytesMax, clock, waitersMax });
  }

  /**
   * Runs work with the body of a source as a file, which is gone afterwards.
   *
   * @throws ApiError 413 for a body over the limit, or one that unpacks to more; 422 where it does not unpack; 507 where it can't fit into what `quotaBytes` leaves of the tenant's quota; 429 where
   * there is no place or no room on the disk within `limits.roomWaitMs`; 503 where the disk is full.
   */
  async withBody<T>(
    source: FileSource,
    whose: FileTerms,
    work: (file: ReceivedFile) => Promise<T>,
  ): Promise<T> {
    const { share } = whose;
    const place = await this.#reserve(this.#places, source, share, 1);
    const holds = [place];
    const path = join(this.#options.folder, `received-${randomHex(this.#options.random, 8)}`);
    try {
      const bytesMax = await this.#bytesWithinQuota(source, whose);
      const declared = source.declaredBytes === CHUNKED_BODY ? unknownBytesStep : source.declaredBytes;
      const room = await this.#reserve(
        this.#disk,
        source,
        share,
        Math.min(declared, limits.importBodyBytesMax),
      );
      holds.push(room);
      const bytes = await this.#receive(source, path, { room, bytesMax, whose });
      // From here on it is the server's pace.
      for (const hold of holds) hold.settle();
      if (bytes === 0) throw new ApiError('bad_request', 'this request needs a file as its body');
      return await work({ path, bytes });
    } finally {
      await rm(path, { force: true });
      for (const hold of holds) hold.release();
    }
  }

  async #reserve(gate: ByteGate, source: FileSource, { owner }: Share, amount: number): Promise<Hold> {
    const hold = await gate.reserveWithin(limits.roomWaitMs, { owner, amount, slow: source });
    if (hold === null) throw busy();
    return hold;
  }

  /**
   * Answers how many bytes a file may have at most that still fits into the tenant's quota. How much it will take is known when its segment
   * is made; here it is only seen that it can't fit.
   */
  async #bytesWithinQuota({ declaredBytes }: FileSource, { share, quotaBytes }: FileTerms): Promise<number> {
    if (quotaBytes === null) return Number.POSITIVE_INFINITY;
    const left = quotaBytes - (await this.#options.storedBytes(share.tenant));
    if (left > 0 && declaredBytes <= left * limits.importPackedMost) return left * limits.importPackedMost;
    const what =
      left > 0
        ? `a file of ${declaredBytes} bytes can't fit into the ${left} bytes that are left of`
        : 'nothing is left of';
    throw quotaFull(`${what} the storage quota of ${quotaBytes} bytes`);
  }

  async #receive(
    source: FileSource,
    path: string,
    {
      room,
      bytesMax,
      whose: { share, packing },
    }: { readonly room: Hold; readonly bytesMax: number; readonly whose: FileTerms },
  ): Promise<number> {
    // Asked for at once: a client that goes away meanwhile is heard of.
    const output = new FileOutput(this.#slabs, async () => {
      await mkdir(this.#options.folder, { recursive: true });
      await refuseFullDisk(this.#options.folder, room.amount);
      return open(path, 'wx');
    });
    let received = 0;
    let isExpected = false;
    const expect = (bytes: number) => {
      if (isExpected || bytes < limits.importHelpedBytesMin) return;
      isExpected = true;
      this.#options.fileComes?.(share);
    };
    if (source.declaredBytes !== CHUNKED_BODY) expect(source.declaredBytes);
    const keep: TakeChunk = (chunk) => {
      received += chunk.byteLength;
      expect(received);
      if (received > bytesMax)
        return Promise.reject(quotaFull(`the file can't fit into what is left of the storage quota`));
      const missing = received - room.amount;
      if (missing > 0 && !room.grow(unknownBytesStep + missing)) return Promise.reject(busy());
      return output.write(chunk);
    };
    const unpacker = packing === null ? null : new Unpacker(packing, keep, this.#options.clock);
    try {
      const take: TakeChunk = unpacker === null ? keep : (chunk) => unpacker.take(chunk);
      await source.streamBody(limits.importBodyBytesMax, (chunk) =>
        bothOf(this.#options.intake.came(share, chunk.byteLength), take(chunk)),
      );
      await unpacker?.end();
      await output.flush();
      return received;
    } finally {
      unpacker?.close();
      await output.close();
    }
  }
}

/** Waits for both; rejects where one does. */
function bothOf(one: Promise<void> | undefined, other: Promise<void> | undefined): Promise<void> | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Promise.all([one, other]).then(() => {});
}

function quotaFull(sentence: string): ApiError {
  return new ApiError('quota_full', `${sentence}; nothing was imported: delete data or upgrade`);
}

async function refuseFullDisk(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - bytes >= limits.diskFreeBytesMin) return;
  throw new ApiError(
    'unavailable',
    "the server can't take a file of this size now: its disk is nearly full; nothing was imported: send a smaller one, or try again later",
    {
      retryAfter: 60,
    },
  );
}

function busy(): ApiError {
  return new ApiError(
    'write_busy',
    'the places and the disk for files that are imported are taken up; nothing was imported: send fewer files at once, or smaller ones',
    { retryAfter: 10 },
  );
}

/** Writes a file slab by slab: what comes is copied into memory that the next files use again. */
class FileOutput {
  readonly #opening: Promise<FileHandle>;
  readonly #slabs: BodySlabs;
  /** The slab that is being filled, and how many of its bytes are; null where nothing has come since the last one was full. */
  #filling: Uint8Array | null = null;
  #filled = 0;
  #waitingBytes = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(slabs: BodySlabs, openFile: () => Promise<FileHandle>) {
    this.#slabs = slabs;
    this.#opening = openFile();
    this.#opening.catch(() => {});
  }

  /** Copies a chunk and has it written. Answers a promise where no more should come until it resolves. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    for (let from = 0; from < chunk.byteLength; ) {
      this.#filling ??= this.#slabs.take();
      const piece = chunk.subarray(from, from + this.#filling.byteLength - this.#filled);
      this.#filling.set(piece, this.#filled);
      this.#filled += piece.byteLength;
      from += piece.byteLength;
      if (this.#filled === this.#filling.byteLength) this.#send();
    }
    return this.#waitingBytes < waitingBytesMax ? undefined : this.#writing;
  }

  /** Resolves when all that came is written. */
  flush(): Promise<void> {
    this.#send();
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#opening.then(
      (file) => file.close(),
      () => {},
    );
  }

  #send(): void {
    const [slab, bytes] = [this.#filling, this.#filled];
    if (slab === null) return;
    this.#filling = null;
    this.#filled = 0;
    this.#waitingBytes += bytes;
    this.#writing = this.#writing.then(() => this.#append(slab, bytes));
    this.#writing.catch(() => {});
  }

  async #append(slab: Uint8Array, bytes: number): Promise<void> {
    try {
      const file = await this.#opening;
      await file.appendFile(slab.subarray(0, bytes));
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      const reason =
        (cause as NodeJS.ErrnoException).code === 'ENOSPC' ? 'its disk is full' : 'its disk fails';
      throw new ApiError(
        'unavailable',
        `the server can't take a file now: ${reason}; nothing was imported: try again later`,
        {
          retryAfter: 60,
          cause,
        },
      );
    }
    this.#slabs.give([slab]);
    this.#waitingBytes -= bytes;
  }
}
