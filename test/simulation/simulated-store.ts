import { assertKey, assertRange, concatenate, cutRange } from '../../src/object-store/keys.ts';
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
  type StoreFailure,
  type StreamResult,
  type Upload,
  type UploadPage,
} from '../../src/object-store/object-store.ts';
import { pageOfUploads } from '../../src/object-store/uploads.ts';
import type { Chance } from './chance.ts';
import type { FaultPlan, StoreFault, StoreOperation } from './faults.ts';
import type { Owner, Scheduler } from './scheduler.ts';
import type { StoredObjects } from './stored-objects.ts';

/** What a call meets in the network: one way, in milliseconds. */
const wayMsMin = 2;
const wayMsMax = 12;
const delayMsMax = 60_000;
const callTimeoutMs = 30_000;

export interface StoreOwner extends Owner {
  /** Whether it is on its way to serving. */
  readonly starting: boolean;
}

/** A call as whoever directs it sees it. */
export interface StoreCall {
  readonly operation: StoreOperation;
  readonly key: string;
}

/**
 * What a directed call meets: it is lost on its way there, or on its way back, or arrives when something is over. Of what is lost nobody hears
 * before it is given up.
 */
export type Met = 'lost' | 'answer lost' | Promise<void>;

export interface NetworkParts {
  readonly scheduler: Scheduler;
  readonly objects: StoredObjects;
  readonly chance: Chance;
  readonly faults: FaultPlan;
  /** Told of everything that arrives at the store. */
  readonly note: (operation: StoreOperation, key: string, fault: StoreFault | null, what: string) => void;
  /** What a call meets, where somebody directs that; null for most. */
  readonly meets?: (call: StoreCall) => Met | null;
  /** Told how many bytes a call carried there or back, of each that arrives. */
  readonly count?: (operation: StoreOperation, key: string, bytes: number) => void;
}

/** What one kind of call does at the store, and how its answer can be damaged. */
interface Deed<T> {
  readonly operation: StoreOperation;
  readonly key: string;
  readonly apply: (fault: StoreFault | null) => T;
  /** Bytes that it brings to the store. */
  readonly sends?: number;
  /** What an earlier delivery of the same call makes of this one's answer. */
  readonly answerOfSecond?: () => T;
}

/**
 * The store as one process of the simulation sees it: every call takes its way there and back in virtual time, and meets
 * what the plan says. What was sent may arrive after its sender gave it up, was paused, or died.
 */
export class SimulatedStore implements ObjectStore {
  readonly #parts: NetworkParts;
  readonly #owner: StoreOwner;
  /** Calls sent before this moment arrive only after it. */
  #heldUntilMs = 0;
  /** Whether some read of this process was damaged: errors that follow are no surprise. */
  damaged = false;
  outageUntilMs = 0;
  /** What is changed until then is changed, and the answer is lost. */
  answersLostUntilMs = 0;

  constructor(parts: NetworkParts, owner: StoreOwner) {
    this.#parts = parts;
    this.#owner = owner;
  }

  /** Calls that are sent from now on arrive at a moment of their own in the next `ms`, or a little later. */
  hold(ms: number): void {
    this.#heldUntilMs = this.#parts.scheduler.nowMs + ms;
  }

  get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    assertKey(key);
    assertRange(options?.range);
    const apply = (fault: StoreFault | null) => this.#damage(this.#read(key, options), fault);
    return this.#call({ operation: 'get', key, apply }, options);
  }

  getIfChanged(key: string, etag: string, options?: CallOptions): Promise<StoredObject | 'unchanged' | null> {
    assertKey(key);
    const apply = (fault: StoreFault | null) => {
      const found = this.#read(key);
      return found?.etag === etag ? ('unchanged' as const) : this.#damage(found, fault);
    };
    return this.#call({ operation: 'get', key, apply }, options);
  }

  putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult> {
    assertKey(key);
    const whole = concatenate(bytes);
    const { objects } = this.#parts;
    const apply = (): PutResult =>
      objects.find(key) === undefined ? objects.store(key, whole) : { kind: 'refused' };
    return this.#call(
      { operation: 'create', key, apply, answerOfSecond: refused, sends: whole.length },
      options,
    );
  }

  putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult> {
    assertKey(key);
    const whole = concatenate(bytes);
    const { objects } = this.#parts;
    const apply = (): PutResult =>
      objects.find(key)?.etag === etag ? objects.store(key, whole) : { kind: 'refused' };
    return this.#call(
      { operation: 'update', key, apply, answerOfSecond: refused, sends: whole.length },
      options,
    );
  }

  /** Begins an upload, and makes an object of it in one step when all chunks are there. */
  async putStream(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: CallOptions,
  ): Promise<StreamResult> {
    assertKey(key);
    const { objects, scheduler } = this.#parts;
    await scheduler.sleep(this.#wayMs(), this.#owner);
    const uploadId = objects.beginUpload(key);
    const taken: Uint8Array[] = [];
    try {
      for await (const chunk of chunks) taken.push(Uint8Array.from(chunk));
    } catch (error) {
      objects.endUpload(uploadId);
      throw error;
    }
    const whole = concatenate(taken);
    const apply = (): StreamResult => {
      // Aborted, or delivered before.
      if (!objects.endUpload(uploadId) || objects.find(key) !== undefined) return { kind: 'refused' };
      objects.store(key, whole);
      return { kind: 'stored', etag: objects.find(key)?.etag ?? '', size: whole.length };
    };
    const answerOfSecond = (): StreamResult => ({ kind: 'refused' });
    return this.#call({ operation: 'create', key, apply, answerOfSecond, sends: whole.length }, options);
  }

  listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    const { objects } = this.#parts;
    const { after, limit } = options;
    const apply = () => pageOfUploads(objects.uploads, { prefix, after, limit });
    return this.#call({ operation: 'list', key: prefix, apply }, options);
  }

  abortUpload({ key, uploadId }: Upload, options?: CallOptions): Promise<void> {
    const apply = () => void this.#parts.objects.endUpload(uploadId);
    return this.#call({ operation: 'delete', key, apply }, options);
  }

  delete(key: string, options?: CallOptions): Promise<void> {
    assertKey(key);
    const apply = () => this.#parts.objects.delete(key);
    return this.#call({ operation: 'delete', key, apply }, options);
  }

  list(prefix: string, options: ListOptions): Promise<ListPage> {
    const { objects, scheduler, chance } = this.#parts;
    const apply = (fault: StoreFault | null) => {
      const lagMs = fault === 'stale list' ? chance.fraction() * delayMsMax : 0;
      return objects.list(prefix, options, scheduler.nowMs - lagMs);
    };
    return this.#call({ operation: 'list', key: prefix, apply }, options);
  }

  async close(): Promise<void> {}

  #read(key: string, options?: GetOptions): StoredObject | null {
    const found = this.#parts.objects.find(key);
    if (found === undefined) return null;
    const { offset, length } = cutRange(options?.range, found.bytes.length);
    const bytes = found.bytes.slice(offset, offset + length);
    return { bytes, etag: found.etag, size: found.bytes.length };
  }

  #damage(found: StoredObject | null, fault: StoreFault | null): StoredObject | null {
    if (found === null || found.bytes.length === 0) return found;
    if (fault !== 'truncated read' && fault !== 'flipped bit') return found;
    this.damaged = true;
    const { chance } = this.#parts;
    const { bytes } = found;
    if (fault === 'truncated read')
      return { ...found, bytes: bytes.subarray(0, chance.integer(0, bytes.length - 1)) };
    const at = chance.integer(0, bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << chance.integer(0, 7));
    return found;
  }

  #call<T>(deed: Deed<T>, options: CallOptions = {}): Promise<T> {
    const { scheduler, faults } = this.#parts;
    const { operation, key } = deed;
    return new Promise<T>((resolve, reject) => {
      const isRead = operation === 'get' || operation === 'list';
      const timeoutMs = options.timeoutMs ?? callTimeoutMs;
      let open = true;
      const fail = (reason: StoreFailure, applied: boolean) => {
        if (!open) return;
        open = false;
        cancel();
        const outcome = isRead || !applied ? 'not-applied' : 'unknown';
        reject(new StoreError(operation, key, outcome, reason, { cause: new Error('simulated') }));
      };
      const answer = (value: T) => {
        if (!open) return;
        open = false;
        cancel();
        resolve(value);
      };
      const cancel = scheduler.after(timeoutMs, this.#owner, () => fail('timeout', true));
      const fault = faults.decide(operation, this.#owner.starting);
      if (scheduler.nowMs < this.outageUntilMs) {
        this.#onWay(() => fail('failed', true));
        return;
      }
      const met = this.#parts.meets?.({ operation, key }) ?? null;
      if (met === null) this.#send(deed, fault, { answer, fail });
      else this.#direct(deed, met, answer);
    });
  }

  #direct<T>(deed: Deed<T>, met: Met, answer: (value: T) => void): void {
    if (met === 'lost') return;
    const arrive = () =>
      this.#arrive(deed, null, this.#wayMs(), (value) => {
        if (met !== 'answer lost') this.#onWay(() => answer(value));
      });
    if (met === 'answer lost') arrive();
    else void met.then(arrive);
  }

  #send<T>(
    deed: Deed<T>,
    fault: StoreFault | null,
    { answer, fail }: { answer: (value: T) => void; fail: (reason: StoreFailure, applied: boolean) => void },
  ): void {
    const { scheduler, chance } = this.#parts;
    const back = (run: () => void) => this.#onWay(run);
    const isLost = fault === null && deed.operation === 'update' && scheduler.nowMs < this.answersLostUntilMs;
    switch (isLost ? 'dropped answer' : fault) {
      case 'dropped request':
        this.#note(deed, fault, 'lost');
        return chance.happens(0.5) ? undefined : back(() => fail('failed', true));
      case 'conflict (409)':
        this.#note(deed, fault, 'refused');
        return back(() => back(() => fail('conflict', false)));
      case 'throttled (503)':
        this.#note(deed, fault, 'refused');
        return back(() => back(() => fail('throttled', true)));
      case 'server error (500)':
        if (chance.happens(0.5)) this.#arrive(deed, fault, this.#wayMs(), () => {});
        return back(() => back(() => fail('failed', true)));
      case 'dropped answer':
        return this.#arrive(deed, fault, this.#wayMs(), () => {
          if (chance.happens(0.5)) back(() => fail('failed', true));
        });
      case 'delayed up to 60 s':
        return this.#arrive(deed, fault, chance.fraction() * delayMsMax, (value) =>
          back(() => answer(value)),
        );
      case 'delivered twice':
        this.#arrive(deed, fault, this.#wayMs(), (value) => back(() => answer(value)));
        return this.#arrive(deed, fault, chance.fraction() ** 2 * delayMsMax, () => {});
      case 'own retry refused (412)':
        return this.#arrive(deed, fault, this.#wayMs(), (value) => {
          const again = deed.answerOfSecond?.() ?? value;
          back(() => answer(again));
        });
      default: {
        const heldMs = this.#heldUntilMs - scheduler.nowMs;
        const wayMs = heldMs > 0 ? heldMs * chance.fraction() + this.#wayMs() : this.#wayMs();
        return this.#arrive(deed, fault, wayMs, (value) => back(() => answer(value)));
      }
    }
  }

  /** At the store. Half of what a dead process had sent and not heard of gets lost. */
  #arrive<T>(deed: Deed<T>, fault: StoreFault | null, inMs: number, then: (value: T) => void): void {
    const { scheduler, chance } = this.#parts;
    scheduler.after(inMs, null, () => {
      if (this.#owner.dead && chance.happens(0.5)) return this.#note(deed, fault, 'lost with its sender');
      const value = deed.apply(fault);
      this.#note(deed, fault, describe(value));
      this.#parts.count?.(deed.operation, deed.key, (deed.sends ?? 0) + bytesOf(value));
      then(value);
    });
  }

  #onWay(run: () => void): void {
    this.#parts.scheduler.after(this.#wayMs(), this.#owner, run);
  }

  #wayMs(): number {
    return this.#parts.chance.between(wayMsMin, wayMsMax);
  }

  #note<T>({ operation, key }: Deed<T>, fault: StoreFault | null, what: string): void {
    this.#parts.note(operation, key, fault, what);
  }
}

const refused = (): PutResult => ({ kind: 'refused' });

/** How many bytes of an object were read. */
function bytesOf(value: unknown): number {
  if (value === null || typeof value !== 'object' || !('bytes' in value)) return 0;
  return value.bytes instanceof Uint8Array ? value.bytes.length : 0;
}

function describe(value: unknown): string {
  if (value === null) return 'nothing';
  if (typeof value !== 'object') return String(value ?? 'done');
  if ('kind' in value) return String(value.kind);
  return 'bytes' in value ? 'found' : 'listed';
}
