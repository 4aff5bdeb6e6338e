import { hashBytes } from '../../columns/hash-bytes.ts';
import {
  type Coded,
  type Column,
  type Dictionary,
  type Nulls,
  startOf,
  type Texts,
} from '../frame/column.ts';
import { asTexts, asValues, type Values } from '../frame/column-forms.ts';
import { Room } from '../room.ts';

/**
 * Values → numbers 0, 1, 2 … in the order in which they came first; NULL is a value among them. Open addressing over typed
 * arrays; `bytes` says how much of them is used.
 */
export interface Interner {
  /** Distinct values so far. */
  readonly count: number;
  readonly bytes: number;
  /** The number of NULL; -1 where there was none. */
  readonly nullNumber: number;
  /** Numbers of the column's values in those rows, into `numbers`. */
  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void;
  /** The values of those numbers. */
  valuesOf(numbers: Int32Array): Column;
}

const slotsInitial = 1_024;
/** Highest bits of a hash. */
const partBits = 6;
/** A part is grown when it is fuller: each at another time, though all fill alike. */
const fullnessOf = Float64Array.from(
  { length: 1 << partBits },
  (_, part) => 0.5 + (0.2 * part) / (1 << partBits),
);

/** Slots of an open-addressing table, in parts that grow one by one: a large table never stands still to be made anew. */
class Slots {
  readonly #parts = Array.from({ length: 1 << partBits }, () => new Int32Array(64));
  readonly #held = new Int32Array(1 << partBits);
  #length = 64 << partBits;

  get bytes(): number {
    return this.#length * 4;
  }

  /** The part that a hash belongs to; its slots are numbers plus one, 0 where they are free. */
  of(hash: number): Int32Array {
    return this.#parts[hash >>> (32 - partBits)] as Int32Array;
  }

  /** One more is held. `hashOf` tells the hash of a number. */
  added(hash: number, hashOf: (number: number) => number): void {
    const part = hash >>> (32 - partBits);
    const held = (this.#held[part] as number) + 1;
    this.#held[part] = held;
    const old = this.#parts[part] as Int32Array;
    if (held <= old.length * (fullnessOf[part] as number)) return;
    const slots = new Int32Array(old.length * 2);
    const mask = slots.length - 1;
    for (let i = 0; i < old.length; i++) {
      const number = old[i] as number;
      if (number === 0) continue;
      let slot = hashOf(number - 1) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number;
    }
    this.#parts[part] = slots;
    this.#length += old.length;
  }
}
const smallMax = 65_536;
const loopBytesMax = 96;
/** Of any number, all new. */
const anyRoom = new Room(Number.POSITIVE_INFINITY);

const bits = new Float64Array(1);
const halves = new Int32Array(bits.buffer);

function hashNumber(value: number): number {
  bits[0] = value;
  let hash = Math.imul((halves[0] as number) ^ Math.imul(halves[1] as number, 0x85ebca6b), 0x9e3779b1);
  hash ^= hash >>> 15;
  return hash;
}

const one = new Int32Array(1);
const found = new Int32Array(1);

/** What is known of codes, by what they are of: numbers plus one, 0 where nothing is known yet. */
export class ByCodes {
  readonly #known = new Map<object, Int32Array>();
  readonly #room: Room;
  #bytes = 0;

  /** `room`: for as many codes as can come. */
  constructor(room = anyRoom) {
    this.#room = room;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** With room for so many codes at least. */
  of(codes: object, count: number): Int32Array {
    const known = this.#known.get(codes);
    if (known !== undefined && known.length >= count) return known;
    // Chunks of small parts have dictionaries of their own, which do not come again.
    if (known === undefined && this.#known.size === mapsMax) {
      for (const numbers of this.#known.values()) this.#room.giveBack(numbers);
      this.#known.clear();
      this.#bytes = 0;
    }
    const larger = this.#room.grownWithZeros(known ?? noCodes, Math.max(count, mapFirst));
    this.#bytes += larger.byteLength - (known?.byteLength ?? 0);
    this.#known.set(codes, larger);
    return larger;
  }
}

/** They hold what their codes are of. */
const mapsMax = 4;
const mapFirst = 1_024;
const noCodes = new Int32Array(0);

/** Of every type but text. Integers beyond 2^53 stand in a table of their own, by their halves; so do small ones, by themselves. */
export class NumberInterner implements Interner {
  readonly #slots = new Slots();
  #values = new Float64Array(slotsInitial);
  /** Of whole numbers under `smallMax`: theirs, and one. */
  readonly #small = new Int32Array(smallMax);
  readonly #wide: PairInterner;
  /** Of the pairs of halves. */
  #wideNumbers = new Int32Array(slotsInitial);
  /** By numbers: the pair of halves and one, 0 where there is none. */
  #pairs = new Int32Array(0);
  #count = 0;
  readonly #room: Room;
  readonly #byCodes: ByCodes;
  nullNumber = -1;

  /** `room`: for as many values as can come. */
  constructor(room = anyRoom) {
    this.#room = room;
    this.#wide = new PairInterner(room);
    this.#byCodes = new ByCodes(room);
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    const wide = this.#wide.count === 0 ? 0 : this.#wide.bytes + this.#wide.count * 4 + this.#count * 4;
    return this.#slots.bytes + this.#count * 8 + this.#small.byteLength + wide + this.#byCodes.bytes;
  }

  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void {
    const values = asValues(column, rowCount);
    if (values.coded !== undefined) this.#internCodes(values, values.coded, rows, numbers);
    else this.#internValues(values, rows, numbers);
  }

  #internValues({ kind, values, nulls }: Values, rows: Int32Array, numbers: Int32Array): void {
    if (kind === 'numbers') this.#internNumbers(values, nulls, rows, numbers);
    else this.#internWide(values, nulls, rows, numbers);
  }

  /** A value is looked up when its code comes for the first time. */
  #internCodes(column: Values, { codes, of }: Coded, rows: Int32Array, numbers: Int32Array): void {
    let byCode = this.#byCodes.of(of, 0);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const code = codes[row] as number;
      if (code >= byCode.length) byCode = this.#byCodes.of(of, code + 1);
      let number = (byCode[code] as number) - 1;
      if (number < 0) {
        one[0] = row;
        this.#internValues(column, one, found);
        number = found[0] as number;
        byCode[code] = number + 1;
      }
      numbers[i] = number;
    }
  }

  valuesOf(numbers: Int32Array): Column {
    const nulls = nullsAmong(numbers, this.nullNumber);
    if (this.#wide.count > 0) return { kind: 'wide', values: this.#wideOf(numbers), nulls };
    const values = new Float64Array(numbers.length);
    for (let i = 0; i < values.length; i++) values[i] = this.#values[numbers[i] as number] as number;
    return { kind: 'numbers', values, nulls };
  }

  #wideOf(numbers: Int32Array): BigInt64Array {
    const wide = new BigInt64Array(numbers.length);
    const halves = new Int32Array(wide.buffer);
    const [values, pairs] = [this.#values, this.#pairs];
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers[i] as number;
      const pair = ((pairs[number] as number | undefined) ?? 0) - 1;
      if (pair >= 0) {
        halves[i * 2] = this.#wide.firstOf(pair);
        halves[i * 2 + 1] = this.#wide.secondOf(pair);
        continue;
      }
      const value = values[number] as number;
      const high = Math.floor(value / 0x1_0000_0000);
      halves[i * 2] = value - high * 0x1_0000_0000;
      halves[i * 2 + 1] = high;
    }
    return wide;
  }

  #internNumbers(values: Float64Array, nulls: Nulls, rows: Int32Array, numbers: Int32Array): void {
    const small = this.#small;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const value = values[row] as number;
      if (nulls !== null && nulls[row] === 1) numbers[i] = this.#null();
      else if (value >= 0 && value < smallMax && value === (value | 0)) {
        const known = small[value] as number;
        numbers[i] = known > 0 ? known - 1 : this.#addSmall(value);
      } else numbers[i] = this.#number(value);
    }
  }

  #internWide(values: BigInt64Array, nulls: Nulls, rows: Int32Array, numbers: Int32Array): void {
    const words = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const high = words[row * 2 + 1] as number;
      const low = words[row * 2] as number;
      if (nulls !== null && nulls[row] === 1) numbers[i] = this.#null();
      else if (high >= -0x20_0000 && high < 0x20_0000)
        numbers[i] = this.#narrow(high * 0x1_0000_0000 + (low >>> 0));
      else numbers[i] = this.#big(low, high);
    }
  }

  #null(): number {
    if (this.nullNumber < 0) this.nullNumber = this.#add(0);
    return this.nullNumber;
  }

  #narrow(value: number): number {
    if (value < 0 || value >= smallMax) return this.#number(value);
    const known = this.#small[value] as number;
    return known > 0 ? known - 1 : this.#addSmall(value);
  }

  #addSmall(value: number): number {
    const number = this.#add(value);
    this.#small[value] = number + 1;
    return number;
  }

  #big(low: number, high: number): number {
    const before = this.#wide.count;
    const pair = this.#wide.internAny(low, high);
    if (pair < before) return this.#wideNumbers[pair] as number;
    const number = this.#add(0);
    this.#wideNumbers = this.#room.grown(this.#wideNumbers, pair + 1);
    this.#wideNumbers[pair] = number;
    this.#pairs = this.#room.grownWithZeros(this.#pairs, number + 1);
    this.#pairs[number] = pair + 1;
    return number;
  }

  #number(value: number): number {
    const hash = hashNumber(value);
    const slots = this.#slots.of(hash);
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const held = (slots[slot] as number) - 1;
      if (held < 0) break;
      if (this.#values[held] === value) return held;
      slot = (slot + 1) & mask;
    }
    const number = this.#add(value);
    slots[slot] = number + 1;
    this.#slots.added(hash, this.#hashOf);
    return number;
  }

  readonly #hashOf = (number: number) => hashNumber(this.#values[number] as number);

  #add(value: number): number {
    if (this.#count === this.#values.length) this.#values = this.#room.grown(this.#values, this.#count + 1);
    this.#values[this.#count] = value;
    return this.#count++;
  }
}

/** Each string of a dictionary is looked up once, when a row has it. */
export class TextInterner implements Interner {
  readonly #slots = new Slots();
  #hashes = new Int32Array(slotsInitial);
  #ends = new Uint32Array(slotsInitial);
  #blob = Buffer.from(new ArrayBuffer(slotsInitial * 16));
  #count = 0;
  #blobBytes = 0;
  readonly #room: Room;
  readonly #byCodes: ByCodes;
  /** The same object, however many there are. */
  readonly #dictionary = {
    count: 0,
    bytes: this.#blob,
    ends: this.#ends,
    isDistinct: true,
    codeOf: (text: Buffer) => this.#find(text),
  };
  nullNumber = -1;
  readonly #hashOf = (number: number) => this.#hashes[number] as number;

  /** `room`: for as many strings as can come. */
  constructor(room = anyRoom) {
    this.#room = room;
    this.#byCodes = new ByCodes(room);
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#slots.bytes + this.#count * 8 + this.#blobBytes + this.#byCodes.bytes;
  }

  get dictionary(): Dictionary {
    return this.#dictionary;
  }

  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void {
    const { codes, dictionary, nulls } = asTexts(column, rowCount);
    const byCode = this.#byCodes.of(dictionary, dictionary.count);
    const { bytes } = dictionary;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) {
        numbers[i] = this.#null();
        continue;
      }
      const code = codes[row] as number;
      let number = (byCode[code] as number) - 1;
      if (number < 0) {
        number = this.#number(dictionary, view, code);
        byCode[code] = number + 1;
      }
      numbers[i] = number;
    }
  }

  /** The number of one string. */
  number(text: Buffer): number {
    const ends = Uint32Array.of(text.length);
    const view = new DataView(text.buffer, text.byteOffset, text.byteLength);
    return this.#number({ count: 1, bytes: text, ends }, view, 0);
  }

  valuesOf(numbers: Int32Array): Texts {
    const nulls = nullsAmong(numbers, this.nullNumber);
    return { kind: 'texts', codes: numbers.slice(), dictionary: this.dictionary, nulls };
  }

  #null(): number {
    if (this.nullNumber < 0) this.nullNumber = this.#add(0, 0);
    return this.nullNumber;
  }

  /** -1: it is none of them. */
  #find(text: Buffer): number {
    const hash = hashBytes(new DataView(text.buffer, text.byteOffset, text.length), 0, text.length, 0) | 0;
    return (this.#slots.of(hash)[this.#slotOf(hash, text, 0, text.length)] as number) - 1;
  }

  /** The one that holds it, or the free one in which it would be. */
  #slotOf(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots.of(hash);
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const held = (slots[slot] as number) - 1;
      if (held < 0 || (this.#hashes[held] === hash && this.#equals(held, bytes, start, end))) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #number(dictionary: Dictionary, view: DataView, code: number): number {
    const start = startOf(dictionary, code);
    const end = dictionary.ends[code] as number;
    const hash = hashBytes(view, start, end, 0) | 0;
    const slots = this.#slots.of(hash);
    const slot = this.#slotOf(hash, dictionary.bytes, start, end);
    const held = slots[slot] as number;
    if (held > 0) return held - 1;
    this.#makeRoom(end - start);
    this.#copy(dictionary.bytes, start, end);
    const number = this.#add(hash, end - start);
    slots[slot] = number + 1;
    this.#slots.added(hash, this.#hashOf);
    return number;
  }

  /** A native copy takes longer to begin than a short string takes. */
  #copy(bytes: Buffer, start: number, end: number): void {
    const blob = this.#blob;
    let to = this.#blobBytes;
    if (end - start > loopBytesMax) bytes.copy(blob, to, start, end);
    else for (let i = start; i < end; i++) blob[to++] = bytes[i] as number;
  }

  #equals(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    let at = number === 0 ? 0 : (this.#ends[number - 1] as number);
    if ((this.#ends[number] as number) - at !== end - start) return false;
    const blob = this.#blob;
    for (let i = start; i < end; i++) if (bytes[i] !== blob[at++]) return false;
    return true;
  }

  #add(hash: number, length: number): number {
    if (this.#count === this.#ends.length) {
      this.#ends = this.#room.grown(this.#ends, this.#count + 1);
      this.#hashes = this.#room.grown(this.#hashes, this.#count + 1);
    }
    this.#blobBytes += length;
    this.#ends[this.#count] = this.#blobBytes;
    this.#hashes[this.#count] = hash;
    this.#dictionary.ends = this.#ends;
    this.#dictionary.count = this.#count + 1;
    return this.#count++;
  }

  #makeRoom(bytes: number): void {
    if (this.#blobBytes + bytes <= this.#blob.length) return;
    const wanted = this.#blobBytes + bytes;
    const larger = Buffer.from(new ArrayBuffer(Math.max(wanted, blobLengthAfter(this.#blob.length))));
    this.#blob.copy(larger, 0, 0, this.#blobBytes);
    this.#blob = larger;
    this.#dictionary.bytes = larger;
  }
}

/** Slots of a pair: first, second, number plus one, nothing. All of a look-up lies in one line of the cache. */
const pairWords = 4;
const pairSlotsFirst = 64;

/**
 * Pairs of numbers → numbers: groups of several keys, and the distinct values of each group. The first pair that a first number comes
 * with is found by that number itself: where most have but one, as a user has one region, nothing is hashed. The others by open
 * addressing in parts that grow one by one: a large table never stands still to be made anew.
 */
export class PairInterner {
  readonly #parts = Array.from({ length: 1 << partBits }, () => new Int32Array(pairSlotsFirst * pairWords));
  readonly #held = new Int32Array(1 << partBits);
  #slotBytes = (pairSlotsFirst * pairWords * 4) << partBits;
  /** By first numbers: the second of its first pair, and that pair's number plus one. */
  #direct = new Int32Array(slotsInitial * 2);
  /** Of the first numbers so far. */
  #directCount = 0;
  #first = new Int32Array(slotsInitial);
  #second = new Int32Array(slotsInitial);
  #count = 0;
  readonly #room: Room;

  /** `room`: for as many pairs as can come. */
  constructor(room = anyRoom) {
    this.#room = room;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#directCount * 8 + this.#slotBytes + this.#count * 8;
  }

  firstOf(number: number): number {
    return this.#first[number] as number;
  }

  secondOf(number: number): number {
    return this.#second[number] as number;
  }

  firsts(numbers: Int32Array): Int32Array {
    const firsts = new Int32Array(numbers.length);
    for (let i = 0; i < firsts.length; i++) firsts[i] = this.#first[numbers[i] as number] as number;
    return firsts;
  }

  seconds(numbers: Int32Array): Int32Array {
    const seconds = new Int32Array(numbers.length);
    for (let i = 0; i < seconds.length; i++) seconds[i] = this.#second[numbers[i] as number] as number;
    return seconds;
  }

  /** The numbers of all pairs, in place of their firsts. */
  internAll(firsts: Int32Array, seconds: Int32Array): void {
    for (let i = 0; i < firsts.length; i++)
      firsts[i] = this.intern(firsts[i] as number, seconds[i] as number);
  }

  /** Of a first number that counts something: the numbers below it come too. */
  intern(first: number, second: number): number {
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

  /** As `intern`, for any numbers; one interner is asked in one of both ways. */
  internAny(first: number, second: number): number {
    const hash = hashPair(first, second);
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
    if (held * pairWords > slots.length * (fullnessOf[part] as number)) this.#grow(part);
    return number;
  }

  #grow(part: number): void {
    const old = this.#parts[part] as Int32Array;
    const slots = this.#room.zeros(old.length * 2);
    const mask = slots.length - 1;
    for (let from = 0; from < old.length; from += pairWords) {
      const number = old[from + 2] as number;
      if (number === 0) continue;
      const [first, second] = [old[from] as number, old[from + 1] as number];
      let slot = (hashPair(first, second) * pairWords) & mask;
      while (slots[slot + 2] !== 0) slot = (slot + pairWords) & mask;
      slots[slot] = first;
      slots[slot + 1] = second;
      slots[slot + 2] = number;
    }
    this.#parts[part] = slots;
    this.#slotBytes += old.byteLength;
    this.#room.giveBack(old);
  }
}

/** 1 for each of the numbers that is NULL's. */
export function nullsAmong(numbers: Int32Array, nullNumber: number): Nulls {
  if (nullNumber < 0) return null;
  const nulls = new Uint8Array(numbers.length);
  for (let i = 0; i < nulls.length; i++) nulls[i] = Number(numbers[i] === nullNumber);
  return nulls;
}

/** As a Room grows, for bytes: how many there will be nobody knows. */
function blobLengthAfter(length: number): number {
  return length >= blobLarge && length < blobRoom ? blobRoom : length * 2;
}

const blobLarge = 2 ** 20;
const blobRoom = 2 ** 25;

function hashPair(first: number, second: number): number {
  const hash = Math.imul(first ^ Math.imul(second, 0x85ebca6b), 0x9e3779b1);
  return hash ^ (hash >>> 15);
}
