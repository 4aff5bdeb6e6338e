/**
 * The distinct strings of one key in a chunk, numbered as they come. Open addressing over bytes: nothing is made for a string that
 * is there already. Hot: every string of every meta is looked up once.
 */
import { type JsonScan, unescapeInto } from '../../src/base/json-scanner.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import { hashBytes } from './hash-bytes.ts';

/** Strings beyond it are not held: whoever filters by them has the document read. */
export const stringBytesMax = 1_024;

const slotsFirst = 64;
const bytesFirst = 1_024;
/** What copying by words may write behind a string. */
const bytesSlack = 8;
/** Half of the slots are free, so that runs as long as this one are made by somebody: their strings are not held. */
const probesMax = 128;
export const noString = -1;
/** A native copy costs about 100 ns before its first byte. */
const loopBytesMax = 128;

function viewedBytes(bytes: number): ViewedBytes {
  return viewed(Buffer.from(new ArrayBuffer(bytes)));
}

/** The string that is looked for, without its escapes. */
let unescaped: ViewedBytes | null = null;

export class StringTable {
  #target = viewedBytes(bytesFirst);
  /** Number of the string plus one; 0 is free. */
  #slots = new Int32Array(slotsFirst);
  #hashes = new Uint32Array(slotsFirst / 2);
  #ends = new Uint32Array(slotsFirst / 2);
  #count = 0;
  #bytes = 0;
  /** The string that was asked for last: values come in runs. */
  #last = noString;

  get count(): number {
    return this.#count;
  }

  /** Bytes of all strings together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What it holds in memory. */
  get heldBytes(): number {
    return this.#target.bytes.length + this.#slots.byteLength * 2;
  }

  /** All strings, one behind the other in the order of their numbers, and where each of them ends. */
  copyAllTo(target: Buffer, at: number, ends: Uint32Array): void {
    this.#target.bytes.copy(target, at, 0, this.#bytes);
    ends.set(this.#ends.subarray(0, this.#count));
  }

  copyTo(string: number, target: Buffer, at: number): void {
    const start = this.#start(string);
    const end = this.#ends[string] as number;
    const { bytes } = this.#target;
    if (end - start > loopBytesMax) {
      bytes.copy(target, at, start, end);
      return;
    }
    for (let from = start, to = at; from < end; from++, to++) target[to] = bytes[from] as number;
  }

  length(string: number): number {
    return (this.#ends[string] as number) - this.#start(string);
  }

  /** The number of the string that the scan has just passed, `noString` where it is not held. */
  add(scan: JsonScan): number {
    const { stringStart: start, stringEnd: end } = scan;
    if (!scan.stringEscaped) return this.addBytes(scan, start, end);
    if (end - start > stringBytesMax) return noString;
    unescaped ??= viewedBytes(stringBytesMax + bytesSlack);
    return this.addBytes(unescaped, 0, unescapeInto(scan, { start, end }, unescaped, 0));
  }

  /** The number of the string that those bytes of a source are, `noString` where it is not held. */
  addBytes({ bytes: source, view }: ViewedBytes, start: number, end: number): number {
    const length = end - start;
    if (length > stringBytesMax) return noString;
    if (this.#last !== noString && this.#isAt(this.#last, view, start, length)) return this.#last;
    const hash = hashBytes(view, start, end, 0);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let probe = 0; probe < probesMax; probe++) {
      const held = (this.#slots[slot] as number) - 1;
      if (held < 0) {
        this.#makeRoom(length);
        this.#copyIn(source, view, start, end);
        this.#last = this.#hold(slot, hash, this.#bytes + length);
        return this.#last;
      }
      if (this.#hashes[held] === hash && this.#isAt(held, view, start, length)) {
        this.#last = held;
        return held;
      }
      slot = (slot + 1) & mask;
    }
    return noString;
  }

  /** `keeps`: its memory, for other strings. */
  clear({ keeps }: { readonly keeps: boolean }): void {
    if (!keeps) {
      this.#target = viewedBytes(bytesFirst);
      this.#slots = new Int32Array(slotsFirst);
      this.#hashes = new Uint32Array(slotsFirst / 2);
      this.#ends = new Uint32Array(slotsFirst / 2);
    } else this.#slots.fill(0);
    this.#count = 0;
    this.#bytes = 0;
    this.#last = noString;
  }

  /** Short ones by words. */
  #copyIn(source: Buffer, from: DataView, start: number, end: number): void {
    const { bytes, view } = this.#target;
    if (end - start > loopBytesMax) {
      source.copy(bytes, this.#bytes, start, end);
      return;
    }
    let [at, to] = [start, this.#bytes];
    for (; at + 4 <= end; at += 4, to += 4) view.setInt32(to, from.getInt32(at, true), true);
    for (; at < end; at++, to++) bytes[to] = source[at] as number;
  }

  #start(string: number): number {
    return string === 0 ? 0 : (this.#ends[string - 1] as number);
  }

  /** By words. */
  #isAt(string: number, source: DataView, from: number, length: number): boolean {
    const start = this.#start(string);
    if ((this.#ends[string] as number) - start !== length) return false;
    const { view } = this.#target;
    let at = 0;
    for (; at + 4 <= length; at += 4)
      if (view.getInt32(start + at, true) !== source.getInt32(from + at, true)) return false;
    for (; at < length; at++) if (view.getUint8(start + at) !== source.getUint8(from + at)) return false;
    return true;
  }

  #hold(slot: number, hash: number, end: number): number {
    const string = this.#count++;
    this.#slots[slot] = this.#count;
    this.#hashes[string] = hash;
    this.#ends[string] = end;
    this.#bytes = end;
    if (this.#count * 2 === this.#slots.length) this.#grow();
    return string;
  }

  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let string = 0; string < this.#count; string++) {
      let slot = (this.#hashes[string] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = string + 1;
    }
    this.#slots = slots;
    this.#hashes = grown(this.#hashes);
    this.#ends = grown(this.#ends);
  }

  #makeRoom(length: number): void {
    const needed = this.#bytes + length + bytesSlack;
    if (needed <= this.#target.bytes.length) return;
    const larger = viewedBytes(Math.max(needed, this.#target.bytes.length * 2));
    this.#target.bytes.copy(larger.bytes, 0, 0, this.#bytes);
    this.#target = larger;
  }
}

function grown(array: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
}
