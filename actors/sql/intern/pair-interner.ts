import { assert } from '../../../src/base/assert.ts';
import type { PairTable } from '../../kernels/pair-table.ts';
import type { Room } from '../room.ts';
import { partBits, partFullness, slotParts } from './hash-slots.ts';
import { hashWords } from './hash-words.ts';
import { internedFirst } from './interner.ts';

/** Words of a slot: first, second, number plus one, nothing. All of a look-up lies in one line of the processor's cache. */
const pairWords = 4;
const pairSlotsFirst = 64;
const nothing = new Int32Array(0);

/**
 * Gives each distinct pair of numbers a number, 0, 1, 2 …: groups by several keys, and the distinct values of each group. A first
 * number finds the first pair that it came with by itself: most have but one, as a user has one region, and then nothing is
 * hashed. The others are found by open addressing, in parts that grow one by one: others never wait until a large table is made anew.
 * Once many were asked for, they move to a table in WebAssembly, which does the same and gives them the same numbers, where the room has one.
 */
export class PairInterner {
  /** The slots by parts; none until a pair is looked for by its hash. */
  #parts: Int32Array[] = [];
  /** The array in which all parts lie at first. */
  #firstParts = nothing;
  /** How many slots of a part are taken, by part. */
  readonly #held = new Int32Array(1 << partBits);
  #slotBytes = 0;
  /** The second of a first number's first pair, and that pair's number plus one, by first number. */
  #direct = new Int32Array(internedFirst * 2);
  /** How many first numbers `#direct` has an entry for. */
  #directCount = 0;
  /** The pair of each number. */
  #first = new Int32Array(internedFirst);
  #second = new Int32Array(internedFirst);
  #count = 0;
  /** Has all pairs, once many were asked for. */
  #table: PairTable | null = null;
  /** How many pairs were asked for, until they move. */
  #asked = 0;
  /** Whether they may still move: later there would be more of them than others can wait for. */
  #mayMove = true;
  readonly #room: Room;

  /** `room`: for as many pairs as can come. */
  constructor(room: Room) {
    this.#room = room;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#table?.bytes ?? this.#directCount * 8 + this.#slotBytes + this.#count * 8;
  }

  /** The first number of the pair that has that number; of those that `internAny` gave. */
  firstOf(number: number): number {
    return this.#first[number] as number;
  }

  /** The second number of the pair that has that number; of those that `internAny` gave. */
  secondOf(number: number): number {
    return this.#second[number] as number;
  }

  /** The first numbers of the pairs that have those numbers. */
  firsts(numbers: Int32Array): Int32Array {
    if (this.#table !== null) return this.#table.firsts(numbers);
    const firsts = new Int32Array(numbers.length);
    for (let i = 0; i < firsts.length; i++) firsts[i] = this.#first[numbers[i] as number] as number;
    return firsts;
  }

  /** The second numbers of the pairs that have those numbers. */
  seconds(numbers: Int32Array): Int32Array {
    if (this.#table !== null) return this.#table.seconds(numbers);
    const seconds = new Int32Array(numbers.length);
    for (let i = 0; i < seconds.length; i++) seconds[i] = this.#second[numbers[i] as number] as number;
    return seconds;
  }

  /**
   * Replaces each first number by the number of its pair; there are as many second numbers. A first number counts something from 0 on, so
   * that an array by it has few gaps. Pairs that come for the first time get the next numbers in the order in which they come.
   */
  internAll(firsts: Int32Array, seconds: Int32Array): void {
    assert(firsts.length <= seconds.length, () => `${firsts.length} and ${seconds.length} make no pairs`);
    if (this.#mayMove) {
      this.#asked += firsts.length;
      if (this.#room.wantsTable(this.#asked)) this.#move();
    }
    if (this.#table !== null) {
      this.#room.inTable(this.#table, firsts, seconds);
      this.#count = this.#table.count;
      return;
    }
    for (let i = 0; i < firsts.length; i++)
      firsts[i] = this.#intern(firsts[i] as number, seconds[i] as number);
  }

  /** Gives all pairs to a table, if there is one now, in their order, so that they get their numbers again. */
  #move(): void {
    this.#mayMove = false;
    const table = this.#room.pairTable();
    if (table === null) return;
    const numbers = this.#first.slice(0, this.#count);
    this.#room.inTable(table, numbers, this.#second);
    assert(
      table.count === this.#count && (numbers.at(-1) ?? -1) === this.#count - 1,
      () => `${this.#count} pairs became ${table.count}`,
    );
    this.#table = table;
    for (const slots of this.#parts) this.#giveBackPart(slots);
    for (const array of [this.#firstParts, this.#direct, this.#first, this.#second])
      this.#room.giveBack(array);
    this.#parts = [];
    [this.#firstParts, this.#direct, this.#first, this.#second] = [nothing, nothing, nothing, nothing];
  }

  #intern(first: number, second: number): number {
    if (first >= this.#directCount) {
      this.#direct = this.#room.grown(this.#direct, first * 2 + 2, this.#room.countMax * 2);
      this.#direct.fill(0, this.#directCount * 2, first * 2 + 2);
      this.#directCount = first + 1;
    }
    const known = this.#direct[first * 2 + 1] as number;
    if (known === 0) {
      this.#direct[first * 2] = second;
      this.#direct[first * 2 + 1] = this.#hold(first, second) + 1;
      return this.#count - 1;
    }
    return this.#direct[first * 2] === second ? known - 1 : this.internAny(first, second);
  }

  /** Answers the number of a pair whose first number may be of any size. An interner is asked by `internAll` or by this, never by both. */
  internAny(first: number, second: number): number {
    assert(this.#table === null, () => 'pairs that moved are asked for by internAll');
    if (this.#parts.length === 0) this.#makeParts();
    const hash = hashWords(first, second);
    const slots = this.#parts[hash >>> (32 - partBits)] as Int32Array;
    const mask = slots.length - 1;
    let slot = (hash * pairWords) & mask;
    for (;;) {
      const held = slots[slot + 2] as number;
      if (held === 0) return this.#add(hash, slot, first, second);
      if (slots[slot] === first && slots[slot + 1] === second) return held - 1;
      slot = (slot + pairWords) & mask;
    }
  }

  #hold(first: number, second: number): number {
    const number = this.#count++;
    if (number === this.#first.length) {
      this.#first = this.#room.grown(this.#first, number + 1);
      this.#second = this.#room.grown(this.#second, number + 1);
    }
    this.#first[number] = first;
    this.#second[number] = second;
    return number;
  }

  #add(hash: number, slot: number, first: number, second: number): number {
    const number = this.#hold(first, second);
    const part = hash >>> (32 - partBits);
    const slots = this.#parts[part] as Int32Array;
    slots[slot] = first;
    slots[slot + 1] = second;
    slots[slot + 2] = number + 1;
    const held = (this.#held[part] as number) + 1;
    this.#held[part] = held;
    if (held * pairWords > slots.length * (partFullness[part] as number)) this.#grow(part);
    return number;
  }

  #grow(part: number): void {
    const old = this.#parts[part] as Int32Array;
    const slots = this.#room.zeros(old.length * 2);
    const mask = slots.length - 1;
    let moved = 0;
    for (let from = 0; from < old.length; from += pairWords) {
      const number = old[from + 2] as number;
      if (number === 0) continue;
      const [first, second] = [old[from] as number, old[from + 1] as number];
      let slot = (hashWords(first, second) * pairWords) & mask;
      while (slots[slot + 2] !== 0) slot = (slot + pairWords) & mask;
      slots[slot] = first;
      slots[slot + 1] = second;
      slots[slot + 2] = number;
      moved++;
    }
    assert(
      moved === this.#held[part],
      () => `${moved} slots were taken, and ${this.#held[part]} are counted`,
    );
    this.#parts[part] = slots;
    this.#slotBytes += old.byteLength;
    this.#giveBackPart(old);
  }

  #makeParts(): void {
    this.#firstParts = this.#room.zeros((pairSlotsFirst * pairWords) << partBits);
    this.#parts = slotParts(this.#firstParts);
    this.#slotBytes = this.#firstParts.byteLength;
  }

  /** Gives back a part that has an array of its own; those that lie in the first array are given back with that. */
  #giveBackPart(slots: Int32Array): void {
    if (slots.buffer !== this.#firstParts.buffer) this.#room.giveBack(slots);
  }
}
