import type { Clock } from '../../src/base/clock.ts';
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
} from '../../src/object-store/object-store.ts';

/** What happens to one call. */
export type Fault =
  /** Nothing is stored, the caller is told that it does not know. */
  | 'drop-before-apply'
  /** It is stored, the caller is told that it does not know. */
  | 'error-after-apply'
  /** It is stored, and the caller's own repetition of it is refused: what a retrying proxy makes of a slow answer. */
  | 'refuse-after-apply'
  /** It arrives this much later. */
  | { readonly delayMs: number }
  /** It arrives when the promise resolves. */
  | { readonly until: Promise<void> };

export type FaultyOperation =
  | 'get'
  | 'create'
  | 'update'
  | 'stream'
  | 'delete'
  | 'list'
  | 'list-uploads'
  | 'abort-upload';

/** Asked before each call: what shall happen to it. Undefined: nothing out of the ordinary. */
export type FaultPlan = (call: {
  readonly operation: FaultyOperation;
  readonly key: string;
}) => Fault | undefined;

/**
 * A store with faults by plan, as one process sees it. `kill` ends the process: what it asked for and has not been
 * answered is never answered, and whether what it sent arrives is left to the fault that it met.
 */
export class FaultyObjectStore implements ObjectStore {
  readonly #store: ObjectStore;
  readonly #clock: Clock;
  #killed = false;
  plan: FaultPlan;
  readonly calls: { readonly operation: FaultyOperation; readonly key: string }[] = [];

  constructor(store: ObjectStore, clock: Clock, plan: FaultPlan = () => undefined) {
    this.#store = store;
    this.#clock = clock;
    this.plan = plan;
  }

  kill(): void {
    this.#killed = true;
  }

  get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    return this.#read('get', key, () => this.#store.get(key, options));
  }

  getIfChanged(key: string, etag: string, options?: CallOptions): Promise<StoredObject | 'unchanged' | null> {
    return this.#read('get', key, () => this.#store.getIfChanged(key, etag, options));
  }

  list(prefix: string, options: ListOptions): Promise<ListPage> {
    return this.#read('list', prefix, () => this.#store.list(prefix, options));
  }

  putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult> {
    return this.#put('create', key, () => this.#store.putIfAbsent(key, bytes, options));
  }

  putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult> {
    return this.#put('update', key, () => this.#store.putIfMatch(key, bytes, etag, options));
  }

  /** A fault meets it before its first chunk. A dropped one leaves an upload behind, and so does a killed process. */
  async putStream(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: CallOptions,
  ): Promise<StreamResult> {
    const fault = await this.#begin('stream', key);
    if (fault === 'drop-before-apply') {
      this.#store.putStream(key, withoutEnd(), options).catch(() => {});
      return this.#answer(() => fail('stream', key, 'unknown'));
    }
    const result = await this.#store.putStream(key, this.#whileAlive(chunks), options);
    if (fault === 'error-after-apply') return this.#answer(() => fail('stream', key, 'unknown'));
    if (fault === 'refuse-after-apply') return this.#answer(() => ({ kind: 'refused' }));
    return this.#answer(() => result);
  }

  listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    return this.#read('list-uploads', prefix, () => this.#store.listUploads(prefix, options));
  }

  abortUpload(upload: Upload, options?: CallOptions): Promise<void> {
    return this.#remove('abort-upload', upload.key, () => this.#store.abortUpload(upload, options));
  }

  delete(key: string, options?: CallOptions): Promise<void> {
    return this.#remove('delete', key, () => this.#store.delete(key, options));
  }

  async close(): Promise<void> {}

  async *#whileAlive(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of chunks) {
      if (this.#killed) await never();
      yield chunk;
    }
    if (this.#killed) await never();
  }

  async #remove(
    operation: 'delete' | 'abort-upload',
    key: string,
    remove: () => Promise<void>,
  ): Promise<void> {
    const fault = await this.#begin(operation, key);
    if (fault === 'drop-before-apply') return this.#answer(() => fail(operation, key, 'unknown'));
    await remove();
    return this.#answer(() => (fault === undefined ? undefined : fail(operation, key, 'unknown')));
  }

  async #read<T>(
    operation: 'get' | 'list' | 'list-uploads',
    key: string,
    read: () => Promise<T>,
  ): Promise<T> {
    const fault = await this.#begin(operation, key);
    if (fault !== undefined) return this.#answer(() => fail(operation, key, 'not-applied'));
    const value = await read();
    return this.#answer(() => value);
  }

  async #put(operation: 'create' | 'update', key: string, put: () => Promise<PutResult>): Promise<PutResult> {
    const fault = await this.#begin(operation, key);
    if (fault === 'drop-before-apply') return this.#answer(() => fail(operation, key, 'unknown'));
    const result = await put();
    if (fault === 'error-after-apply') return this.#answer(() => fail(operation, key, 'unknown'));
    if (fault === 'refuse-after-apply') return this.#answer(() => ({ kind: 'refused' }));
    return this.#answer(() => result);
  }

  async #begin(
    operation: FaultyOperation,
    key: string,
  ): Promise<Exclude<Fault, { readonly delayMs: number } | { readonly until: Promise<void> }> | undefined> {
    if (this.#killed) return never();
    this.calls.push({ operation, key });
    const fault = this.plan({ operation, key });
    if (typeof fault !== 'object') return fault;
    if ('delayMs' in fault) await this.#clock.sleep(fault.delayMs);
    else await fault.until;
    return undefined;
  }

  #answer<T>(value: () => T): T | Promise<T> {
    return this.#killed ? never() : value();
  }
}

async function* withoutEnd(): AsyncGenerator<Uint8Array, void, void> {
  yield await never<Uint8Array>();
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}

function fail(operation: string, key: string, outcome: 'unknown' | 'not-applied'): never {
  throw new StoreError(operation, key, outcome, 'failed', { cause: new Error('a planned fault') });
}

/** Faults by chance: each call meets one with the given probability. `random` answers 0 ≤ x < 1. */
export function randomFaults(random: () => number, probability: number, delayMsMax = 400): FaultPlan {
  return ({ operation }) => {
    if (random() >= probability) return undefined;
    const kind = random();
    if (kind < 0.4) return { delayMs: Math.floor(random() * delayMsMax) };
    if (operation !== 'create' && operation !== 'update' && operation !== 'stream')
      return 'drop-before-apply';
    if (kind < 0.6) return 'drop-before-apply';
    return kind < 0.8 ? 'error-after-apply' : 'refuse-after-apply';
  };
}

/** A gate to hold something up with: closed until `open` is called. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
