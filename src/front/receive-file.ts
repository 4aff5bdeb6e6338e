import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ReceivedFile } from '../../protocol/messages.ts';
import type { Random } from '../base/random.ts';
import { randomHex } from '../base/random.ts';
import type { HttpExchange } from './http-types.ts';

/**
 * Bodies that no memory has room for become files of the local disk while they come, which is at the client's pace: who reads them
 * has them whole. The client is held up while the disk is slower than it.
 */
/** Written at a time. */
const writeBytes = 1024 * 1024;
/** What may wait for the disk. */
const waitingBytesMax = 8 * 1024 * 1024;

export class FileReceiver {
  readonly #folder: string;
  readonly #random: Random;
  #count = 0;
  /** By tenant: each may have a part of the places, for its client may take hours. */
  readonly #tenants = new Map<number, number>();

  /** `folder` is made where it is missing; what is in it at a start is somebody else's to remove. */
  constructor(folder: string, random: Random) {
    this.#folder = folder;
    this.#random = random;
  }

  /** Runs work with the body of an exchange as a file, which is gone afterwards. Throws ApiError 429 where too many are there. */
  async withBody<T>(
    exchange: HttpExchange,
    tenantId: number,
    work: (file: ReceivedFile) => Promise<T>,
  ): Promise<T> {
    const ofTenant = this.#tenants.get(tenantId) ?? 0;
    if (ofTenant >= limits.importsOfTenantMax) throw busy('this tenant imports');
    if (this.#count >= limits.importsAtOnceMax) throw busy('this server receives');
    this.#tenants.set(tenantId, ofTenant + 1);
    this.#count++;
    const path = join(this.#folder, `received-${randomHex(this.#random, 8)}`);
    try {
      const bytes = await this.#receive(exchange, path);
      if (bytes === 0) throw new ApiError('bad_request', 'this request needs a file as its body');
      return await work({ path, bytes });
    } finally {
      this.#count--;
      this.#leave(tenantId);
      await rm(path, { force: true });
    }
  }

  #leave(tenantId: number): void {
    const left = (this.#tenants.get(tenantId) ?? 1) - 1;
    if (left > 0) this.#tenants.set(tenantId, left);
    else this.#tenants.delete(tenantId);
  }

  async #receive(exchange: HttpExchange, path: string): Promise<number> {
    // Asked for at once: a client that goes away meanwhile is heard of.
    const output = new FileOutput(async () => {
      await mkdir(this.#folder, { recursive: true });
      return open(path, 'wx');
    });
    try {
      const bytes = await exchange.streamBody(limits.importBodyBytesMax, (chunk) => output.write(chunk));
      await output.flush();
      return bytes;
    } finally {
      await output.close();
    }
  }
}

function busy(who: string): ApiError {
  return new ApiError('write_busy', `${who} as many files as it may; nothing was imported`, {
    retryAfter: 10,
  });
}

class FileOutput {
  readonly #opening: Promise<FileHandle>;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(openFile: () => Promise<FileHandle>) {
    this.#opening = openFile();
    this.#opening.catch(() => {});
  }

  /** A promise where no more should come for now. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.byteLength;
    if (this.#waitingBytes < writeBytes) return undefined;
    const written = this.flush();
    if (this.#waitingBytes < waitingBytesMax) return undefined;
    return written;
  }

  flush(): Promise<void> {
    const chunks = this.#waiting;
    this.#waiting = [];
    this.#writing = this.#writing.then(() => this.#append(chunks));
    this.#writing.catch(() => {});
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#opening.then(
      (file) => file.close(),
      () => {},
    );
  }

  async #append(chunks: readonly Uint8Array[]): Promise<void> {
    const bytes = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
    try {
      const file = await this.#opening;
      if (chunks.length > 0) await file.appendFile(Buffer.concat(chunks));
    } catch (cause) {
      const reason =
        (cause as NodeJS.ErrnoException).code === 'ENOSPC' ? 'its disk is full' : 'its disk fails';
      throw new ApiError('unavailable', `the server can't take a file now: ${reason}; nothing was imported`, {
        retryAfter: 60,
        cause,
      });
    }
    this.#waitingBytes -= bytes;
  }
}
