import { totalBytes } from './keys.ts';
import {
  type CallOptions,
  type GetOptions,
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

export type CountedOperation = 'get' | 'put' | 'delete' | 'list';

export interface StoreCounts {
  /** Calls, counted when they begin; a `getIfChanged` is a get, a refused put is a put, a stream one put. */
  readonly gets: number;
  readonly puts: number;
  readonly deletes: number;
  readonly lists: number;
  /** Bytes that gets returned. */
  readonly bytesRead: number;
  /** Bytes that puts carried, whether they were stored or not. */
  readonly bytesWritten: number;
}

/** `bytes` are those of a put; 0 otherwise, and for a stream. `key` is the prefix for a list. Called before the store is. */
export type OnStoreCall = (operation: CountedOperation, key: string, bytes: number) => void;

/** Bytes of a stream, as the store takes them. */
export type OnStreamedBytes = (key: string, bytes: number) => void;

/** Called where a call that was counted ended with a StoreError. */
export type OnStoreFailure = (key: string) => void;

type MutableCounts = { -readonly [K in keyof StoreCounts]: number };

/** Counts the calls of the store it wraps, by kind of key. */
export class CountingObjectStore implements ObjectStore {
  readonly #store: ObjectStore;
  readonly #onCall: OnStoreCall | undefined;
  readonly #onStreamed: OnStreamedBytes | undefined;
  readonly #onFailure: OnStoreFailure | undefined;
  #byKind = new Map<string, MutableCounts>();

  constructor(
    store: ObjectStore,
    onCall?: OnStoreCall,
    onStreamed?: OnStreamedBytes,
    onFailure?: OnStoreFailure,
  ) {
    this.#store = store;
    this.#onCall = onCall;
    this.#onStreamed = onStreamed;
    this.#onFailure = onFailure;
  }

  /** Since the start or the last `reset`. */
  total(): StoreCounts {
    const sum = noCounts();
    for (const counts of this.#byKind.values())
      for (const name of Object.keys(sum) as (keyof StoreCounts)[]) sum[name] += counts[name];
    return sum;
  }

  /** By `keyKind`. */
  byKind(): ReadonlyMap<string, StoreCounts> {
    return new Map([...this.#byKind].map(([kind, counts]) => [kind, { ...counts }]));
  }

  reset(): void {
    this.#byKind = new Map();
  }

  async get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    const counts = this.#begin('get', key, 0);
    counts.gets++;
    const object = await this.#watched(key, this.#store.get(key, options));
    counts.bytesRead += object?.bytes.length ?? 0;
    return object;
  }

  async getIfChanged(
    key: string,
    etag: string,
    options?: CallOptions,
  ): Promise<StoredObject | 'unchanged' | null> {
    const counts = this.#begin('get', key, 0);
    counts.gets++;
    const object = await this.#watched(key, this.#store.getIfChanged(key, etag, options));
    if (object !== 'unchanged') counts.bytesRead += object?.bytes.length ?? 0;
    return object;
  }

  putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult> {
    this.#beginPut(key, bytes);
    return this.#watched(key, this.#store.putIfAbsent(key, bytes, options));
  }

  putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult> {
    this.#beginPut(key, bytes);
    return this.#watched(key, this.#store.putIfMatch(key, bytes, etag, options));
  }

  putStream(key: string, chunks: AsyncIterable<Uint8Array>, options?: CallOptions): Promise<StreamResult> {
    const counts = this.#begin('put', key, 0);
    counts.puts++;
    const onBytes = (bytes: number) => {
      counts.bytesWritten += bytes;
      this.#onStreamed?.(key, bytes);
    };
    return this.#watched(key, this.#store.putStream(key, counted(chunks, onBytes), options));
  }

  listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    this.#begin('list', prefix, 0).lists++;
    return this.#watched(prefix, this.#store.listUploads(prefix, options));
  }

  abortUpload(upload: Upload, options?: CallOptions): Promise<void> {
    this.#begin('delete', upload.key, 0).deletes++;
    return this.#watched(upload.key, this.#store.abortUpload(upload, options));
  }

  delete(key: string, options?: CallOptions): Promise<void> {
    this.#begin('delete', key, 0).deletes++;
    return this.#watched(key, this.#store.delete(key, options));
  }

  list(prefix: string, options: ListOptions): Promise<ListPage> {
    this.#begin('list', prefix, 0).lists++;
    return this.#watched(prefix, this.#store.list(prefix, options));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** The same call; its failure is counted. */
  #watched<T>(key: string, call: Promise<T>): Promise<T> {
    const onFailure = this.#onFailure;
    if (onFailure !== undefined)
      call.catch((error: unknown) => {
        if (error instanceof StoreError) onFailure(key);
      });
    return call;
  }

  #beginPut(key: string, bytes: readonly Uint8Array[]): void {
    const size = totalBytes(bytes);
    const counts = this.#begin('put', key, size);
    counts.puts++;
    counts.bytesWritten += size;
  }

  #begin(operation: CountedOperation, key: string, bytes: number): MutableCounts {
    this.#onCall?.(operation, key, bytes);
    const kind = keyKind(key);
    let counts = this.#byKind.get(kind);
    if (counts === undefined) {
      counts = noCounts();
      this.#byKind.set(kind, counts);
    }
    return counts;
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of chunks) {
    onBytes(chunk.byteLength);
    yield chunk;
  }
}

function noCounts(): MutableCounts {
  return { gets: 0, puts: 0, deletes: 0, lists: 0, bytesRead: 0, bytesWritten: 0 };
}

/**
 * What a key (or a listing's prefix) is for, with the ids left out, as `paths.ts` spells it: `log`, `log/floor`,
 * `log/done`, `log/blob`, `ns/manifest`, `ns/segment`, `ns/deletes`, `tenant/manifest`, `tenant/segment`, `cluster/view`,
 * `cluster/lease`, `account/person`, `account/email`, `account/key`, `probe`; what is not there yet, by its first part.
 */
export function keyKind(key: string): string {
  const parts = key.split('/');
  const [first = ''] = parts;
  const role = parts[rolePlaces[first] ?? 0];
  return role === undefined || role === first || !/^[a-z]+$/.test(role) ? first : `${first}/${role}`;
}

/** Where the word stands that says what the object is; the parts before it are ids. */
const rolePlaces: Readonly<Record<string, number>> = { log: 2, ns: 3, tenant: 3, cluster: 1, account: 1 };
