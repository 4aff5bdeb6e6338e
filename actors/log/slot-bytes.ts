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
