import { copyInto, type JsonScan, unescapeInto } from '../../src/base/json-scanner.ts';
import { hashBytes } from './hash-bytes.ts';

/**
 * The distinct strings of a chunk, each under the key whose values it is one of. Open addressing over bytes, of a fixed
 * size: nothing is made for a string that is there already. Hot: every string of every meta is looked up once.
 */
export const stringsMax = 1 << 18;
/** Strings beyond it are not held: whoever filters by them has the document read. */
export const stringBytesMax = 1_024;

const slotCount = stringsMax * 2;
/** Half of the slots are free, so that runs as long as this one are made by somebody: their strings are not held. */
const probesMax = 128;
export const noString = -1;
/** A native copy costs about 100 ns before its first byte. */
const loopBytesMax = 64;

export class StringTable {
  readonly #bytes: Buffer;
  readonly #target: { readonly bytes: Buffer; readonly view: DataView };
  /** Number of the string plus one; 0 is free. */
  readonly #slots = new Int32Array(slotCount);
  readonly #slotOf = new Uint32Array(stringsMax);
  readonly #starts = new Uint32Array(stringsMax + 1);
  readonly #keys = new Uint16Array(stringsMax);
  /** For whoever numbers the strings of one key; -1 until then. */
  readonly codes = new Int32Array(stringsMax);
  #count = 0;

  /** `bytesMax` of all strings together; the caller asks for `bytes` before each row. */
  constructor(bytesMax: number) {
    this.#bytes = Buffer.from(new ArrayBuffer(bytesMax));
    this.#target = { bytes: this.#bytes, view: new DataView(this.#bytes.buffer) };
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#starts[this.#count] as number;
  }

  copyTo(string: number, target: Buffer, at: number): void {
    const start = this.#starts[string] as number;
    const end = this.#starts[string + 1] as number;
    if (end - start > loopBytesMax) {
      this.#bytes.copy(target, at, start, end);
      return;
    }
    for (let from = start, to = at; from < end; from++, to++) target[to] = this.#bytes[from] as number;
  }

  length(string: number): number {
    return (this.#starts[string + 1] as number) - (this.#starts[string] as number);
  }

  /** The number of the string that the scan has just passed, `noString` where it is not held. */
  add(scan: JsonScan, key: number): number {
    const range = { start: scan.stringStart, end: scan.stringEnd };
    if (range.end - range.start > stringBytesMax) return noString;
    const start = this.bytes;
    const end = scan.stringEscaped
      ? unescapeInto(scan, range, this.#target, start)
      : copyInto(scan, range, this.#target, start);
    let slot = hashBytes(this.#target.view, start, end, key) & (slotCount - 1);
    for (let probe = 0; probe < probesMax; probe++) {
      const held = (this.#slots[slot] as number) - 1;
      if (held < 0) return this.#hold(slot, end, key);
      if (this.#keys[held] === key && this.#equals(held, start, end)) return held;
      slot = (slot + 1) & (slotCount - 1);
    }
    return noString;
  }

  clear(): void {
    for (let string = 0; string < this.#count; string++) this.#slots[this.#slotOf[string] as number] = 0;
    this.#count = 0;
  }

  /** It lies behind the last one already. */
  #hold(slot: number, end: number, key: number): number {
    const string = this.#count++;
    this.#slots[slot] = this.#count;
    this.#slotOf[string] = slot;
    this.#keys[string] = key;
    this.codes[string] = -1;
    this.#starts[this.#count] = end;
    return string;
  }

  #equals(string: number, start: number, end: number): boolean {
    const bytes = this.#bytes;
    let at = this.#starts[string] as number;
    if ((this.#starts[string + 1] as number) - at !== end - start) return false;
    for (let i = start; i < end; i++) if (bytes[i] !== bytes[at++]) return false;
    return true;
  }
}
