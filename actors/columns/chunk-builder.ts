import { limits } from '../../protocol/limits.ts';
import { assert, DataError } from '../../src/base/assert.ts';
import { exactDigitsMax, numberOfDigits } from '../../src/base/decimal.ts';
import { sharedBriefly } from '../../src/base/garbage.ts';
import {
  anotherFollows,
  code,
  decodeString,
  type JsonScan,
  JsonSyntaxError,
  nextByte,
  openScan,
  opensEmpty,
  scanKey,
  scanString,
  skipLiteral,
  skipValue,
} from '../../src/base/json-scanner.ts';
import { documentMetaLength, documentMetaStart } from '../storage/document-batch.ts';
import type { EncodedColumn } from './encode-column.ts';
import { isInt64 } from './int64.ts';
import { KeyColumn } from './key-column.ts';
import { dateOf, noTemporal, timeOf } from './temporal.ts';
import { chunkRowsMax, valueKinds } from './value-kinds.ts';
import type { WantedMembers } from './wanted-members.ts';

export interface ChunkBounds {
  readonly rowsMax?: number;
  /** Keys of a chunk that have columns. */
  readonly columnsMax?: number;
  /** A chunk ends when its strings have so many bytes. */
  readonly stringBytes?: number;
}

/** A column costs a block, and a filter has at most a hundred keys. */
const columnsDefault = 256;
/** 90 MB: with 128 keys a row, chunks have all of their rows. */
const entriesMax = chunkRowsMax * 128;
/** A column's block has less than 16 MB. */
const stringBytesDefault = 12 * 1024 * 1024;
/** Memory of strings that is kept for the next chunk, of all columns together: making it anew takes longer than filling it. */
const keptStringsBytes = 32 * 1024 * 1024;
/** Keys that are counted; one that comes when there are so many has no column. */
const keysMax = 4_096;
/** No column for a longer key. */
export const columnKeyBytesMax = 256;
/** A meta has at most so many members: each takes five bytes, `"":1,`. */
const membersMax = Math.ceil(limits.documentMetaBytesMax / 5);

const noKey = keysMax;

/** How many rows of so many keys a chunk takes, whatever their strings are. */
export function rowsOfChunk(keys: number): number {
  return Math.min(chunkRowsMax, Math.floor((entriesMax - membersMax) / Math.max(1, keys)));
}

/** Rows whose values were added to columns: as many, their new strings of so many bytes together. */
export interface AddedRows {
  readonly rows: number;
  readonly values: number;
  readonly stringBytes: number;
}

export interface ChunkColumn extends EncodedColumn {
  readonly key: string;
}

interface Key {
  readonly name: string;
  readonly bytes: Buffer;
  readonly isTemporal: boolean;
  readonly column: KeyColumn;
  /** Among those that are wanted; -1 for most. */
  readonly wanted: number;
}

/**
 * Collects the metas of one chunk's rows, then gives them as columns.
 *
 * 1. Each member of a meta becomes an entry of its key's column: row, kind, value. JSON is scanned in place; nothing is made of a
 *    key or a string that was seen before. Who has the values already adds them to the columns himself (`columnOf`, `endRow`).
 * 2. At the chunk's end keys with the most entries become blocks (encode-column.ts).
 *
 * Memory: 11 bytes an entry and the distinct strings; small chunks take little. A thread's builders are used again.
 */
export class ChunkBuilder {
  readonly #keys: Key[] = [];
  readonly #keyNumbers = new Map<string, number>();
  /** Cleared, for keys to come. */
  readonly #idle: KeyColumn[] = [];
  /** The key that came after each key, and after none, in an earlier meta: mostly it does so again. */
  readonly #following = new Uint16Array(keysMax + 1).fill(noKey);
  #temporalKeys: ReadonlySet<string> = new Set();
  #wanted: WantedMembers | null = null;
  #scan: JsonScan = openScan(Buffer.alloc(0));
  #scanned: Buffer | null = null;
  #entryCount = 0;
  #stringBytes = 0;
  #rowCount = 0;
  #everyKey = true;

  /** The keys whose strings in the form of a date or time are held as such. Set it while the builder has no rows. */
  set temporalKeys(keys: ReadonlySet<string>) {
    assert(this.#rowCount === 0, () => 'rows of other keys');
    this.#temporalKeys = keys;
  }

  /** Whose values' places `addObject` tells. For the rows to come of a builder that has none. */
  set wanted(wanted: WantedMembers) {
    assert(this.#rowCount === 0, () => 'rows of which nothing was wanted');
    this.#wanted = wanted;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Whether every key of the rows will have a column. */
  get everyKey(): boolean {
    return this.#everyKey;
  }

  isFull({ rowsMax = chunkRowsMax, stringBytes = stringBytesDefault }: ChunkBounds): boolean {
    return (
      this.#rowCount >= rowsMax ||
      this.#entryCount + membersMax > entriesMax ||
      this.#stringBytes >= stringBytes
    );
  }

  /** The next row: the entry at `offset` of `buffer`. */
  add(buffer: Buffer, offset: number): void {
    const length = documentMetaLength(buffer, offset);
    if (length > 0) this.#addMeta(buffer, documentMetaStart(buffer, offset), length);
    this.#rowCount++;
  }

  /**
   * The next row: its meta from `start` to `end` of `buffer`, as somebody wrote it. Throws JsonSyntaxError where that is no object,
   * and the chunk is of no use then.
   */
  addObject(buffer: Buffer, start: number, end: number): void {
    const scan = this.#scanOf(buffer, start);
    this.#wanted?.clear();
    if (buffer[start] !== code.openBrace) throw new JsonSyntaxError('it does not begin with {', start);
    this.#addMembers(scan, limits.jsonDepthMax - 1);
    if (scan.position > end) throw new JsonSyntaxError('the line ends before it does', end);
    if (scan.position < end) throw new JsonSyntaxError('something follows it', scan.position);
    this.#rowCount++;
  }

  /** Where the next row's values of a key go; null for a key that has no column. */
  columnOf(name: string): KeyColumn | null {
    const key = this.#numberOf(name);
    return key === noKey ? null : (this.#keys[key] as Key).column;
  }

  /** After the values of a row were added to the columns of their keys: as many, their new strings of so many bytes together. */
  endRow(values: number, stringBytes: number): void {
    this.endRows({ rows: 1, values, stringBytes });
  }

  /** Ends several rows at once, after their values were added to the columns of their keys. */
  endRows({ rows, values, stringBytes }: AddedRows): void {
    this.#rowCount += rows;
    this.#entryCount += values;
    this.#stringBytes += stringBytes;
  }

  /** The columns of the most frequent keys. `memory` makes the zeros that each is written into; whoever keeps columns gives one whose memory V8 counts. */
  *columns(
    { columnsMax = columnsDefault }: ChunkBounds,
    memory: (bytes: number) => Buffer = sharedBriefly,
  ): Generator<ChunkColumn, void, void> {
    const filled = this.#keys.filter(({ column }) => column.count > 0);
    const chosen = mostFrequent(filled, columnsMax);
    if (chosen.length < filled.length) this.#everyKey = false;
    for (const { name, column } of chosen) yield { key: name, ...column.encode(this.#rowCount, memory) };
  }

  clear(): void {
    this.#following.fill(noKey, 0, this.#keys.length);
    this.#following[noKey] = noKey;
    let left = keptStringsBytes;
    for (const column of this.#idle) left -= column.strings.heldBytes;
    // Backwards, so that a key which comes next time as it did this time has the column of its size again.
    for (let at = this.#keys.length - 1; at >= 0; at--) {
      const { column } = this.#keys[at] as Key;
      const { heldBytes } = column.strings;
      const keepsStrings = heldBytes <= left;
      if (keepsStrings) left -= heldBytes;
      column.clear({ keepsStrings });
      if (this.#idle.length < columnsDefault) this.#idle.push(column);
    }
    this.#keyNumbers.clear();
    this.#keys.length = 0;
    this.#scan = openScan(Buffer.alloc(0));
    this.#scanned = null;
    this.#entryCount = 0;
    this.#stringBytes = 0;
    this.#rowCount = 0;
    this.#everyKey = true;
  }

  #addMeta(buffer: Buffer, start: number, length: number): void {
    // There is room for one of that size: `isFull` is asked after every row.
    assert(length <= limits.documentMetaBytesMax, () => `a meta of ${length} bytes`);
    const scan = this.#scanOf(buffer, start);
    try {
      this.#addMembers(scan, limits.jsonDepthMax);
    } catch (error) {
      if (error instanceof JsonSyntaxError) throw damaged(error.offset - start, error.message);
      throw error;
    }
    if (scan.position > start + length) throw damaged(length, 'it goes on');
  }

  #scanOf(buffer: Buffer, position: number): JsonScan {
    if (this.#scanned !== buffer) {
      this.#scan = openScan(buffer);
      this.#scanned = buffer;
    }
    this.#scan.position = position;
    return this.#scan;
  }

  #addMembers(scan: JsonScan, levels: number): void {
    const wanted = this.#wanted;
    if (nextByte(scan) !== code.openBrace) throw damaged(0, 'no object');
    if (opensEmpty(scan, code.closeBrace)) return;
    let before = noKey;
    do {
      scanKey(scan);
      const key = this.#keyOf(scan, before);
      const member = wanted === null ? -1 : this.#memberOf(scan, key, wanted);
      const byte = nextByte(scan);
      const start = scan.position;
      if (key === noKey) {
        this.#everyKey = false;
        // The key's own.
        scan.stringEscaped = false;
        skipValue(scan, levels);
      } else {
        this.#addValue(scan, byte, key, levels);
        before = key;
      }
      if (member >= 0) wanted?.set(member, start, scan.position, byte === code.quote && scan.stringEscaped);
    } while (anotherFollows(scan, code.closeBrace));
  }

  #memberOf(scan: JsonScan, key: number, { names }: WantedMembers): number {
    return key === noKey ? names.indexOf(nameOf(scan)) : (this.#keys[key] as Key).wanted;
  }

  #keyOf(scan: JsonScan, before: number): number {
    const expected = this.#following[before] as number;
    if (expected !== noKey && !scan.stringEscaped && this.#isKey(scan, expected)) return expected;
    const key = this.#findKey(scan);
    this.#following[before] = key;
    return key;
  }

  #isKey(scan: JsonScan, key: number): boolean {
    const name = (this.#keys[key] as Key).bytes;
    const { bytes, stringStart } = scan;
    const length = scan.stringEnd - stringStart;
    if (name.length !== length) return false;
    for (let i = 0; i < length; i++) if (bytes[stringStart + i] !== name[i]) return false;
    return true;
  }

  #findKey(scan: JsonScan): number {
    return this.#numberOf(nameOf(scan));
  }

  #numberOf(name: string): number {
    const known = this.#keyNumbers.get(name);
    if (known !== undefined) return known;
    const bytes = Buffer.from(name);
    const key = this.#keys.length;
    if (key === keysMax || bytes.length > columnKeyBytesMax || !name.isWellFormed()) return noKey;
    this.#keyNumbers.set(name, key);
    const column = this.#idle.pop() ?? new KeyColumn();
    const wanted = this.#wanted?.names.indexOf(name) ?? -1;
    this.#keys.push({ name, bytes, isTemporal: this.#temporalKeys.has(name), column, wanted });
    return key;
  }

  #addValue(scan: JsonScan, byte: number, key: number, levels: number): void {
    if (byte === code.quote) {
      scan.loneSurrogate = false;
      scanString(scan);
      this.#addString(scan, this.#keys[key] as Key);
    } else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      this.#addNumber(scan, key);
    } else if (byte === code.openBrace || byte === code.openBracket) {
      skipValue(scan, levels);
      this.#push(key, valueKinds.nested, 0);
    } else {
      // `true`, `false` and `null`; `skipValue` refuses the rest.
      if (byte === 0x74) skipLiteral(scan, 'true');
      else skipValue(scan, 1);
      this.#push(
        key,
        byte === 0x74 ? valueKinds.true : byte === 0x66 ? valueKinds.false : valueKinds.null,
        0,
      );
    }
  }

  #addString(scan: JsonScan, { isTemporal, column }: Key): void {
    const row = this.#rowCount;
    this.#entryCount++;
    if (isTemporal && !scan.stringEscaped) {
      const date = dateOf(scan.bytes, scan.stringStart, scan.stringEnd);
      if (date !== noTemporal) return column.add(row, valueKinds.date, date);
      const time = timeOf(scan.bytes, scan.stringStart, scan.stringEnd);
      if (time !== noTemporal) return column.add(row, valueKinds.time, time);
    }
    if (scan.loneSurrogate) return column.add(row, valueKinds.other, 0);
    const { strings } = column;
    const before = strings.bytes;
    column.addString(row, strings.add(scan));
    this.#stringBytes += strings.bytes - before;
  }

  /** Adds a number: a short one by its digits, any other by its text. */
  #addNumber(scan: JsonScan, key: number): void {
    const { bytes, position } = scan;
    const isNegative = bytes[position] === 0x2d;
    let at = isNegative ? position + 1 : position;
    const first = at;
    let value = 0;
    let byte = bytes[at] as number;
    for (; byte >= 0x30 && byte <= 0x39; byte = bytes[++at] as number) value = value * 10 + (byte - 0x30);
    let digits = at - first;
    const isOdd = digits === 0 || (digits > 1 && bytes[first] === 0x30);
    let fraction = -1;
    if (byte === 0x2e) {
      fraction = 0;
      for (byte = bytes[++at] as number; byte >= 0x30 && byte <= 0x39; byte = bytes[++at] as number) {
        value = value * 10 + (byte - 0x30);
        fraction++;
      }
      digits += fraction;
    }
    // What is none is refused there.
    if (digits > exactDigitsMax || (byte | 0x20) === 0x65 || isOdd || fraction === 0)
      return this.#addLongNumber(scan, key);
    scan.position = at;
    if (fraction < 0) this.#push(key, valueKinds.integer, isNegative && value > 0 ? -value : value);
    else {
      const quotient = numberOfDigits(value, fraction);
      this.#push(key, valueKinds.float, isNegative ? -quotient : quotient);
    }
  }

  #addLongNumber(scan: JsonScan, key: number): void {
    const start = scan.position;
    skipValue(scan, 1);
    if (isInt64(scan.bytes, start, scan.position)) {
      this.#entryCount++;
      (this.#keys[key] as Key).column.addDigits(this.#rowCount, scan.bytes, start, scan.position);
      return;
    }
    const text = scan.bytes.toString('latin1', start, scan.position);
    const value = Number(text);
    if (/[.eE]/.test(text)) this.#push(key, valueKinds.float, value);
    else {
      const isExact = Number.isFinite(value) && BigInt(value) === BigInt(text);
      this.#push(key, isExact ? valueKinds.float : valueKinds.other, value);
    }
  }

  #push(key: number, kind: number, value: number): void {
    this.#entryCount++;
    (this.#keys[key] as Key).column.add(this.#rowCount, kind, value);
  }
}

function mostFrequent(keys: readonly Key[], columnsMax: number): readonly Key[] {
  if (keys.length <= columnsMax) return keys;
  return [...keys].sort((a, b) => b.column.count - a.column.count).slice(0, columnsMax);
}

/** The name of the key that the scan has just passed. */
function nameOf(scan: JsonScan): string {
  const { bytes, stringStart: start, stringEnd: end } = scan;
  return scan.stringEscaped ? decodeString(bytes, { start, end }) : bytes.toString('utf8', start, end);
}

function damaged(offset: number, problem: string): DataError {
  return new DataError('a stored meta', offset, problem);
}
