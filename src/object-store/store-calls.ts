import { AssertionError, DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { StoreError } from './object-store.ts';

/** What a running call is told, and tells. */
export interface StoreCall {
  /** Aborted when the caller has been answered already: by a time-out, or because the store was closed. */
  readonly signal: AbortSignal;
  /** Set by a write before the step that other processes could see; until then a failure is `'not-applied'`. */
  mayBeApplied: boolean;
}

/** The calls in flight of one store: their time-outs, the shape of their failures, and their end at `close`. */
export class StoreCalls {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #running = new Set<() => void>();
  #closed = false;

  /** `timeoutMs` applies to calls that give none. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  read<T>(
    operation: string,
    key: string,
    timeoutMs: number | undefined,
    work: (call: StoreCall) => Promise<T>,
  ) {
    return this.#run(operation, key, timeoutMs, 'not-applied', work);
  }

  write<T>(
    operation: string,
    key: string,
    timeoutMs: number | undefined,
    work: (call: StoreCall) => Promise<T>,
  ) {
    return this.#run(operation, key, timeoutMs, 'unknown', work);
  }

  close(): void {
    this.#closed = true;
    for (const end of [...this.#running]) end();
  }

  #run<T>(
    operation: string,
    key: string,
    timeoutMs: number | undefined,
    cutOutcome: 'not-applied' | 'unknown',
    work: (call: StoreCall) => Promise<T>,
  ): Promise<T> {
    const failure = (outcome: 'not-applied' | 'unknown', reason: 'timeout' | 'failed', cause: unknown) =>
      new StoreError(operation, key, outcome, reason, { cause });
    if (this.#closed)
      return Promise.reject(failure('not-applied', 'failed', new Error('the store is closed')));

    return new Promise<T>((resolve, reject) => {
      const abort = new AbortController();
      const call: StoreCall = { signal: abort.signal, mayBeApplied: false };
      const cut = (error: StoreError) => {
        settle();
        reject(error);
        abort.abort();
      };
      const onClose = () => cut(failure(cutOutcome, 'failed', new Error('the store was closed')));
      const ms = timeoutMs ?? this.#timeoutMs;
      const onTimeout = () => cut(failure(cutOutcome, 'timeout', new Error(`no answer within ${ms} ms`)));
      const cancelTimer = this.#clock.after(ms, onTimeout);
      const settle = () => {
        cancelTimer();
        this.#running.delete(onClose);
      };
      this.#running.add(onClose);
      work(call).then(
        (value) => {
          settle();
          resolve(value);
        },
        (error: unknown) => {
          settle();
          if (error instanceof StoreError || error instanceof AssertionError) return reject(error);
          // Damage is not a store that does not answer: asking again changes nothing, and it must be named.
          if (error instanceof DataError && !call.mayBeApplied) return reject(error);
          reject(failure(call.mayBeApplied ? cutOutcome : 'not-applied', 'failed', error));
        },
      );
    });
  }
}
