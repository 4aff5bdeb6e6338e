import type { Room } from '../room.ts';

/** Dictionaries that are known at a time: each array is kept with the object that its codes belong to. */
const dictionariesMax = 4;
const codesFirst = 1_024;
const noCodes = new Int32Array(0);

/** Remembers a number for each code of a dictionary, or of an interner whose numbers are codes; 0 where nothing is known yet. */
export class ByCodes {
  readonly #known = new Map<object, Int32Array>();
  readonly #room: Room;
  #bytes = 0;

  /** `room`: for as many codes as can come. */
  constructor(room: Room) {
    this.#room = room;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The numbers by the codes of `dictionary`, with room for `count` codes at least. The caller writes what it comes to know, and
   * asks again where a code has no room: the array may be another one then.
   */
  of(dictionary: object, count: number): Int32Array {
    const known = this.#known.get(dictionary);
    if (known !== undefined && known.length >= count) return known;
    // Chunks of small parts have dictionaries of their own, which do not come again.
    if (known === undefined && this.#known.size === dictionariesMax) {
      for (const numbers of this.#known.values()) this.#room.giveBack(numbers);
      this.#known.clear();
      this.#bytes = 0;
    }
    const larger = this.#room.grownWithZeros(known ?? noCodes, Math.max(count, codesFirst));
    this.#bytes += larger.byteLength - (known?.byteLength ?? 0);
    this.#known.set(dictionary, larger);
    return larger;
  }
}
