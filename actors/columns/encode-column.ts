import { type ColumnShape, columnLayout, presences, writeColumnHead } from './column-block.ts';
import type { ColumnStatistics } from './column-directory.ts';
import type { StringTable } from './string-table.ts';
import { isWholeKind, kindBound, valueKinds, wholeCount } from './value-kinds.ts';

/** One key's entries of a chunk, ascending by row: the first ones of the arrays. */
export interface KeyEntries {
  readonly rowCount: number;
  readonly entryCount: number;
  readonly rows: Uint16Array;
  /** `wideInteger` too: an integer whose value is in `wideValues`. */
  readonly kinds: Uint8Array;
  readonly values: Float64Array;
  readonly wideValues: BigInt64Array;
  readonly strings: StringTable;
}

export interface EncodedColumn {
  readonly raw: Buffer;
  readonly statistics: ColumnStatistics;
}

/** An entry's integer beyond 2^53: its value is in `wideValues`. In memory only. */
export const wideInteger = kindBound;
/** Rows are listed where fewer than one in so many has an entry; a list takes 16 bits a row, a bitmap one. */
const listedRowsShare = 16;

/** Makes a column's block, laid out as column-block.ts says. `memory` makes so many bytes of zeros for it. */
export function encodeColumn(source: KeyEntries, memory: (bytes: number) => Buffer): EncodedColumn {
  const { entryCount, rowCount } = source;
  const counts = countKinds(source);
  const integers = integerRange(source, counts);
  const dictionary = dictionaryOf(source);
  const shape: ColumnShape = {
    rowCount,
    entryCount,
    presence: presenceOf(entryCount, rowCount),
    integerBytes: integers.bytes,
    codeBytes: dictionary.count === 0 ? 0 : dictionary.count <= 256 ? 1 : 2,
    uniformKind: Math.max(0, counts.indexOf(entryCount)),
    stringCount: dictionary.count,
    stringBytes: dictionary.bytes,
    counts,
  };
  const layout = columnLayout(shape);
  const raw = memory(layout.length);
  writeColumnHead(raw, shape, integers.base);
  const at = (offset: number) => raw.byteOffset + offset;
  const floats = writeFloats(
    source,
    new Float64Array(raw.buffer, at(layout.floats), counts[valueKinds.float]),
  );
  writeIntegers(source, integers, raw, layout.integers);
  const codesPlace = [raw.buffer, at(layout.codes), counts[valueKinds.string]] as const;
  const codes = shape.codeBytes === 1 ? new Uint8Array(...codesPlace) : new Uint16Array(...codesPlace);
  codes.set(dictionary.codes.subarray(0, codes.length));
  writePresence(source, shape, raw, layout.present);
  if (shape.uniformKind === 0) {
    for (let i = 0; i < entryCount; i++) {
      const kind = source.kinds[i] as number;
      raw[layout.kinds + i] = kind === wideInteger ? valueKinds.integer : kind;
    }
  }
  writeStrings(source, dictionary, raw, layout);
  const statistics = {
    counts,
    integerMin: integers.min,
    integerMax: integers.max,
    floatMin: floats.min,
    floatMax: floats.max,
    distinctStrings: dictionary.count,
  };
  return { raw, statistics };
}

function presenceOf(entryCount: number, rowCount: number): number {
  if (entryCount === rowCount) return presences.all;
  return entryCount * listedRowsShare < rowCount ? presences.rows : presences.bitmap;
}

/** Wide integers apart; `missing` stays 0, so that it is never taken for the kind of all entries. */
function countKinds({ entryCount, kinds }: KeyEntries): Uint32Array {
  const counts = new Uint32Array(kindBound + 1);
  for (let i = 0; i < entryCount; i++) (counts[kinds[i] as number] as number)++;
  return counts;
}

interface Integers {
  readonly count: number;
  readonly min: bigint;
  readonly max: bigint;
  readonly bytes: number;
  readonly base: bigint;
}

const noIntegers: Integers = { count: 0, min: 0n, max: 0n, bytes: 0, base: 0n };

/** Wide ones count as integers after it. */
function integerRange({ entryCount, kinds, values, wideValues }: KeyEntries, counts: Uint32Array): Integers {
  (counts[valueKinds.integer] as number) += counts[wideInteger] as number;
  counts[wideInteger] = 0;
  const count = wholeCount(counts);
  if (count === 0) return noIntegers;
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let wideLow: bigint | null = null;
  let wideHigh: bigint | null = null;
  for (let entry = 0; entry < entryCount; entry++) {
    if (isWholeKind(kinds[entry] as number)) {
      const value = values[entry] as number;
      if (value < low) low = value;
      if (value > high) high = value;
    } else if (kinds[entry] === wideInteger) {
      const value = wideValues[entry] as bigint;
      if (wideLow === null || value < wideLow) wideLow = value;
      if (wideHigh === null || value > wideHigh) wideHigh = value;
    }
  }
  if (wideLow === null || wideHigh === null) {
    const bytes = bytesOfRange(high - low);
    return { count, min: BigInt(low), max: BigInt(high), bytes, base: bytes === 8 ? 0n : BigInt(low) };
  }
  // Wide ones lie outside of all others, on either side.
  const min = low === Number.POSITIVE_INFINITY || wideLow < BigInt(low) ? wideLow : BigInt(low);
  const max = high === Number.NEGATIVE_INFINITY || wideHigh > BigInt(high) ? wideHigh : BigInt(high);
  const bytes = max - min < 0x1_0000_0000n ? bytesOfRange(Number(max - min)) : 8;
  return { count, min, max, bytes, base: bytes === 8 ? 0n : min };
}

function bytesOfRange(range: number): number {
  if (range < 0x100) return 1;
  if (range < 0x1_0000) return 2;
  return range < 0x1_0000_0000 ? 4 : 8;
}

function writeIntegers(
  { entryCount, kinds, values, wideValues }: KeyEntries,
  { count, bytes, base }: Integers,
  raw: Buffer,
  offset: number,
): void {
  if (count === 0) return;
  const at = raw.byteOffset + offset;
  let next = 0;
  if (bytes === 8) {
    const target = new BigInt64Array(raw.buffer, at, count);
    const halves = new Int32Array(raw.buffer, at, count * 2);
    for (let entry = 0; entry < entryCount; entry++) {
      if (kinds[entry] === wideInteger) target[next++] = wideValues[entry] as bigint;
      else if (isWholeKind(kinds[entry] as number)) {
        // As BigInt64Array would write it, without a bigint.
        const value = values[entry] as number;
        const high = Math.floor(value / 2 ** 32);
        halves[next * 2] = value - high * 2 ** 32;
        halves[next * 2 + 1] = high;
        next++;
      }
    }
    return;
  }
  const target =
    bytes === 1
      ? new Uint8Array(raw.buffer, at, count)
      : bytes === 2
        ? new Uint16Array(raw.buffer, at, count)
        : new Uint32Array(raw.buffer, at, count);
  const least = Number(base);
  for (let entry = 0; entry < entryCount; entry++) {
    if (isWholeKind(kinds[entry] as number)) target[next++] = (values[entry] as number) - least;
    else if (kinds[entry] === wideInteger) target[next++] = Number((wideValues[entry] as bigint) - base);
  }
}

function writeFloats({ entryCount, kinds, values }: KeyEntries, target: Float64Array) {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let next = 0;
  if (target.length === 0) return { min: 0, max: 0 };
  for (let entry = 0; entry < entryCount; entry++) {
    if (kinds[entry] !== valueKinds.float) continue;
    const value = values[entry] as number;
    if (value < min) min = value;
    if (value > max) max = value;
    target[next++] = value;
  }
  return { min, max };
}

/** Shared: nothing yields while a column is encoded. */
const codeScratch = new Uint16Array(65_536);

interface Dictionary {
  readonly codes: Uint16Array;
  readonly count: number;
  readonly bytes: number;
  /** Numbers in the table, in the order of their codes; null where codes are the table's numbers, all of them. */
  readonly strings: readonly number[] | null;
}

/** Strings are numbered in the order of their first rows, as the table does: of a row that had two, the first may be in none. */
function dictionaryOf(source: KeyEntries): Dictionary {
  const { entryCount, kinds, values, strings: table } = source;
  let next = 0;
  let seen = 0;
  for (let entry = 0; entry < entryCount; entry++) {
    if (kinds[entry] !== valueKinds.string) continue;
    const string = values[entry] as number;
    if (string > seen) break;
    if (string === seen) seen++;
    codeScratch[next++] = string;
  }
  if (seen !== table.count) return renumbered(source);
  return { codes: codeScratch, count: seen, bytes: table.bytes, strings: null };
}

function renumbered({ entryCount, kinds, values, strings: table }: KeyEntries): Dictionary {
  const codeOf = new Int32Array(table.count).fill(-1);
  const strings: number[] = [];
  let bytes = 0;
  let next = 0;
  for (let entry = 0; entry < entryCount; entry++) {
    if (kinds[entry] !== valueKinds.string) continue;
    const string = values[entry] as number;
    let given = codeOf[string] as number;
    if (given < 0) {
      given = strings.length;
      codeOf[string] = given;
      strings.push(string);
      bytes += table.length(string);
    }
    codeScratch[next++] = given;
  }
  return { codes: codeScratch, count: strings.length, bytes, strings };
}

function writeStrings(
  { strings: table }: KeyEntries,
  { strings, count }: Dictionary,
  raw: Buffer,
  layout: ReturnType<typeof columnLayout>,
): void {
  const ends = new Uint32Array(raw.buffer, raw.byteOffset + layout.ends, count);
  if (strings === null) {
    table.copyAllTo(raw, layout.strings, ends);
    return;
  }
  let end = 0;
  strings.forEach((string, at) => {
    table.copyTo(string, raw, layout.strings + end);
    end += table.length(string);
    ends[at] = end;
  });
}

function writePresence(
  { entryCount, rows }: KeyEntries,
  shape: ColumnShape,
  raw: Buffer,
  offset: number,
): void {
  if (shape.presence === presences.rows) {
    const target = new Uint16Array(raw.buffer, raw.byteOffset + offset, entryCount);
    target.set(rows.subarray(0, entryCount));
  } else if (shape.presence === presences.bitmap) {
    const words = new Uint32Array(raw.buffer, raw.byteOffset + offset, Math.ceil(shape.rowCount / 32));
    for (let entry = 0; entry < entryCount; entry++) {
      const row = rows[entry] as number;
      words[row >>> 5] = (words[row >>> 5] as number) | (1 << (row & 31));
    }
  }
}
