import { must } from '../base/assert.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { assertKey, assertListing, assertRange, concatenate, cutRange, totalBytes } from './keys.ts';
import {
  type CallOptions,
  type GetOptions,
  type ListedObject,
  type ListOptions,
  type ListPage,
  type ListUploadsOptions,
  type ObjectStore,
  type PutResult,
  type StoredObject,
  StoreError,
  type StreamResult,
  type Upload,
  type UploadPage,
} from './object-store.ts';
import { pageOfUploads } from './uploads.ts';

interface Version {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly modifiedAtMs: number;
}

/** The whole contract in memory, without time-outs and failures: the twin that tests and simulations run on. */
export class MemoryObjectStore implements ObjectStore {
  readonly #versions = new Map<string, Version>();
  /** All keys in order; null after a key came or went, until the next listing. */
  #sortedKeys: readonly string[] | null = null;
  readonly #uploads = new Map<string, Upload>();
  #versionsMade = 0;
  #uploadsMade = 0;
  #closed = false;
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    this.#begin('get', key);
    assertRange(options?.range);
    const version = this.#versions.get(key);
    if (version === undefined) return null;
    const { offset, length } = cutRange(options?.range, version.bytes.length);
    const bytes = version.bytes.slice(offset, offset + length);
    return { bytes, etag: version.etag, size: version.bytes.length };
  }

  async getIfChanged(key: string, etag: string): Promise<StoredObject | 'unchanged' | null> {
    this.#begin('get', key);
    return this.#versions.get(key)?.etag === etag ? 'unchanged' : this.get(key);
  }

  async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    this.#begin('create', key);
    if (this.#versions.has(key)) return { kind: 'refused' };
    this.#sortedKeys = null;
    return this.#store(key, bytes);
  }

  async putIfMatch(key: string, bytes: readonly Uint8Array[], etag: string): Promise<PutResult> {
    this.#begin('update', key);
    if (this.#versions.get(key)?.etag !== etag) return { kind: 'refused' };
    return this.#store(key, bytes);
  }

  async putStream(key: string, chunks: AsyncIterable<Uint8Array>): Promise<StreamResult> {
    this.#begin('stream', key);
    if (this.#versions.has(key)) return { kind: 'refused' };
    const uploadId = String(++this.#uploadsMade).padStart(12, '0');
    this.#uploads.set(uploadId, { key, uploadId, startedAtMs: this.#clock.now() });
    const taken: Uint8Array[] = [];
    try {
      for await (const chunk of chunks) {
        this.#assertUploading(key, uploadId);
        taken.push(Uint8Array.from(chunk));
      }
      this.#assertUploading(key, uploadId);
    } finally {
      this.#uploads.delete(uploadId);
    }
    const put = await this.putIfAbsent(key, taken);
    return put.kind === 'refused' ? put : { ...put, size: totalBytes(taken) };
  }

  async listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    this.#assertOpen('list-uploads', prefix);
    assertListing(prefix, { limit: options.limit });
    return pageOfUploads([...this.#uploads.values()], { prefix, after: options.after, limit: options.limit });
  }

  async abortUpload({ key, uploadId }: Upload): Promise<void> {
    this.#begin('abort-upload', key);
    this.#uploads.delete(uploadId);
  }

  async delete(key: string, _options?: CallOptions): Promise<void> {
    this.#begin('delete', key);
    if (this.#versions.delete(key)) this.#sortedKeys = null;
  }

  async list(prefix: string, options: ListOptions): Promise<ListPage> {
    this.#assertOpen('list', prefix);
    assertListing(prefix, options);
    this.#sortedKeys ??= [...this.#versions.keys()].sort();
    const after = options.after ?? '';
    const objects: ListedObject[] = [];
    for (let i = firstAbove(this.#sortedKeys, prefix, after); ; i++) {
      const key = this.#sortedKeys[i];
      if (!key?.startsWith(prefix)) return { objects, more: false };
      if (objects.length === options.limit) return { objects, more: true };
      const { bytes, modifiedAtMs } = must(this.#versions.get(key), key);
      objects.push({ key, size: bytes.length, modifiedAtMs });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #store(key: string, bytes: readonly Uint8Array[]): PutResult {
    const etag = `"${++this.#versionsMade}"`;
    this.#versions.set(key, { bytes: concatenate(bytes), etag, modifiedAtMs: this.#clock.now() });
    return { kind: 'stored', etag };
  }

  #assertUploading(key: string, uploadId: string): void {
    this.#assertOpen('stream', key);
    if (this.#uploads.has(uploadId)) return;
    throw new StoreError('stream', key, 'not-applied', 'failed', {
      cause: new Error('the upload was aborted'),
    });
  }

  #begin(operation: string, key: string): void {
    assertKey(key);
    this.#assertOpen(operation, key);
  }

  #assertOpen(operation: string, key: string): void {
    if (!this.#closed) return;
    throw new StoreError(operation, key, 'not-applied', 'failed', {
      cause: new Error('the store is closed'),
    });
  }
}

/** The place of the first key that is at or above `prefix` and above `after`. */
function firstAbove(keys: readonly string[], prefix: string, after: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle] ?? '';
    if (key < prefix || key <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
