import { assert } from '../../../src/base/assert.ts';
import { hashBytes } from '../../columns/hash-bytes.ts';
import { type Column, type Dictionary, startOf, type Texts } from '../frame/column.ts';
import { asTexts } from '../frame/column-forms.ts';
import type { SqlTurns } from '../interruption.ts';
import type { Room } from '../room.ts';
import { ByCodes } from './by-codes.ts';
import { HashSlots } from './hash-slots.ts';
import { hashSecret } from './hash-words.ts';
import { type Interner, internedFirst, nullsAmong } from './interner.ts';

const bytesOfTextFirst = 16;
/** Strings up to that length are copied by a loop: a native copy takes longer to begin. */
const loopBytesMax = 96;

/**
 * Gives distinct strings their numbers, which are the codes of its own dictionary. A string of another dictionary is looked up
 * once, when a row has it.
 */
export class TextInterner implements Interner {
  readonly #slots = new HashSlots();
  /** The hash of each number's string, and where the string ends in `#blob`. */
  #hashes = new Int32Array(internedFirst);
  #ends = new Uint32Array(internedFirst);
  #blob: Buffer<ArrayBuffer>;
  #count = 0;
  #blobBytes = 0;
  readonly #room: Room;
  readonly #byCodes: ByCodes;
  /** What codes belong to: the same object however many strings there are, so that what is known of its codes stays known. */
  readonly #dictionary;
  nullNumber = -1;
  readonly #hashOf = (number: number) => this.#hashes[number] as number;

  /** `room`: for as many strings as can come. */
  constructor(room: Room) {
    this.#room = room;
    this.#blob = room.bytes(internedFirst * bytesOfTextFirst);
    this.#dictionary = {
      count: 0,
      bytes: this.#blob,
      ends: this.#ends,
      isDistinct: true,
      codeOf: (text: Buffer) => this.#find(text),
    };
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
    assert(
      this.#dictionary.count === this.#count,
      () => `${this.#count} strings, of which the dictionary has ${this.#dictionary.count}`,
    );
  }

  /** Answers the number of one string. */
  number(text: Buffer): number {
    const ends = Uint32Array.of(text.length);
    const view = new DataView(text.buffer, text.byteOffset, text.byteLength);
    return this.#number({ count: 1, bytes: text, ends }, view, 0);
  }

  /**
   * Whether one more string of so many bytes would have all strings copied at once, and for longer than a turn. Whoever can wait has
   * `growInTurns` do that before.
   */
  isLongToGrow(bytes: number): boolean {
    return this.#blobBytes > longCopyBytes && this.#blobBytes + bytes > this.#blob.length;
  }

  /** Makes room for one more string of so many bytes, in turns. No string may come meanwhile. There is no room where the time is over before. */
  async growInTurns(bytes: number, turns: SqlTurns): Promise<void> {
    const held = this.#blobBytes;
    const larger = this.#largerBlob(bytes);
    for (let at = 0; at < held; at += copiedAtOnceBytes) {
      this.#blob.copy(larger, at, at, Math.min(at + copiedAtOnceBytes, held));
      if (!turns.due()) continue;
      await turns.giveWay();
      if (turns.timedOut) return;
    }
    assert(this.#blobBytes === held, () => `${this.#blobBytes - held} bytes came while room was made`);
    this.#moveTo(larger);
  }

  valuesOf(numbers: Int32Array): Texts {
    const nulls = nullsAmong(numbers, this.nullNumber);
    return { kind: 'texts', codes: numbers.slice(), dictionary: this.dictionary, nulls };
  }

  #null(): number {
    if (this.nullNumber < 0) this.nullNumber = this.#add(0, 0);
    return this.nullNumber;
  }

  /** Answers the number of a string, or -1 where it did not come. */
  #find(text: Buffer): number {
    const hash =
      hashBytes(new DataView(text.buffer, text.byteOffset, text.length), 0, text.length, hashSecret) | 0;
    return (this.#slots.of(hash)[this.#slotOf(hash, text, 0, text.length)] as number) - 1;
  }

  /** Answers the slot that holds a string, or the free one in which it would be. */
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
    const hash = hashBytes(view, start, end, hashSecret) | 0;
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
    const larger = this.#largerBlob(bytes);
    this.#blob.copy(larger, 0, 0, this.#blobBytes);
    this.#moveTo(larger);
  }

  #largerBlob(bytes: number): Buffer<ArrayBuffer> {
    const wanted = this.#blobBytes + bytes;
    return this.#room.bytes(Math.max(wanted, blobLengthAfter(this.#blob.length)));
  }

  #moveTo(larger: Buffer<ArrayBuffer>): void {
    this.#room.giveBackBytes(this.#blob);
    this.#blob = larger;
    this.#dictionary.bytes = larger;
  }
}

/** Answers the next length of the strings' bytes. They grow as a Room's arrays do, although nobody knows how many will come. */
function blobLengthAfter(length: number): number {
  return length >= largeBlobBytes && length < roomyBlobBytes ? roomyBlobBytes : length * 2;
}

/** New memory takes up to 4 ms a megabyte to write to, where the machine has to get it first. */
const longCopyBytes = 2 ** 21;
const copiedAtOnceBytes = 2 ** 18;
const largeBlobBytes = 2 ** 20;
const roomyBlobBytes = 2 ** 25;
