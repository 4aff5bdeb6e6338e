import type { ColumnValues } from '../../columns/column-block.ts';
import { presences } from '../../columns/column-block.ts';
import { isWholeKind, valueKinds } from '../../columns/value-kinds.ts';
import { formatDate, formatTime } from '../dates.ts';
import type { SqlType } from '../plan/bound.ts';
import { type Column, type Dictionary, dictionaryOf, type Nulls, type PackedIntegers } from './column.ts';
import { numbersOf, PackedNumbers, type Scratch } from './packed-numbers.ts';

/** What a column of a chunk does not hold, by row: numbers, and strings or compact JSON. */
export type Elsewhere = ReadonlyMap<number, number | string>;

/**
 * Decodes a stored column to a type that is as wide as its values. A column of one kind that every row has is taken as it lies, as far
 * as the form of `Column` allows.
 */
export function decodeColumn(values: ColumnValues, type: SqlType, elsewhere: Elsewhere): DecodedColumn {
  if (type !== 'text' && hasIntegersOnly(values) && isNarrow(values))
    return { kind: 'packed', integers: values.integers, base: Number(values.integerBase) };
  return type === 'text' ? decodeTexts(values, elsewhere) : decodeNumbers(values, elsewhere, type);
}

/** A column of whole numbers as it is stored: frames unpack what they need into memory that the next frame uses again. */
export type PackedColumn = PackedIntegers & { readonly kind: 'packed' };

export type DecodedColumn = Column | PackedColumn;

/** Makes a column of the rows from `from` to before `end`; unpacked, when somebody asks, into memory of `scratch`. */
export function unpacked(
  { integers, base }: PackedIntegers,
  { from, end, scratch }: { readonly from: number; readonly end: number; readonly scratch: Scratch | null },
): Column {
  return new PackedNumbers({ integers: integers.subarray(from, end), base }, scratch);
}

/** Whether each integer of the column is exact as a double. */
function isNarrow({ integerBytes, integerBase }: ColumnValues): boolean {
  const base = Number(integerBase);
  return integerBytes !== 8 && Number.isSafeInteger(base) && Number.isSafeInteger(base + 2 ** 32);
}

/** Calls back for each entry of a stored column, with its row and its kind. */
export function eachEntry(values: ColumnValues, visit: (row: number, kind: number) => void): void {
  const { entryCount, presence, rows, bitmap, uniformKind, kinds } = values;
  let row = -1;
  for (let entry = 0; entry < entryCount; entry++) {
    if (presence === presences.rows) row = rows[entry] as number;
    else {
      row++;
      if (presence === presences.bitmap)
        while ((((bitmap[row >>> 5] as number) >>> (row & 31)) & 1) === 0) row++;
    }
    visit(row, uniformKind === 0 ? (kinds[entry] as number) : uniformKind);
  }
}

function isWhole({ presence, uniformKind }: ColumnValues, kind: number): boolean {
  return presence === presences.all && uniformKind === kind;
}

/** Whether every row has an integer, or every row a date, or a time. */
function hasIntegersOnly(values: ColumnValues): boolean {
  return isWholeKind(values.uniformKind) && isWhole(values, values.uniformKind);
}

function decodeNumbers(values: ColumnValues, elsewhere: Elsewhere, type: SqlType): Column {
  const integers = integersOf(values);
  if (integers instanceof BigInt64Array && type === 'int') return decodeWide(values, integers);
  const numbers = integers instanceof BigInt64Array ? Float64Array.from(integers, Number) : integers;
  if (hasIntegersOnly(values)) return { kind: 'numbers', values: numbers, nulls: null };
  const { floats, rowCount } = values;
  if (isWhole(values, valueKinds.float)) return { kind: 'numbers', values: floats, nulls: null };
  const decoded = new Float64Array(rowCount);
  const nulls = new Uint8Array(rowCount).fill(1);
  let [integer, float] = [0, 0];
  eachEntry(values, (row, kind) => {
    // Values of live rows are of the type's kinds. A dead row's may be of any kind, and becomes NULL.
    if (kind === valueKinds.null || kind === valueKinds.string) return;
    let value = 0;
    if (isWholeKind(kind)) value = numbers[integer++] as number;
    else if (kind === valueKinds.float) value = floats[float++] as number;
    else if (kind === valueKinds.true) value = 1;
    else if (kind !== valueKinds.false) value = Number(elsewhere.get(row));
    if (Number.isNaN(value) || (type === 'int' && !Number.isInteger(value))) return;
    decoded[row] = value;
    nulls[row] = 0;
  });
  return { kind: 'numbers', values: decoded, nulls: someNull(nulls) };
}

function someNull(nulls: Uint8Array): Nulls {
  return nulls.includes(1) ? nulls : null;
}

function decodeWide(values: ColumnValues, integers: BigInt64Array): Column {
  if (isWhole(values, valueKinds.integer)) return { kind: 'wide', values: integers, nulls: null };
  const decoded = new BigInt64Array(values.rowCount);
  const nulls = new Uint8Array(values.rowCount).fill(1);
  let integer = 0;
  eachEntry(values, (row, kind) => {
    if (kind === valueKinds.true || kind === valueKinds.false)
      decoded[row] = kind === valueKinds.true ? 1n : 0n;
    else if (isWholeKind(kind)) decoded[row] = integers[integer++] as bigint;
    // NULL, or a dead row's value.
    else return;
    nulls[row] = 0;
  });
  return { kind: 'wide', values: decoded, nulls: someNull(nulls) };
}

/** Answers all integers of a column: as doubles where these hold each of them, otherwise as 64 bits. */
function integersOf(values: ColumnValues): Float64Array | BigInt64Array {
  const { integerBytes, integers, integerBase, wideIntegers } = values;
  if (isNarrow(values)) return numbersOf(integers, Number(integerBase), new Float64Array(integers.length));
  if (integerBytes !== 8) {
    return BigInt64Array.from(integers as Uint8Array, (value) => integerBase + BigInt(value));
  }
  const count = wideIntegers.length / 2;
  const numbers = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const high = wideIntegers[i * 2 + 1] as number;
    if (high < -0x20_0000 || high >= 0x20_0000)
      return new BigInt64Array(wideIntegers.buffer, wideIntegers.byteOffset, count);
    numbers[i] = high * 0x1_0000_0000 + ((wideIntegers[i * 2] as number) >>> 0);
  }
  return numbers;
}

function decodeTexts(values: ColumnValues, elsewhere: Elsewhere): Column {
  const { codes, stringEnds, stringBytes, rowCount } = values;
  const bytes = Buffer.from(stringBytes.buffer, stringBytes.byteOffset, stringBytes.byteLength);
  const stored: Dictionary = { count: stringEnds.length, bytes, ends: stringEnds };
  if (isWhole(values, valueKinds.string)) return { kind: 'texts', codes, dictionary: stored, nulls: null };
  const decoded = new Int32Array(rowCount);
  const nulls = new Uint8Array(rowCount).fill(1);
  const added = new Map<string, number>();
  const codeOf = (text: string) => {
    let code = added.get(text);
    if (code === undefined) {
      code = stored.count + added.size;
      added.set(text, code);
    }
    return code;
  };
  const integers = integersOf(values);
  let [integer, float, string] = [0, 0, 0];
  eachEntry(values, (row, kind) => {
    if (kind === valueKinds.null) return;
    nulls[row] = 0;
    if (kind === valueKinds.string) decoded[row] = codes[string++] as number;
    else if (kind === valueKinds.integer) decoded[row] = codeOf(String(integers[integer++]));
    else if (kind === valueKinds.date) decoded[row] = codeOf(formatDate(Number(integers[integer++])) ?? '');
    else if (kind === valueKinds.time) decoded[row] = codeOf(formatTime(Number(integers[integer++])) ?? '');
    else if (kind === valueKinds.float) decoded[row] = codeOf(String(values.floats[float++]));
    else if (kind === valueKinds.true || kind === valueKinds.false)
      decoded[row] = codeOf(kind === valueKinds.true ? '1' : '0');
    else decoded[row] = codeOf(String(elsewhere.get(row)));
  });
  return {
    kind: 'texts',
    codes: decoded,
    dictionary: withMore(stored, [...added.keys()]),
    nulls: someNull(nulls),
  };
}

/** Adds strings to a dictionary, which gets one at least: rows that are NULL have code 0. */
function withMore(stored: Dictionary, added: readonly string[]): Dictionary {
  if (added.length === 0 && stored.count > 0) return stored;
  const more = dictionaryOf(added.length === 0 && stored.count === 0 ? [''] : added);
  const used = stored.count === 0 ? 0 : (stored.ends[stored.count - 1] as number);
  const ends = new Uint32Array(stored.count + more.count);
  ends.set(stored.ends);
  for (let code = 0; code < more.count; code++)
    ends[stored.count + code] = used + (more.ends[code] as number);
  return { count: ends.length, ends, bytes: Buffer.concat([stored.bytes.subarray(0, used), more.bytes]) };
}
