import { exactDigitsMax } from './decimal.ts';
import type { ViewedBytes } from './viewed-bytes.ts';

/**
 * The JSON grammar (RFC 8259) over bytes that are known to be valid UTF-8, without making values: where a string
 * ends, where a value ends, what an escaped string means. It accepts exactly what JSON.parse accepts, except for
 * depth, which the caller bounds. Nothing here recurses and nothing allocates per value.
 *
 * Hot: every byte of every write passes through `stringEnd`. Looking at eight bytes a turn reads 2.3 GB/s where a
 * table look-up per byte reads 0.6, and unescaping by words copies 1.3 GB/s where bytes copy 0.5 (two-core virtual
 * machine, Node 20). Whole bodies: test/bench/parse-write.bench.ts.
 */
export class JsonSyntaxError extends Error {
  override name = 'JsonSyntaxError';
  /** Byte offset in the scanned bytes. */
  readonly offset: number;
  /** `depth` and `size` where the input may be JSON but nests deeper, or has more values, than the caller allows. */
  readonly kind: 'syntax' | 'depth' | 'size';

  constructor(message: string, offset: number, kind: 'syntax' | 'depth' | 'size' = 'syntax') {
    super(message);
    this.offset = offset;
    this.kind = kind;
  }
}

/** A place in some bytes. Functions below move `position` and fill the fields that describe what they passed. */
export interface JsonScan {
  readonly bytes: Buffer;
  /** The same bytes. */
  readonly view: DataView;
  position: number;
  /** The last string's content, between its quotes, as it is written. */
  stringStart: number;
  stringEnd: number;
  stringEscaped: boolean;
  /** Set, never cleared, when a string holds an escaped half of a surrogate pair. */
  loneSurrogate: boolean;
  /** Set, never cleared, when a number has a run of 16 digits or more: it may not fit a double. */
  longNumber: boolean;
  /** Set, never cleared, when `skipValue` passes a key that is written with an escape. */
  escapedKey: boolean;
}

export interface ByteSpan {
  readonly start: number;
  readonly end: number;
}

export const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

/** What `nextByte` answers when nothing is left. */
export const noByte = -1;

/** More levels than any caller allows; the stack below has one byte a level. */
const levelsMax = 256;

/** 1 for bytes that end a plain run inside a string: control bytes, quote, backslash. */
const stops = new Uint8Array(256).fill(1, 0, 0x20);
stops[code.quote] = 1;
stops[code.backslash] = 1;

/** What follows a backslash → the byte that it means; 0 for everything else, `u` too. */
const simpleEscapes = new Uint8Array(256);
for (const [letter, meaning] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  simpleEscapes[(letter as string).charCodeAt(0)] = (meaning as string).charCodeAt(0);
}

const hexDigits = new Int8Array(256).fill(-1);
for (let digit = 0; digit < 16; digit++) {
  hexDigits[digit.toString(16).charCodeAt(0)] = digit;
  hexDigits[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}

/** Starts at byte 0. The bytes are not copied. */
export function openScan(input: Uint8Array): JsonScan {
  return {
    // Always a Buffer, so that the loops below meet one hidden class.
    bytes: Buffer.from(input.buffer, input.byteOffset, input.byteLength),
    view: new DataView(input.buffer, input.byteOffset, input.byteLength),
    position: 0,
    stringStart: 0,
    stringEnd: 0,
    stringEscaped: false,
    loneSurrogate: false,
    longNumber: false,
    escapedKey: false,
  };
}

/** Passes whitespace and returns the byte there, without passing it, or `noByte`. */
export function nextByte(scan: JsonScan): number {
  scan.position = spaceEnd(scan.bytes, scan.position);
  return byteAt(scan.bytes, scan.position);
}

function byteAt(bytes: Buffer, at: number): number {
  return at < bytes.length ? (bytes[at] as number) : noByte;
}

function spaceEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break;
  }
  return at;
}

/** At a quote: passes the string, checks its escapes, and tells where its content lies. */
export function scanString(scan: JsonScan): void {
  scan.stringEscaped = false;
  scan.stringStart = scan.position + 1;
  scan.stringEnd = stringEnd(scan, scan.stringStart);
  scan.position = scan.stringEnd + 1;
}

/** From a string's first byte to its closing quote. */
function stringEnd(scan: JsonScan, start: number): number {
  const bytes = scan.bytes;
  const end = bytes.length;
  let at = start;
  for (;;) {
    at = plainRunEnd(scan, at);
    if (at >= end) throw new JsonSyntaxError('a string does not end', start - 1);
    const byte = bytes[at] as number;
    if (byte === code.quote) return at;
    if (byte !== code.backslash) throw new JsonSyntaxError('a control character must be escaped', at);
    scan.stringEscaped = true;
    // Escapes often follow one another: whole texts of \uXXXX.
    do {
      const isSimple = at + 1 < end && simpleEscapes[bytes[at + 1] as number] !== 0;
      at = isSimple ? at + 2 : unicodeEscapeEnd(scan, at);
    } while (at < end && bytes[at] === code.backslash);
  }
}

/**
 * The first byte from here on that is no plain part of a string.
 *
 * Of the bytes x of a word, `(x ^ 2) - 0x21` borrows for control bytes and the quote, `(x ^ 0x5c) - 1` for the
 * backslash; the high bit of x itself, a byte of a longer character, is masked out. A borrow may reach into the next
 * byte, so only the lowest mark is exact.
 */
function plainRunEnd(scan: JsonScan, from: number): number {
  const { bytes, view } = scan;
  const end = bytes.length;
  let at = from;
  for (; at + 8 <= end; at += 8) {
    const low = view.getInt32(at, true);
    const high = view.getInt32(at + 4, true);
    const lowMarks =
      (((low ^ 0x02020202) - 0x21212121) | ((low ^ 0x5c5c5c5c) - 0x01010101)) & ~low & 0x80808080;
    if (lowMarks !== 0) return at + lowestMark(lowMarks);
    const highMarks =
      (((high ^ 0x02020202) - 0x21212121) | ((high ^ 0x5c5c5c5c) - 0x01010101)) & ~high & 0x80808080;
    if (highMarks !== 0) return at + 4 + lowestMark(highMarks);
  }
  while (at < end && stops[bytes[at] as number] === 0) at++;
  return at;
}

/** Index of the lowest byte of a word whose high bit is set. */
function lowestMark(marks: number): number {
  return (31 - Math.clz32(marks & -marks)) >> 3;
}

/** At the backslash of `\u`: checks it and returns where it ends, a surrogate pair as one. */
function unicodeEscapeEnd(scan: JsonScan, at: number): number {
  const unit = escapedUnit(scan.bytes, at);
  if (unit < 0) throw new JsonSyntaxError('an unknown escape', at);
  if (unit < 0xd800 || unit > 0xdfff) return at + 6;
  const low = unit < 0xdc00 ? escapedUnit(scan.bytes, at + 6) : -1;
  if (low >= 0xdc00 && low <= 0xdfff) return at + 12;
  scan.loneSurrogate = true;
  return at + 6;
}

/** The UTF-16 unit of `\uXXXX` at this place, or a negative number. */
function escapedUnit(bytes: Buffer, at: number): number {
  if (at + 6 > bytes.length || bytes[at] !== code.backslash || bytes[at + 1] !== 0x75) return -1;
  return (
    ((hexDigits[bytes[at + 2] as number] as number) << 12) |
    ((hexDigits[bytes[at + 3] as number] as number) << 8) |
    ((hexDigits[bytes[at + 4] as number] as number) << 4) |
    (hexDigits[bytes[at + 5] as number] as number)
  );
}

/**
 * Writes the meaning of a scanned string's content as UTF-8 at `target[at]` and returns where it ends. The target has
 * room for the content as it is written: the meaning never takes more, but bytes after it may be overwritten. The
 * caller has refused lone surrogates; one that comes through becomes U+FFFD.
 */
export function unescapeInto(scan: JsonScan, range: ByteSpan, target: ViewedBytes, at: number): number {
  const source = scan.bytes;
  const sourceView = scan.view;
  const out = target.bytes;
  const outView = target.view;
  const end = range.end;
  let from = range.start;
  let to = at;
  for (;;) {
    // Copies words until one holds a backslash; that word is copied too, and overwritten from the backslash on.
    while (from + 4 <= end) {
      const word = sourceView.getInt32(from, true);
      outView.setInt32(to, word, true);
      const backslashes = word ^ 0x5c5c5c5c;
      const marks = (backslashes - 0x01010101) & ~backslashes & 0x80808080;
      const plain = marks === 0 ? 4 : lowestMark(marks);
      from += plain;
      to += plain;
      if (marks !== 0) break;
    }
    while (from < end && source[from] === code.backslash) {
      const simple = simpleEscapes[source[from + 1] as number] as number;
      if (simple !== 0) {
        out[to++] = simple;
        from += 2;
        continue;
      }
      const point = escapedPoint(source, from);
      from += point > 0xffff ? 12 : 6;
      to = writePoint(out, to, point);
    }
    if (from >= end) return to;
    // No backslash, and perhaps one of the last three bytes, too few for a word.
    out[to++] = source[from++] as number;
  }
}

/** Copies bytes of the scan and returns where they end in the target: by words, or natively where that is faster. */
export function copyInto(scan: JsonScan, range: ByteSpan, target: ViewedBytes, at: number): number {
  const source = scan.view;
  const out = target.view;
  const end = range.end;
  let from = range.start;
  let to = at;
  if (end - from > wordCopyBytesMax) {
    scan.bytes.copy(target.bytes, to, from, end);
    return to + end - from;
  }
  for (; from + 4 <= end; from += 4, to += 4) out.setInt32(to, source.getInt32(from, true), true);
  for (; from < end; from++, to++) out.setUint8(to, source.getUint8(from));
  return to;
}

/** A native copy costs about 100 ns before its first byte. */
const wordCopyBytesMax = 256;

function escapedPoint(source: Buffer, at: number): number {
  const unit = escapedUnit(source, at);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  const low = unit < 0xdc00 ? escapedUnit(source, at + 6) : -1;
  if (low < 0xdc00 || low > 0xdfff) return 0xfffd;
  return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

function writePoint(target: Buffer, at: number, point: number): number {
  if (point < 0x80) {
    target[at] = point;
    return at + 1;
  }
  if (point < 0x800) {
    target[at] = 0xc0 | (point >> 6);
    target[at + 1] = 0x80 | (point & 0x3f);
    return at + 2;
  }
  if (point < 0x10000) {
    target[at] = 0xe0 | (point >> 12);
    target[at + 1] = 0x80 | ((point >> 6) & 0x3f);
    target[at + 2] = 0x80 | (point & 0x3f);
    return at + 3;
  }
  target[at] = 0xf0 | (point >> 18);
  target[at + 1] = 0x80 | ((point >> 12) & 0x3f);
  target[at + 2] = 0x80 | ((point >> 6) & 0x3f);
  target[at + 3] = 0x80 | (point & 0x3f);
  return at + 4;
}

/** The meaning of a scanned string's content as a string: for keys and ids, never for a document's text. */
export function decodeString(source: Buffer, content: ByteSpan): string {
  return JSON.parse(source.toString('utf8', content.start - 1, content.end + 1)) as string;
}

/** Before a member of an object: passes the key and its colon; the string fields tell the key. */
export function scanKey(scan: JsonScan): void {
  if (nextByte(scan) !== code.quote) throw unexpected(scan, 'a key in quotes');
  scanString(scan);
  if (nextByte(scan) !== code.colon) throw unexpected(scan, '":" after a key');
  scan.position++;
}

/** After a member or an item: passes the comma (true) or the closing bracket or brace (false). */
export function anotherFollows(scan: JsonScan, close: number): boolean {
  const byte = nextByte(scan);
  if (byte !== code.comma && byte !== close) throw unexpected(scan, `"," or "${String.fromCharCode(close)}"`);
  scan.position++;
  return byte === code.comma;
}

/** At an opening bracket or brace: passes it, and the closing one too where nothing lies between (true). */
export function opensEmpty(scan: JsonScan, close: number): boolean {
  scan.position++;
  if (nextByte(scan) !== close) return false;
  scan.position++;
  return true;
}

/** Nothing but whitespace may be left. */
export function expectEnd(scan: JsonScan): void {
  if (nextByte(scan) !== noByte) throw unexpected(scan, 'the end');
}

export function unexpected(scan: JsonScan, expected: string): JsonSyntaxError {
  const found = scan.position < scan.bytes.length ? '' : ', but the input ends';
  return new JsonSyntaxError(`expected ${expected}${found}`, scan.position);
}

/** The closing signs of the open containers, outermost first. Shared: nothing yields while a value is passed. */
const closingSigns = new Uint8Array(levelsMax);

/**
 * Passes one value of any kind that nests at most `levels` arrays and objects, at most 256, and has at most `valuesMax` values,
 * itself and those in it: they are what making it would cost, and more are refused as soon as they are seen.
 *
 * @returns how many values it has
 */
export function skipValue(scan: JsonScan, levels: number, valuesMax = Number.POSITIVE_INFINITY): number {
  let level = 0;
  let values = 0;
  for (;;) {
    if (++values > valuesMax)
      throw new JsonSyntaxError(`it has more than ${valuesMax} values`, scan.position, 'size');
    const byte = nextByte(scan);
    if (byte === code.quote) scan.position = stringEnd(scan, scan.position + 1) + 1;
    else if (byte === code.openBrace || byte === code.openBracket) {
      if (level >= levels)
        throw new JsonSyntaxError(`nested deeper than ${levels} levels`, scan.position, 'depth');
      // The closing sign of either kind is its opening sign plus two.
      if (!opensEmpty(scan, byte + 2)) {
        closingSigns[level++] = byte + 2;
        if (byte === code.openBrace) skipKey(scan);
        continue;
      }
    } else skipScalar(scan, byte);

    for (;;) {
      if (level === 0) return values;
      const close = closingSigns[level - 1] as number;
      if (anotherFollows(scan, close)) {
        if (close === code.closeBrace) skipKey(scan);
        break;
      }
      level--;
    }
  }
}

function skipKey(scan: JsonScan): void {
  if (nextByte(scan) !== code.quote) throw unexpected(scan, 'a key in quotes');
  const escapedBefore = scan.stringEscaped;
  scan.stringEscaped = false;
  scan.position = stringEnd(scan, scan.position + 1) + 1;
  if (scan.stringEscaped) scan.escapedKey = true;
  else scan.stringEscaped = escapedBefore;
  if (nextByte(scan) !== code.colon) throw unexpected(scan, '":" after a key');
  scan.position++;
}

function skipScalar(scan: JsonScan, byte: number): void {
  if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) skipNumber(scan);
  else if (byte === 0x74) skipLiteral(scan, 'true');
  else if (byte === 0x66) skipLiteral(scan, 'false');
  else if (byte === 0x6e) skipLiteral(scan, 'null');
  else throw unexpected(scan, 'a value');
}

/** At its first letter: passes `true`, `false` or `null`. */
export function skipLiteral(scan: JsonScan, literal: 'true' | 'false' | 'null'): void {
  const at = scan.position;
  for (let i = 1; i < literal.length; i++) {
    if (byteAt(scan.bytes, at + i) !== literal.charCodeAt(i)) throw unexpected(scan, 'a value');
  }
  scan.position = at + literal.length;
}

function skipNumber(scan: JsonScan): void {
  const bytes = scan.bytes;
  let at = scan.position;
  if (bytes[at] === 0x2d) at++;
  const first = at;
  at = byteAt(bytes, at) === 0x30 ? at + 1 : digitsEnd(scan, at);
  const integerEnd = at;
  if (byteAt(bytes, at) === 0x2e) at = digitsEnd(scan, at + 1);
  // The letter e, small or capital.
  if (at < bytes.length && ((bytes[at] as number) | 0x20) === 0x65) {
    const sign = byteAt(bytes, at + 1);
    at = digitsEnd(scan, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1);
  }
  // A fraction is a double however many digits it has: a vector's numbers mostly have 17.
  if (at === integerEnd && at - first > exactDigitsMax) scan.longNumber = true;
  scan.position = at;
}

/** One digit or more from here on. */
function digitsEnd(scan: JsonScan, from: number): number {
  const bytes = scan.bytes;
  const end = bytes.length;
  let at = from;
  while (at < end && (bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++;
  if (at === from) throw new JsonSyntaxError('expected a digit', at);
  return at;
}
