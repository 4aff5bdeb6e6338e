import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';
import { readFloorAndPlacement } from '../../src/stored/log-floor.ts';
import { decodeLogObject } from '../../src/stored/log-object.ts';

/**
 * How far another process has come in its log, for who waits to take something over from it.
 *
 * - `open`: it has not reached the placement yet, as far as is stored.
 * - `barred`: it has; a record of what it does not own in that placement lies at or under `through`, or nowhere.
 * - `later`: it has passed over that placement. Whether it owned something in between which it does not in this one nobody can tell, so who waits waits for
 *   the wrong one.
 * - `sealed`: nothing follows any more. `placement` is the last that it has reached.
 */
export type LogEnd =
  | { readonly kind: 'open' | 'later' }
  | { readonly kind: 'barred'; readonly through: number }
  | { readonly kind: 'sealed'; readonly sealSeq: number; readonly placement: number };

/** Follows the headers of one log. Slots that were collected meanwhile are passed over: its floor says with which placement. */
export class LogTail {
  readonly #store: Pick<ObjectStore, 'get'>;
  readonly #logId: string;
  #next = 1;
  #sealSeq: number | null = null;
  /** The last placement that was seen, and the last slot before the header that had it first. */
  #reached = { placement: 0, through: 0 };

  constructor(store: Pick<ObjectStore, 'get'>, logId: string) {
    this.#store = store;
    this.#logId = logId;
  }

  /** Reads on to the end that there is now. Rejects with StoreError or DataError; then the next look reads on from there. */
  async look(placement: number): Promise<LogEnd> {
    while (this.#reached.placement < placement && (await this.#step()));
    if (this.#sealSeq !== null)
      return { kind: 'sealed', sealSeq: this.#sealSeq, placement: this.#reached.placement };
    if (this.#reached.placement < placement) return { kind: 'open' };
    if (this.#reached.placement > placement) return { kind: 'later' };
    return { kind: 'barred', through: this.#reached.through };
  }

  /** False where there is no further slot. */
  async #step(): Promise<boolean> {
    if (this.#sealSeq !== null) return false;
    const slot = this.#next;
    const key = paths.logObject(this.#logId, slot);
    const found = await readIntact(this.#store, key, ({ bytes }) => decodeLogObject(bytes, key));
    if (found === null || found.kind === 'seal') {
      // Collected, perhaps; a seal that lies where collection has been is not the end.
      const { floor, placement } = await readFloorAndPlacement(this.#store, this.#logId);
      if (floor >= slot) {
        this.#next = floor + 1;
        this.#note(placement, floor);
        return true;
      }
      if (found !== null) this.#sealSeq = slot;
      return false;
    }
    this.#next = slot + 1;
    this.#note(found.placement, slot - 1);
    return true;
  }

  #note(placement: number, through: number): void {
    if (placement > this.#reached.placement) this.#reached = { placement, through };
  }
}
