/**
 * Scalars as JSON, one behind the other in bytes of a fixed size. There is no check of it: who writes has seen to the room, and looks
 * at `at` afterwards, because what went past the end is lost.
 *
 * Hot: every value of an import passes here. A native call costs about 100 ns before its first byte, so that short ones are written
 * by loops.
 */
import type { ViewedBytes } from '../../src/base/viewed-bytes.ts';

/** How many bytes an escaped byte of a string takes at most: a control character becomes six. */
export const escapedBytesMax = 6;
/** What a number or a truth value takes as JSON at most: `-1.7976931348623157e+308`, and a fraction behind it. */
export const scalarBytesMax = 32;

/** `decimal` takes no larger one. */
export const decimalScaleMax = 9;

const loopBytesMax = 48;
const quote = 0x22;
const point = 0x2e;
const zero = 0x30;
const minus = 0x2d;
const billion = 1e9;
const billionDigits = 9;

/** 1 for bytes that JSON escapes in a string. */
const escapes = new Uint8Array(256).fill(1, 0, 0x20);
escapes[quote] = 1;
escapes[0x5c] = 1;

/** A text that is written often, as words of four bytes. */
export class WordText {
  readonly words: Int32Array;
  /** Bytes of the text. */
  readonly length: number;

  constructor(text: string) {
    const bytes = Buffer.from(text);
    this.length = bytes.length;
    this.words = new Int32Array(Math.ceil(bytes.length / 4));
    bytes.copy(new Uint8Array(this.words.buffer));
  }
}

export class JsonBytes {
  readonly bytes: Buffer;
  /** The same. */
  readonly view: DataView;
  /** The place of the next byte. */
  at = 0;

  constructor(buffer: ArrayBufferLike) {
    this.bytes = Buffer.from(buffer);
    this.view = new DataView(buffer);
  }

  byte(byte: number): void {
    this.bytes[this.at++] = byte;
  }

  copy(source: Buffer, start: number, end: number): void {
    if (end - start > loopBytesMax) {
      this.at += source.copy(this.bytes, this.at, start, end);
      return;
    }
    const { bytes } = this;
    let to = this.at;
    for (let at = start; at < end; at++) bytes[to++] = source[at] as number;
    this.at = to;
  }

  /** Writes a text of words; what comes behind it is written over its last word. Throws a RangeError where there is no room for that: its writer leaves more. */
  words({ words, length }: WordText): void {
    const { view, at } = this;
    for (let word = 0, to = at; word < words.length; word++, to += 4)
      view.setInt32(to, words[word] as number, true);
    this.at = at + length;
  }

  /** Digits of a whole number within 2^53, with a minus before them where it is negative; answers the number without it. */
  digits(source: Buffer, start: number, end: number, isNegative: boolean): number {
    const { bytes } = this;
    let to = this.at;
    let value = 0;
    if (isNegative) bytes[to++] = minus;
    for (let at = start; at < end; at++) {
      const byte = source[at] as number;
      bytes[to++] = byte;
      value = value * 10 + (byte - zero);
    }
    this.at = to;
    return value;
  }

  /** The first `count` numbers as they are in memory, of 32 bits each. */
  floats(numbers: Float32Array, count: number): void {
    const { view, at } = this;
    for (let number = 0; number < count; number++)
      view.setFloat32(at + number * 4, numbers[number] as number, true);
    this.at = at + count * 4;
  }

  ascii(text: string): void {
    const { bytes } = this;
    let to = this.at;
    for (let at = 0; at < text.length; at++) bytes[to++] = text.charCodeAt(at);
    this.at = to;
  }

  /** A string of bytes of which none must be escaped. */
  plainString(source: Buffer, start: number, end: number): void {
    this.bytes[this.at++] = quote;
    this.copy(source, start, end);
    this.bytes[this.at++] = quote;
  }

  /** A string. False where some of it is not ASCII. */
  string({ bytes: source, view }: ViewedBytes, start: number, end: number): boolean {
    const { bytes, view: target } = this;
    let at = start;
    let to = this.at;
    let seen = 0;
    bytes[to++] = quote;
    // Four bytes at a time, until one of them must be escaped; what was copied behind it is written over.
    while (at < end) {
      for (; at + 4 <= end; at += 4, to += 4) {
        const word = view.getInt32(at, true);
        if (mustEscape(word)) break;
        seen |= word;
        target.setInt32(to, word, true);
      }
      const stop = Math.min(end, at + 4);
      for (; at < stop; at++) {
        const byte = source[at] as number;
        seen |= byte;
        if (escapes[byte] === 0) bytes[to++] = byte;
        else {
          this.at = to;
          this.ascii(JSON.stringify(String.fromCharCode(byte)).slice(1, -1));
          to = this.at;
        }
      }
    }
    bytes[to++] = quote;
    this.at = to;
    return (seen & 0x80808080) === 0;
  }

  /** A whole number within 2^53. */
  integer(value: number): void {
    if (value < 0) {
      this.bytes[this.at++] = minus;
      this.#natural(-value);
    } else this.#natural(value);
  }

  /** A whole number of 64 bits, by its halves. */
  wideInteger(low: number, high: number): void {
    let [mostly, rest] = [high, low >>> 0];
    if (mostly < 0) {
      this.bytes[this.at++] = minus;
      rest = -rest >>> 0;
      mostly = rest === 0 ? -mostly : ~mostly;
    }
    mostly >>>= 0;
    // Sixteen bits at a time: no product is over 2^53.
    const first = Math.floor(mostly / billion);
    const middle = (mostly % billion) * 0x10000 + (rest >>> 16);
    const second = Math.floor(middle / billion);
    const last = (middle - second * billion) * 0x10000 + (rest & 0xffff);
    const third = Math.floor(last / billion);
    const billions = first * 2 ** 32 + second * 0x10000 + third;
    const low9 = last - third * billion;
    if (billions === 0) this.#natural(low9);
    else {
      this.#natural(billions);
      this.#digits(low9, billionDigits);
    }
  }

  /** Writes a double as `String` does; a whole one gets a fraction, so that it stays a float. */
  double(value: number): void {
    const magnitude = Math.abs(value);
    // With so few digits a decimal is the only one of its length that is read as this double, and no shorter one is.
    if (magnitude < fewDigitsBelow && magnitude >= fewDigitsFrom) {
      for (let digits = 1, power = 10; digits <= fractionDigitsMax; digits++, power *= 10) {
        const scaled = Math.round(magnitude * power);
        if (scaled / power !== magnitude) continue;
        if (value < 0) this.bytes[this.at++] = minus;
        const whole = Math.floor(magnitude);
        this.#natural(whole);
        this.bytes[this.at++] = point;
        this.#digits(scaled - whole * power, digits);
        return;
      }
    }
    // `String` forgets the sign of a zero.
    const text = Object.is(value, -0) ? '-0' : String(value);
    this.ascii(text);
    if (Number.isInteger(value) && !text.includes('e')) this.ascii('.0');
  }

  /** `value` / 10^`scale`, all digits written out: `value` is a whole number within 2^53. */
  decimal(value: number, scale: number): void {
    if (value < 0) this.bytes[this.at++] = minus;
    const magnitude = Math.abs(value);
    const power = 10 ** scale;
    const whole = Math.floor(magnitude / power);
    this.#natural(whole);
    this.bytes[this.at++] = point;
    this.#digits(magnitude - whole * power, Math.max(1, scale));
  }

  #natural(value: number): void {
    if (value >= billion) {
      const billions = Math.floor(value / billion);
      this.#natural(billions);
      this.#digits(value - billions * billion, billionDigits);
      return;
    }
    let count = 1;
    for (let bound = 10; value >= bound; bound *= 10) count++;
    this.#digits(value, count);
  }

  /** So many digits, zeros before them: of less than 2^31. */
  #digits(value: number, count: number): void {
    const { bytes } = this;
    let left = value | 0;
    for (let at = this.at + count - 1; at >= this.at; at--) {
      const rest = (left / 10) | 0;
      bytes[at] = zero + left - rest * 10;
      left = rest;
    }
    this.at += count;
  }
}

/** Doubles in between have at most 15 digits with so many behind the point. */
const fractionDigitsMax = 4;
const fewDigitsBelow = 1e9;
/** `String` writes smaller ones by an exponent. */
const fewDigitsFrom = 1e-6;

/** Answers whether one of a word's four bytes is a quote, a backslash or a control character; it may say so of bytes that are not ASCII. */
function mustEscape(word: number): boolean {
  const quotes = word ^ 0x22222222;
  const slashes = word ^ 0x5c5c5c5c;
  const marks =
    ((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes) | ((word - 0x20202020) & ~word);
  return (marks & 0x80808080) !== 0;
}
