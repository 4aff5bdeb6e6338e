import { assert } from '../../../src/base/assert.ts';

/** Highest bits of a hash, which choose one of the parts of a table. */
export const partBits = 6;

/** How full a part may be, by part. Parts fill alike, and each is grown at another time. */
export const partFullness = Float64Array.from(
  { length: 1 << partBits },
  (_, part) => 0.5 + (0.2 * part) / (1 << partBits),
);

const partSlotsFirst = 64;

/** Cuts slots into as many parts as a table has. */
export function slotParts(slots: Int32Array): Int32Array[] {
  const length = slots.length >>> partBits;
  return Array.from({ length: 1 << partBits }, (_, part) =>
    slots.subarray(part * length, (part + 1) * length),
  );
}

/** The slots of an open-addressing table, in parts that grow one by one: others never wait until a large table is made anew. */
export class HashSlots {
  /** The parts; none until somebody looks for a slot. At first all lie in one buffer, because each buffer is work for the collector of garbage. */
  #parts: Int32Array[] = [];
  /** How many slots of a part are taken, by part. */
  readonly #held = new Int32Array(1 << partBits);
  #length = 0;

  get bytes(): number {
    return this.#length * 4;
  }

  /** The part that a hash belongs to. Its slots are numbers plus one, and 0 where they are free. */
  of(hash: number): Int32Array {
    if (this.#parts.length === 0) {
      this.#length = partSlotsFirst << partBits;
      this.#parts = slotParts(new Int32Array(this.#length));
    }
    return this.#parts[hash >>> (32 - partBits)] as Int32Array;
  }

  /** Counts a slot that the caller has taken, and grows its part where that is full; `hashOf` tells the hash of a number. */
  added(hash: number, hashOf: (number: number) => number): void {
    const part = hash >>> (32 - partBits);
    const held = (this.#held[part] as number) + 1;
    this.#held[part] = held;
    const old = this.#parts[part] as Int32Array;
    if (held <= old.length * (partFullness[part] as number)) return;
    const slots = new Int32Array(old.length * 2);
    const mask = slots.length - 1;
    let moved = 0;
    for (let i = 0; i < old.length; i++) {
      const number = old[i] as number;
      if (number === 0) continue;
      let slot = hashOf(number - 1) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number;
      moved++;
    }
    assert(moved === held, () => `${moved} slots were taken, and ${held} are counted`);
    this.#parts[part] = slots;
    this.#length += old.length;
  }
}
