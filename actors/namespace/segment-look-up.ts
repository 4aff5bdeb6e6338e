import type { Clock } from '../../src/base/clock.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import { emptyReadTally } from '../storage/block-fetch.ts';
import { type WantedIds, wantIds } from '../storage/hash-order.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { LoadedBatch } from './loaded-batch.ts';

/** Up to so many ids are looked up in all segments at once, in two rounds; more fill memory with pages, so in turn. */
const idsAtOnceMax = 256;

/** Whether work on the batch takes milliseconds, so that others must have their turn between its parts. */
export function isLarge({ ids, deletes }: LoadedBatch): boolean {
  return ids.length + deletes.length > idsAtOnceMax;
}

/**
 * Where the ids of one batch stand in the segments. Each segment is asked once, as it never changes: what it says before
 * the batch is durable holds when the batch is applied. Whether a row still lives is for that moment to say.
 *
 * A large batch gives way to other work after each segment.
 */
export class SegmentLookUp {
  readonly #ids: readonly string[];
  readonly #answered = new Map<string, Int32Array | null>();
  readonly #asking = new SingleFlight<string, void>();
  readonly #clock: Pick<Clock, 'yieldTurn'>;
  #wanted: WantedIds | null = null;

  constructor(batch: LoadedBatch, clock: Pick<Clock, 'yieldTurn'>) {
    this.#ids = idsOfBatch(batch);
    this.#clock = clock;
  }

  /** Resolves when every one of the segments has answered. Rejects with the store's error; may then be asked again. */
  async ask(segments: readonly OpenSegment[]): Promise<void> {
    if (this.#ids.length === 0) return;
    const open = segments.filter(({ id }) => !this.#answered.has(id));
    const atOnce = this.#ids.length <= idsAtOnceMax ? open.length : 1;
    for (let from = 0; from < open.length; from += atOnce) {
      if (from > 0) await this.#clock.yieldTurn();
      const asked = open.slice(from, from + atOnce);
      const ended = await Promise.allSettled(
        asked.map((segment) => this.#asking.run(segment.id, () => this.#askSegment(segment))),
      );
      for (const end of ended) if (end.status === 'rejected') throw end.reason;
    }
  }

  /** The segment's row of each id, deletes first, -1 where it has none; null where it has none at all. */
  rowsIn(segmentId: string): Int32Array | null {
    return this.#answered.get(segmentId) ?? null;
  }

  async #askSegment({ id, reader }: OpenSegment): Promise<void> {
    this.#wanted ??= wantIds(this.#ids);
    const rows = await reader.findRows(this.#wanted, emptyReadTally());
    this.#answered.set(id, rows.some((row) => row >= 0) ? rows : null);
  }
}

/** Ids of the batch, deletes first, as they are looked up. */
function idsOfBatch({ deletes, ids }: LoadedBatch): readonly string[] {
  return deletes.length === 0 ? ids : [...deletes, ...ids];
}
