import { assert } from '../../src/base/assert.ts';
import type { LogPosition } from './replay.ts';

/** The namespace or tenant that records are of. An empty namespace id means the tenant. */
export interface LogTarget {
  readonly tenantId: number;
  readonly namespace: string;
  readonly namespaceId: string;
}

interface Entry {
  readonly target: LogTarget;
  firstSeq: number;
  firstAtMs: number;
  lastSlot: number;
  lastIndex: number;
}

export function targetKey(target: { readonly tenantId: number; readonly namespaceId: string }): string {
  return `${target.tenantId}/${target.namespaceId}`;
}

/**
 * Which targets have records in one log that no manifest contains yet. The log's floor is below the first of them;
 * when none is left in a sealed log, that log is done.
 */
export class UnflushedTargets {
  readonly #entries = new Map<string, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  targets(): LogTarget[] {
    return [...this.#entries.values()].map(({ target }) => target);
  }

  appended(
    target: LogTarget,
    at: { readonly slot: number; readonly index: number; readonly atMs: number },
  ): void {
    const key = targetKey(target);
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#entries.set(key, {
        target,
        firstSeq: at.slot,
        firstAtMs: at.atMs,
        lastSlot: at.slot,
        lastIndex: at.index,
      });
      return;
    }
    assert(
      at.slot > entry.lastSlot || (at.slot === entry.lastSlot && at.index > entry.lastIndex),
      () => `record ${at.slot}/${at.index} of ${key} came after ${entry.lastSlot}/${entry.lastIndex}`,
    );
    entry.lastSlot = at.slot;
    entry.lastIndex = at.index;
  }

  /** Notes that a target's manifest contains everything up to a position. */
  flushed(
    target: { readonly tenantId: number; readonly namespaceId: string },
    through: LogPosition,
    atMs: number,
  ): void {
    const key = targetKey(target);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    const all =
      through.slot > entry.lastSlot || (through.slot === entry.lastSlot && through.index >= entry.lastIndex);
    if (all) {
      this.#entries.delete(key);
      return;
    }
    // Later records of the same slot may be missing from the manifest, so the slot itself is still needed.
    if (through.slot > entry.firstSeq) {
      entry.firstSeq = through.slot;
      entry.firstAtMs = atMs;
    }
  }

  /**
   * The highest slot that nobody needs, given that the log holds slots up to `lastSlot`; with `concerns`, nobody who wants those targets
   * alone.
   */
  floor(lastSlot: number, concerns: (target: LogTarget) => boolean = () => true): number {
    let floor = lastSlot;
    for (const { target, firstSeq } of this.#entries.values())
      if (firstSeq <= floor && concerns(target)) floor = firstSeq - 1;
    return floor;
  }

  /** Targets whose first unflushed record is older than `beforeMs` or lies under `beforeSeq`. */
  overdue(before: { readonly atMs: number; readonly slot: number }): LogTarget[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.firstAtMs < before.atMs || entry.firstSeq < before.slot)
      .map((entry) => entry.target);
  }
}
