import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';
import { readFloorAndPlacement } from '../../src/stored/log-floor.ts';
import { decodeLogObject, logHeaderRange, peekLogHeader } from '../../src/stored/log-object.ts';
import { firstSlot } from './first-slot.ts';

/**
 * How far another process has come in its log, for who waits to take something over from it.
 *
 * - `open`: it has not reached the placement yet, as far as is stored.
 * - `barred`: it has; a record of what it does not own in that placement lies above `after`, and at or under `through`, or it is in a
 *   manifest.
 * - `later`: it has passed over that placement. Whether it owned something in between which it does not in this one nobody can tell, so who waits waits for
 *   the wrong one.
 * - `sealed`: nothing follows any more. `placement` is the last that it has reached.
 */
export type LogEnd =
  | { readonly kind: 'open' | 'later' }
  | { readonly kind: 'barred'; readonly after: number; readonly through: number }
  | { readonly kind: 'sealed'; readonly sealSeq: number; readonly placement: number };

/**
 * Follows the headers of one log. They never go back to an earlier placement, so the first one of a placement is searched for: a busy log
 * has a thousand objects above its floor. Slots that were collected meanwhile are passed over: its floor says with which placement.
 */
export class LogTail {
  readonly #store: Pick<ObjectStore, 'get'>;
  readonly #logId: string;
  #next = 1;
  #sealSeq: number | null = null;
  /** The last placement that was seen, what is said there of who needs the log, and the last slot before the header that had it first. */
  #reached = { placement: 0, after: 0, through: 0 };

  constructor(store: Pick<ObjectStore, 'get'>, logId: string) {
    this.#store = store;
    this.#logId = logId;
  }

  /** Looks up to the end that there is now. Rejects with StoreError or DataError; then the next look goes on from there. */
  async look(placement: number): Promise<LogEnd> {
    while (this.#reached.placement < placement && (await this.#step(placement)));
    if (this.#sealSeq !== null)
      return { kind: 'sealed', sealSeq: this.#sealSeq, placement: this.#reached.placement };
    if (this.#reached.placement < placement) return { kind: 'open' };
    if (this.#reached.placement > placement) return { kind: 'later' };
    const { after, through } = this.#reached;
    return { kind: 'barred', after, through };
  }

  /** Goes to the first slot that may have the placement. False where there is no further one. */
  async #step(placement: number): Promise<boolean> {
    if (this.#sealSeq !== null) return false;
    const isBehind = (each: number) => this.#isBehind(each, placement);
    const slot = await firstSlot(this.#next, limits.barrierProbesAtOnce, isBehind);
    // What came before it may be the last that a sealed log has reached.
    if (slot > this.#next && !(await this.#read(slot - 1))) return false;
    return this.#next > slot || this.#read(slot);
  }

  /** Whether the slot has a header of an earlier placement, as far as nothing is checked. */
  async #isBehind(slot: number, placement: number): Promise<boolean> {
    const key = paths.logObject(this.#logId, slot);
    const found = await this.#store.get(key, { range: logHeaderRange });
    if (found === null) return false;
    try {
      const header = peekLogHeader(found.bytes, key);
      return header.kind !== 'seal' && header.placement < placement;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      return false;
    }
  }

  /** Reads and checks one slot. False where nothing is in it, or the seal. */
  async #read(slot: number): Promise<boolean> {
    const key = paths.logObject(this.#logId, slot);
    const found = await readIntact(this.#store, key, ({ bytes }) => decodeLogObject(bytes, key));
    if (found === null || found.kind === 'seal') {
      // Collected, perhaps; a seal that lies where collection has been is not the end.
      const { floor, placement } = await readFloorAndPlacement(this.#store, this.#logId);
      if (floor >= slot) {
        this.#next = floor + 1;
        this.#note(placement, { after: floor, through: floor });
        return true;
      }
      if (found !== null) this.#sealSeq = slot;
      return false;
    }
    this.#next = slot + 1;
    this.#note(found.placement, { after: found.othersFloor ?? 0, through: slot - 1 });
    return true;
  }

  #note(placement: number, range: { readonly after: number; readonly through: number }): void {
    if (placement > this.#reached.placement) this.#reached = { placement, ...range };
  }
}
