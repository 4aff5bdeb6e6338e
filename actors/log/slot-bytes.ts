/** Slots above the floor: the fewest, and the most, past which targets that hold the floor back are flushed, and how many for each target. */
const slotsAboveFloor = { least: 400, ofEachTarget: 4, most: 1_200 } as const;

/**
 * How many slots may lie above the floor before the targets that hold it back are flushed, where so many targets have unflushed records.
 * A replay from S3 reads a slot in a millisecond of quiet cores, so fewer are better; each flush is a PUT or more, so together they stay
 * a quarter of the log's own, and only where very many targets are written at once do the slots grow to a second of replay.
 */
export function slotsAboveFloorMax(targets: number): number {
  const { least, ofEachTarget, most } = slotsAboveFloor;
  return Math.min(most, Math.max(least, ofEachTarget * targets));
}

/** How much the slots above the floor hold: what a replay would have to read. */
export class SlotBytes {
  /** Oldest first; each with the bytes of all slots up to it. */
  #slots: { readonly slot: number; total: number }[] = [];
  #total = 0;
  /** Bytes of the slots below the floor. */
  #forgotten = 0;

  /** Bytes of all slots so far. */
  get total(): number {
    return this.#total;
  }

  /** A record of `bytes` bytes lies in the slot, the last one or the next. */
  add(slot: number, bytes: number): void {
    this.#total += bytes;
    const last = this.#slots.at(-1);
    if (last?.slot === slot) last.total = this.#total;
    else this.#slots.push({ slot, total: this.#total });
  }

  /** The first of the newest slots that together hold at most `bytesMax`; 0 where all above the floor do. */
  firstOfNewest(bytesMax: number): number {
    if (this.#total - this.#forgotten <= bytesMax) return 0;
    const before = this.#slots.find(({ total }) => this.#total - total <= bytesMax);
    return before === undefined ? 0 : before.slot + 1;
  }

  /** The floor has risen to `slot`. */
  forget(slot: number): void {
    for (const each of this.#slots) if (each.slot <= slot) this.#forgotten = each.total;
    this.#slots = this.#slots.filter((each) => each.slot > slot);
  }
}
