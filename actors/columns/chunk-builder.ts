import { limits } from '../../protocol/limits.ts';
import { assert, DataError } from '../../src/base/assert.ts';
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
import { type EncodedColumn, encodeColumn, type KeyEntries, wideInteger } from './encode-column.ts';
import { noString, StringTable, stringsMax } from './string-table.ts';
import { chunkRowsMax, valueKinds } from './value-kinds.ts';

/**
 * Collects the metas of one chunk's rows, then gives them as columns.
 *
 * 1. Each member of a meta becomes an entry: row, key, kind, value. JSON is scanned in place; nothing is made of a key or a
 *    string that was seen before.
 * 2. At the chunk's end entries are put in the order of their keys, which leaves those of a key in the order of rows.
 * 3. Keys with the most entries become columns (encode-column.ts).
 *
 * Memory: 20 MB of address space, of which small chunks touch little; a thread's builders are used again.
 */
export interface ChunkBounds {
  readonly rowsMax?: number;
  /** Keys of a chunk that have columns. */
  readonly columnsMax?: number;
  /** A chunk ends when its strings have so many bytes. */
  readonly stringBytes?: number;
}

/** A column costs a block, and a filter has at most a hundred keys. */
const columnsDefault = 256;
/** With eight keys a row, chunks have all of their rows. */
const entriesMax = chunkRowsMax * 8;
const stringBytesDefault = 4 * 1024 * 1024;
/** Keys that are counted; one that comes when there are so many has no column. */
const keysMax = 4_096;
/** No column for a longer key. */
const keyBytesMax = 256;
/** A meta has at most so many members: each takes five bytes, `"":1,`. */
const membersMax = Math.ceil(limits.documentMetaBytesMax / 5);
/** A whole number of so many digits is a double. */
const exactDigitsMax = 15;
const powersOfTen = Array.from({ length: exactDigitsMax + 1 }, (_, power) => 10 ** power);
const int64Max = 2n ** 63n - 1n;

const noKey = keysMax;

export interface ChunkColumn extends EncodedColumn {
  readonly key: string;
}

export class ChunkBuilder {
  readonly #rows = new Uint16Array(entriesMax);
  readonly #keys = new Uint16Array(entriesMax);
  readonly #kinds = new Uint8Array(entriesMax);
  readonly #values = new Float64Array(entriesMax);
  readonly #wideValues = new BigInt64Array(this.#values.buffer);
  readonly #strings = new StringTable(stringBytesDefault + 2 * limits.documentMetaBytesMax);
  readonly #keyNumbers = new Map<string, number>();
  readonly #keyNames: string[] = [];
  readonly #keyBytes: Buffer[] = [];
  readonly #keyEntries = new Uint32Array(keysMax);
  /** The last entry of each key, to know one that comes twice in a meta. */
  readonly #lastEntry = new Int32Array(keysMax);
  /** The key that came after each key, and after none, in an earlier meta: mostly it does so again. */
  readonly #following = new Uint16Array(keysMax + 1).fill(noKey);
  #scan: JsonScan = openScan(Buffer.alloc(0));
  #scanned: Buffer | null = null;
  #entryCount = 0;
  #rowStart = 0;
  #rowCount = 0;
  #everyKey = true;

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
      this.#strings.count + membersMax > stringsMax ||
      this.#strings.bytes >= stringBytes
    );
  }

  /** The next row: the entry at `offset` of `buffer`. */
  add(buffer: Buffer, offset: number): void {
    this.#rowStart = this.#entryCount;
    const length = documentMetaLength(buffer, offset);
    if (length > 0) this.#addMeta(buffer, documentMetaStart(buffer, offset), length);
    this.#rowCount++;
  }

  /** Of the most frequent keys. */
  *columns({ columnsMax = columnsDefault }: ChunkBounds): Generator<ChunkColumn, void, void> {
    const keyCount = this.#keyNames.length;
    const chosen = this.#mostFrequent(columnsMax);
    if (chosen.length < keyCount) this.#everyKey = false;
    const { order, starts } = this.#orderByKey();
    for (const key of chosen) {
      const entries = order.subarray(starts[key], starts[key + 1]);
      yield { key: this.#keyNames[key] as string, ...encodeColumn(this.#entriesOf(entries)) };
    }
  }

  clear(): void {
    this.#strings.clear();
    this.#keyEntries.fill(0, 0, this.#keyNames.length);
    this.#following.fill(noKey, 0, this.#keyNames.length);
    this.#following[noKey] = noKey;
    this.#keyNumbers.clear();
    this.#keyNames.length = 0;
    this.#keyBytes.length = 0;
    this.#scan = openScan(Buffer.alloc(0));
    this.#scanned = null;
    this.#entryCount = 0;
    this.#rowCount = 0;
    this.#everyKey = true;
  }

  #addMeta(buffer: Buffer, start: number, length: number): void {
    // There is room for one of that size: `isFull` is asked after every row.
    assert(length <= limits.documentMetaBytesMax, () => `a meta of ${length} bytes`);
    if (this.#scanned !== buffer) {
      this.#scan = openScan(buffer);
      this.#scanned = buffer;
    }
    const scan = this.#scan;
    scan.position = start;
    try {
      this.#addMembers(scan);
    } catch (error) {
      if (error instanceof JsonSyntaxError) throw damaged(error.offset - start, error.message);
      throw error;
    }
    if (scan.position > start + length) throw damaged(length, 'it goes on');
  }

  #addMembers(scan: JsonScan): void {
    if (nextByte(scan) !== code.openBrace) throw damaged(0, 'no object');
    if (opensEmpty(scan, code.closeBrace)) return;
    let before = noKey;
    do {
      scanKey(scan);
      const key = this.#keyOf(scan, before);
      const byte = nextByte(scan);
      if (key === noKey) {
        this.#everyKey = false;
        skipValue(scan, limits.jsonDepthMax);
      } else {
        this.#addValue(scan, byte, key);
        before = key;
      }
    } while (anotherFollows(scan, code.closeBrace));
  }

  #keyOf(scan: JsonScan, before: number): number {
    const expected = this.#following[before] as number;
    if (expected !== noKey && !scan.stringEscaped && this.#isKey(scan, expected)) return expected;
    const key = this.#findKey(scan);
    this.#following[before] = key;
    return key;
  }

  #isKey(scan: JsonScan, key: number): boolean {
    const name = this.#keyBytes[key] as Buffer;
    const { bytes, stringStart } = scan;
    const length = scan.stringEnd - stringStart;
    if (name.length !== length) return false;
    for (let i = 0; i < length; i++) if (bytes[stringStart + i] !== name[i]) return false;
    return true;
  }

  #findKey(scan: JsonScan): number {
    const { stringStart: start, stringEnd: end } = scan;
    const name = scan.stringEscaped
      ? decodeString(scan.bytes, { start, end })
      : scan.bytes.toString('utf8', start, end);
    const known = this.#keyNumbers.get(name);
    if (known !== undefined) return known;
    const bytes = Buffer.from(name);
    const key = this.#keyNames.length;
    if (key === keysMax || bytes.length > keyBytesMax || !name.isWellFormed()) return noKey;
    this.#keyNumbers.set(name, key);
    this.#keyNames.push(name);
    this.#keyBytes.push(bytes);
    this.#lastEntry[key] = -1;
    return key;
  }

  #addValue(scan: JsonScan, byte: number, key: number): void {
    if (byte === code.quote) {
      scan.loneSurrogate = false;
      scanString(scan);
      const string = scan.loneSurrogate ? noString : this.#strings.add(scan, key);
      this.#push(key, string === noString ? valueKinds.other : valueKinds.string, string);
    } else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      this.#addNumber(scan, key);
    } else if (byte === code.openBrace || byte === code.openBracket) {
      skipValue(scan, limits.jsonDepthMax);
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

  /** Short numbers by their digits, all others by text. */
  #addNumber(scan: JsonScan, key: number): void {
    const { bytes, position } = scan;
    const isNegative = bytes[position] === 0x2d;
    let at = isNegative ? position + 1 : position;
    const first = at;
    let value = 0;
    let byte = bytes[at] as number;
    for (; byte >= 0x30 && byte <= 0x39; byte = bytes[++at] as number) value = value * 10 + (byte - 0x30);
    let digits = at - first;
    let fraction = -1;
    if (byte === 0x2e) {
      fraction = 0;
      for (byte = bytes[++at] as number; byte >= 0x30 && byte <= 0x39; byte = bytes[++at] as number) {
        value = value * 10 + (byte - 0x30);
        fraction++;
      }
      digits += fraction;
    }
    if (digits > exactDigitsMax || (byte | 0x20) === 0x65) return this.#addLongNumber(scan, key);
    scan.position = at;
    if (fraction < 0) this.#push(key, valueKinds.integer, isNegative && value > 0 ? -value : value);
    else {
      // Both are exact, so that the quotient is the nearest double, as it is of the text.
      const quotient = value / (powersOfTen[fraction] as number);
      this.#push(key, valueKinds.float, isNegative ? -quotient : quotient);
    }
  }

  #addLongNumber(scan: JsonScan, key: number): void {
    const start = scan.position;
    skipValue(scan, 1);
    const text = scan.bytes.toString('latin1', start, scan.position);
    const value = Number(text);
    if (/[.eE]/.test(text)) this.#push(key, valueKinds.float, value);
    else if (Number.isSafeInteger(value)) this.#push(key, valueKinds.integer, value);
    else this.#addWholeNumber(key, BigInt(text), value);
  }

  #addWholeNumber(key: number, whole: bigint, nearest: number): void {
    if (whole >= -int64Max - 1n && whole <= int64Max) {
      this.#wideValues[this.#push(key, wideInteger, 0)] = whole;
      return;
    }
    const isExact = Number.isFinite(nearest) && BigInt(nearest) === whole;
    this.#push(key, isExact ? valueKinds.float : valueKinds.other, nearest);
  }

  /** Of a key that comes twice in a meta the last value counts. */
  #push(key: number, kind: number, value: number): number {
    let entry = this.#lastEntry[key] as number;
    if (entry < this.#rowStart) {
      entry = this.#entryCount++;
      this.#lastEntry[key] = entry;
      (this.#keyEntries[key] as number)++;
      this.#rows[entry] = this.#rowCount;
      this.#keys[entry] = key;
    }
    this.#kinds[entry] = kind;
    this.#values[entry] = value;
    return entry;
  }

  #mostFrequent(columnsMax: number): number[] {
    const keys = this.#keyNames.map((_, key) => key);
    if (keys.length <= columnsMax) return keys;
    const entries = this.#keyEntries;
    return keys.sort((a, b) => (entries[b] as number) - (entries[a] as number) || a - b).slice(0, columnsMax);
  }

  #orderByKey() {
    const keyCount = this.#keyNames.length;
    const starts = new Uint32Array(keyCount + 1);
    for (let key = 0; key < keyCount; key++)
      starts[key + 1] = (starts[key] as number) + (this.#keyEntries[key] as number);
    const next = starts.slice();
    const order = new Uint32Array(this.#entryCount);
    for (let entry = 0; entry < this.#entryCount; entry++) {
      const key = this.#keys[entry] as number;
      order[next[key] as number] = entry;
      (next[key] as number)++;
    }
    return { order, starts };
  }

  #entriesOf(entries: Uint32Array): KeyEntries {
    return {
      rowCount: this.#rowCount,
      entries,
      rows: this.#rows,
      kinds: this.#kinds,
      values: this.#values,
      wideValues: this.#wideValues,
      strings: this.#strings,
    };
  }
}

function damaged(offset: number, problem: string): DataError {
  return new DataError('a stored meta', offset, problem);
}
