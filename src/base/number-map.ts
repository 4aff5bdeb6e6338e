import { assert } from './assert.ts';

const slotsFirst = 64;
/** Slots that a map does not give back as it empties; one that has grown beyond them gives back the rest. */
const slotsKept = 4_096;
/** Stands in the place of a number in a slot that nobody has. */
const free = -1;

/**
 * A map from whole numbers to what comes and goes: calls under way, requests that wait. Numbers are whole and at least 0.
 *
 * A `Map` would do, if V8's did not make a new table each time that about as many entries came as it has room for, with a pointer from the old table to the
 * new one: once a table has grown old, it keeps the next one alive until all of the heap is collected, and with it what stood there, and so on.
 * So of a busy map all values outlive their youth, which took a front that forwards requests a quarter of its time. Here what was
 * removed is out of the only table at once.
 */
export class NumberMap<V> {
  #keys = new Float64Array(slotsFirst).fill(free);
  #values: (V | undefined)[] = new Array(slotsFirst).fill(undefined);
  /** Slots are a power of two; half of them are free at least, so a look-up ends soon. */
  #mask = slotsFirst - 1;
  /** How many bits of a hash do not choose the slot. */
  #shift = shiftFor(slotsFirst);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: number): V | undefined {
    const slot = this.#slotOf(key);
    return this.#keys[slot] === key ? this.#values[slot] : undefined;
  }

  has(key: number): boolean {
    return key >= 0 && this.#keys[this.#slotOf(key)] === key;
  }

  set(key: number, value: V): void {
    assert(key >= 0 && Number.isSafeInteger(key), () => `${key} is no number of a map`);
    let slot = this.#slotOf(key);
    if (this.#keys[slot] !== key) {
      if (++this.#size * 2 > this.#keys.length) {
        this.#resize(this.#keys.length * 2);
        slot = this.#slotOf(key);
      }
      this.#keys[slot] = key;
    }
    this.#values[slot] = value;
  }

  /** Answers whether there was such an entry. */
  delete(key: number): boolean {
    let gap = this.#slotOf(key);
    if (key < 0 || this.#keys[gap] !== key) return false;
    this.#size--;
    // What stands behind, and would be looked for from before the gap on, moves into it.
    for (let slot = (gap + 1) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const moving = this.#keys[slot] as number;
      if (moving === free) break;
      const away = (slot - startOf(moving, this.#shift)) & this.#mask;
      if (away < ((slot - gap) & this.#mask)) continue;
      this.#keys[gap] = moving;
      this.#values[gap] = this.#values[slot];
      gap = slot;
    }
    this.#keys[gap] = free;
    this.#values[gap] = undefined;
    if (this.#keys.length > slotsKept && this.#size * 16 < this.#keys.length)
      this.#resize(this.#keys.length / 4);
    return true;
  }

  clear(): void {
    this.#size = 0;
    this.#resize(slotsFirst);
  }

  /** The values of this moment, in no order. */
  values(): V[] {
    const values: V[] = [];
    for (let slot = 0; slot < this.#keys.length; slot++)
      if (this.#keys[slot] !== free) values.push(this.#values[slot] as V);
    return values;
  }

  /** The entries of this moment, ascending by number. */
  entries(): [number, V][] {
    const entries: [number, V][] = [];
    for (let slot = 0; slot < this.#keys.length; slot++)
      if (this.#keys[slot] !== free) entries.push([this.#keys[slot] as number, this.#values[slot] as V]);
    return entries.sort(([a], [b]) => a - b);
  }

  /** The slot of a number, or the free one where it belongs. */
  #slotOf(key: number): number {
    let slot = startOf(key, this.#shift);
    for (;;) {
      const held = this.#keys[slot];
      if (held === key || held === free) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }

  #resize(slots: number): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(slots).fill(free);
    this.#values = new Array(slots).fill(undefined);
    this.#mask = slots - 1;
    this.#shift = shiftFor(slots);
    if (this.#size === 0) return;
    for (let from = 0; from < keys.length; from++) {
      const key = keys[from] as number;
      if (key === free) continue;
      const slot = this.#slotOf(key);
      this.#keys[slot] = key;
      this.#values[slot] = values[from];
    }
  }
}

/** Answers where a look-up begins: by the upper bits of a product, so that numbers that are a step apart do not share a slot. */
function startOf(key: number, shift: number): number {
  const low = key | 0;
  const mixed = low === key ? low : low ^ Math.imul(Math.floor(key / 2 ** 32), 0x85eb_ca6b);
  return Math.imul(mixed, 0x9e37_79b1) >>> shift;
}

function shiftFor(slots: number): number {
  return Math.clz32(slots) + 1;
}
