import { ApiError } from '../../protocol/errors.ts';
import { LruMap } from '../../src/base/lru.ts';

/**
 * Bounds what a tenant's running queries have on its way from the object store at once: each thread has an equal part of the
 * plan's `read_inflight_mb`, so that all together stay within it wherever its namespaces live. Reads wait for each other, in their order; what could never fit is refused before it is read. Each
 * read holds its own bytes and nothing else while it waits, so they cannot wait for each other in a circle.
 */
export class ReadShare {
  readonly #bytesMax: number;
  readonly #planBytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly go: () => void }[] = [];
  #bytes = 0;

  /** `planBytesMax`: what the plan has; `threads`: that it is divided among. */
  constructor(planBytesMax: number, threads = 1) {
    this.#planBytesMax = planBytesMax;
    this.#bytesMax = planBytesMax / threads;
  }

  /** Bytes that are on their way now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws 413 `too_large` where a query wants more at once than there is for all of them. */
  refuseOver(bytes: number): void {
    if (bytes <= this.#planBytesMax) return;
    const shown = (amount: number) => `${Math.ceil(amount / 1e6)} MB`;
    throw new ApiError(
      'too_large',
      `this query would read ${shown(bytes)} of object storage at once, and the plan has ${shown(this.#planBytesMax)} for that: narrow it`,
    );
  }

  /** Runs a read when there is room for its bytes. One that is larger than the share has it for itself. */
  async read<T>(bytes: number, read: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#hasRoom(bytes)) {
      await new Promise<void>((go) => this.#waiting.push({ bytes, go }));
    } else this.#bytes += bytes;
    try {
      return await read();
    } finally {
      this.#bytes -= bytes;
      this.#letIn();
    }
  }

  #hasRoom(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }

  #letIn(): void {
    for (
      let next = this.#waiting[0];
      next !== undefined && this.#hasRoom(next.bytes);
      next = this.#waiting[0]
    ) {
      this.#waiting.shift();
      this.#bytes += next.bytes;
      next.go();
    }
  }
}

/** Tenants whose queries read at a time. */
const sharesMax = 10_000;

export class ReadShares {
  readonly #threads: number;
  readonly #shares = new LruMap<number, { readonly bytesMax: number; readonly share: ReadShare }>(sharesMax);

  /** `threads`: of the process, each with actors of its own. */
  constructor(threads = 1) {
    this.#threads = threads;
  }

  /** Null where the plan has no limit. */
  of(tenantId: number, bytesMax: number | null): ReadShare | null {
    if (bytesMax === null) return null;
    const known = this.#shares.get(tenantId);
    if (known?.bytesMax === bytesMax) return known.share;
    const share = new ReadShare(bytesMax, this.#threads);
    this.#shares.set(tenantId, { bytesMax, share });
    return share;
  }
}
