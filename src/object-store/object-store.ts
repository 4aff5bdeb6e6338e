/**
 * Durable bytes under string keys: the one thing that everything else rests on.
 *
 * Contract, kept by every implementation and checked by one suite (test/contract/object-store.suite.ts):
 *
 * 1. A put that resolved is durable and is seen by every later `get` and `list`, from any process.
 * 2. `putIfAbsent` stores only where no object is; of any number of racing calls, in any processes, exactly one wins.
 * 3. `putIfMatch` replaces only the version whose `etag` is given; of racing calls exactly one wins. An etag is never
 *    equal for two different versions of a key whose bytes differ; a missing object counts as a mismatch.
 * 4. A `get` returns one whole version, never a mixture, and the etag of that version.
 * 5. A failure is a `StoreError`. `outcome: 'not-applied'` is a promise that nothing was stored; `'unknown'` says the
 *    write may or may not have happened, now or later. No implementation retries a conditional put by itself. An
 *    implementation that finds its own files damaged says so by a `DataError`, and nothing was stored.
 * 6. Keys are 1 to 900 bytes of `a-z A-Z 0-9 - _ . /`, no empty part, no part that begins with a dot, no part over
 *    200 bytes (file names end at 255). A key is never also the folder of another key. Arguments that break this, or
 *    the bounds below, are an `AssertionError`.
 * 7. `putStream` stores an object that need not fit into memory, under a name that nobody else writes (immutable objects
 *    have random ones). It is seen as a whole or not at all. Until it ends it is an upload that `listUploads` shows; a
 *    process that is killed leaves it there, and `abortUpload` frees what it takes.
 *
 * Callers own the byte arrays that they pass in until the promise settles (they must not change them), and own what
 * they get back. Arrays passed in may be views on SharedArrayBuffers.
 */
export interface ObjectStore {
  /** The object or a part of it; null where there is none. A range beyond the end is cut to the object's size. */
  get(key: string, options?: GetOptions): Promise<StoredObject | null>;
  /** As `get`, but `'unchanged'` without the bytes while the stored version is still `etag`. */
  getIfChanged(key: string, etag: string, options?: CallOptions): Promise<StoredObject | 'unchanged' | null>;
  putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult>;
  putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult>;
  /**
   * Stores what the chunks are together, taking the next ones as fast as it gets rid of them. Refused where the key is
   * seen to be taken, which is no race that anybody may run. It repeats by itself what may be repeated; after `'unknown'`
   * the object may be there, now or later, and is never another one. An error of `chunks` is thrown as it is, and
   * nothing was stored then. Each step may take `timeoutMs`, however long the whole takes.
   */
  putStream(key: string, chunks: AsyncIterable<Uint8Array>, options?: CallOptions): Promise<StreamResult>;
  /** Uploads under a prefix that have not ended, by key, after `after`, at most `limit` (1 to 1,000). */
  listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage>;
  /** Ends an upload of whatever process: its `putStream` fails. One that has ended already counts as aborted. */
  abortUpload(upload: Upload, options?: CallOptions): Promise<void>;
  /** Missing objects count as deleted. */
  delete(key: string, options?: CallOptions): Promise<void>;
  /** Keys under a prefix in byte order, after `after`, at most `limit` (1 to 1,000). */
  list(prefix: string, options: ListOptions): Promise<ListPage>;
  /** Releases sockets and timers; calls in flight are aborted with `outcome: 'unknown'`. */
  close(): Promise<void>;
}

export interface CallOptions {
  /** Milliseconds for the whole call; an implementation default applies where absent. */
  readonly timeoutMs?: number;
}

export type ByteRange =
  /** `offset` from 0, `length` from 1, in bytes. */
  | { readonly offset: number; readonly length: number }
  /** The last `suffix` bytes, from 1. */
  | { readonly suffix: number };

export interface GetOptions extends CallOptions {
  readonly range?: ByteRange;
}

export interface StoredObject {
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** The whole object's size in bytes, also where only a range was read. */
  readonly size: number;
}

export type PutResult =
  | { readonly kind: 'stored'; readonly etag: string }
  /** The condition did not hold: nothing was stored by this call. */
  | { readonly kind: 'refused' };

export type StreamResult =
  /** `size` in bytes. */
  { readonly kind: 'stored'; readonly etag: string; readonly size: number } | { readonly kind: 'refused' };

/** An object on its way. */
export interface Upload {
  readonly key: string;
  /** The store's name of it; a key may have several. */
  readonly uploadId: string;
  /** Milliseconds since 1970 by the store's own clock, to about a second. */
  readonly startedAtMs: number;
}

export interface ListUploadsOptions extends CallOptions {
  /** Only uploads after this one, the last of the page before. */
  readonly after?: Upload;
  readonly limit: number;
}

export interface UploadPage {
  readonly uploads: readonly Upload[];
  /** Whether more uploads follow the last one. */
  readonly more: boolean;
}

export interface ListOptions extends CallOptions {
  /** Only keys above this one, which need not exist. */
  readonly after?: string;
  readonly limit: number;
}

export interface ListedObject {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  /** Milliseconds since 1970 by the store's own clock: when the current version came, to about a second. */
  readonly modifiedAtMs: number;
}

export interface ListPage {
  readonly objects: readonly ListedObject[];
  /** Whether more keys follow the last one. */
  readonly more: boolean;
}

export type StoreOutcome = 'not-applied' | 'unknown';

/** `'throttled'`: slow down; `'conflict'`: a racing write, send again; `'failed'`: anything else. */
export type StoreFailure = 'throttled' | 'conflict' | 'timeout' | 'failed';

/** The store could not do what was asked. For reads the outcome is always `'not-applied'`. */
export class StoreError extends Error {
  override name = 'StoreError';
  readonly operation: string;
  readonly key: string;
  readonly outcome: StoreOutcome;
  readonly reason: StoreFailure;
  /** The `cause` says what went wrong in words that an operator can act on. */
  constructor(
    operation: string,
    key: string,
    outcome: StoreOutcome,
    reason: StoreFailure,
    options?: ErrorOptions,
  ) {
    super(`${operation} ${key}: ${reason} (${outcome})`, options);
    this.operation = operation;
    this.key = key;
    this.outcome = outcome;
    this.reason = reason;
  }
}
