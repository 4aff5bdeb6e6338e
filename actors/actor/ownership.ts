import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import { type Owners, placementKey, type Standing } from '../../protocol/placement.ts';
import type { Clock } from '../../src/base/clock.ts';
import { isOwn } from '../../src/base/owners.ts';

/** The data has moved to another server, and nothing was done: whoever holds the call can have it done there. */
export class MovedAway extends ApiError {
  /** The placement by which it has moved, or a later one. */
  readonly placement: number;

  constructor(placement: number, cause?: unknown) {
    const sentence = 'this data has moved to another server; nothing was written';
    super('unavailable', sentence, { retryAfter: 1, cause });
    this.placement = placement;
  }
}

/**
 * What a thread's actors know of who owns what: the present view, and which of its targets are ready to be opened.
 *
 * A target that has come from another server is ready once its placement is settled: by then everything that the other one
 * made durable was replayed to this thread. One that has been this server's in every placement since the last settled one has been
 * ready all the time.
 */
export class Ownership {
  readonly #clock: Clock;
  #standing: Standing;
  /** From the last settled placement on, the present one last. */
  #chain: readonly Owners[];
  #isSettled = false;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, standing: Standing) {
    this.#clock = clock;
    this.#standing = standing;
    this.#chain = [standing.owners];
  }

  get placement(): number {
    return this.#standing.owners.placement;
  }

  /** Whether the view names the log: its own process's, or one whose records are not all in manifests. */
  namesLog(logId: string): boolean {
    return this.#standing.logs.includes(logId);
  }

  /** The logs that the view names. */
  get logs(): readonly string[] {
    return this.#standing.logs;
  }

  /** Those of them that are sealed. */
  get sealedLogs(): readonly string[] {
    return this.#standing.removed.map(({ logId }) => logId);
  }

  /** Takes a later view. Answers whether the owners are others now. */
  adopt(standing: Standing): boolean {
    if (standing.version <= this.#standing.version) return false;
    const isLater = standing.owners.placement > this.placement;
    this.#standing = standing;
    if (isLater) this.#chain = [...this.#chain, standing.owners];
    this.#wake();
    return isLater;
  }

  /** What is replayed next is of targets that came since the first of `chain`, which may have been adopted before this thread was there. */
  begin(chain: readonly Owners[]): void {
    const last = chain.at(-1)?.placement ?? 0;
    this.#chain = [...chain, ...this.#chain.filter(({ placement }) => placement > last)];
  }

  /** Everything that has come by this placement was replayed. */
  settle(placement: number): void {
    const at = this.#chain.findIndex((owners) => owners.placement === placement);
    if (at < 0) return;
    this.#chain = this.#chain.slice(at);
    this.#isSettled = true;
    this.#wake();
  }

  isOwn(key: string): boolean {
    return isOwn(this.#standing.owners, key);
  }

  isReady(key: string): boolean {
    return this.#isSettled && this.#chain.every((owners) => isOwn(owners, key));
  }

  /** Throws 503 where the target is not this server's, or is not ready. */
  require(key: string): void {
    if (!this.isReady(key)) throw this.#refusal(key);
  }

  /** Resolves when the target is ready; rejects with 503 where it is not this server's, or not ready in time. */
  async whenReady(key: string): Promise<void> {
    const untilMs = this.#clock.monotonic() + limits.handOverWaitMs;
    while (!this.isReady(key)) {
      const leftMs = untilMs - this.#clock.monotonic();
      if (!this.isOwn(key) || leftMs <= 0) throw this.#refusal(key);
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(leftMs, resolve);
        this.#waiting.push(() => {
          cancel();
          resolve();
        });
      });
    }
  }

  /**
   * What a call hears that comes while this process ends. Where its data has moved already, whoever has sent it can have it done there:
   * others may hear late that this server leaves.
   */
  refusalOfDrain({ tenantId, namespace, fromCopy }: ActorCall): ApiError {
    if (fromCopy !== true && !this.isOwn(placementKey(tenantId, namespace)))
      return new MovedAway(this.placement);
    return new ApiError('unavailable', 'this server is shutting down', { retryAfter: 1 });
  }

  #refusal(key: string): ApiError {
    if (!this.isOwn(key)) return new MovedAway(this.placement);
    const sentence = 'this data is on its way from another server; nothing was written';
    return new ApiError('unavailable', sentence, { retryAfter: 1 });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
