/**
 * Which rows of a chunk pass a filter, as far as columns tell.
 *
 * 1. The directory alone answers a term where no value can pass, or all do, or no row has the key.
 * 2. The columns of the other terms are read, and each is judged by one loop over its values; a string once for the whole
 *    chunk. Verdicts are bits so that terms join by `&`.
 */
import type { BlockPlace } from '../storage/segment-format.ts';
import { bitCount, bitsIn, type ColumnValues, presences } from './column-block.ts';
import type { ColumnDirectory, DirectoryColumn } from './column-directory.ts';
import type { ColumnTerm } from './filter-terms.ts';
import { judgeIntegers, judgeIntegersByRange, judgeStrings, judgeWith } from './judge-values.ts';
import { dateOf, noTemporal, timeOf } from './temporal.ts';
import type { ValueIndex } from './value-index.ts';
import { chunkRowsMax, isWholeKind, kindBound, valueKinds } from './value-kinds.ts';
import { ask, no, type Verdict, yes } from './verdicts.ts';

export type ChunkPlan =
  | { readonly kind: 'none' }
  /** All rows, without a look at columns; `isExact: false` where documents may still fail. */
  | { readonly kind: 'all'; readonly isExact: boolean }
  | { readonly kind: 'columns'; readonly isExact: boolean; readonly terms: readonly PlannedTerm[] };

export interface PlannedTerm {
  readonly term: ColumnTerm;
  readonly column: DirectoryColumn;
}

export interface ChunkRows {
  /** A bit a row of the chunk: it passes or may pass. */
  readonly bits: Uint32Array;
  readonly count: number;
  /** The rows among `bits` that pass only if their documents do, a bit a row; null where all rows of `bits` pass for sure. */
  readonly asks: Uint32Array | null;
}

/** The columns of a chunk that lie in memory already, by their keys. */
export interface ColumnsAtHand {
  readonly rowCount: number;
  readonly columns: ReadonlyMap<string, ColumnValues>;
  /** Whether each key that a row of the chunk has is among `columns`. */
  readonly everyKey: boolean;
}

/** Says which rows of a chunk pass, by columns that need no reading: none, all, or those of a set. `none` and `all` are certain. */
export function evaluateAtHand(
  { rowCount, columns, everyKey }: ColumnsAtHand,
  terms: readonly ColumnTerm[],
): 'none' | 'all' | ChunkRows {
  const planned: { readonly term: ColumnTerm; readonly column: ColumnValues }[] = [];
  let isExact = true;
  for (const term of terms) {
    const column = columns.get(term.key);
    if (column !== undefined) planned.push({ term, column });
    else if (!everyKey) isExact = false;
    else if (!term.negated) return 'none';
  }
  if (planned.length === 0 && isExact) return 'all';
  const values = planned.map(({ column }) => column);
  const rows = evaluateChunk(rowCount, planned, values, { isExact });
  return rows.count === 0 ? 'none' : rows;
}

export function planChunk(
  directory: ColumnDirectory,
  chunk: number,
  terms: readonly ColumnTerm[],
): ChunkPlan {
  const planned: PlannedTerm[] = [];
  let isExact = true;
  for (const term of terms) {
    const column = directory.column(chunk, term.key);
    const verdict = column === null ? withoutColumn(directory, chunk, term) : verdictOf(term, column);
    if (verdict === no) return { kind: 'none' };
    if (verdict === ask) isExact = false;
    if (verdict === 'some' && column !== null) planned.push({ term, column });
  }
  return planned.length === 0 ? { kind: 'all', isExact } : { kind: 'columns', isExact, terms: planned };
}

/** Each column once. */
export function placesOf(terms: readonly PlannedTerm[]): BlockPlace[] {
  const places = new Map(terms.map(({ column }) => [column.place.offset, column.place]));
  return [...places.values()];
}

function withoutColumn(directory: ColumnDirectory, chunk: number, term: ColumnTerm): Verdict {
  if (!directory.hasEveryKey(chunk)) return ask;
  return term.negated ? yes : no;
}

/** The verdict of all rows where they have the same; else 'some'. */
function verdictOf(term: ColumnTerm, column: DirectoryColumn): Verdict | 'some' {
  let all: Verdict | 'some' | null = null;
  for (let kind = 0; kind < kindBound; kind++) {
    if (column.counts[kind] === 0) continue;
    const verdict = verdictOfKind(term, kind, column);
    if (verdict === 'some' || (all !== null && all !== verdict)) return 'some';
    all = verdict;
  }
  return all ?? no;
}

function verdictOfKind(term: ColumnTerm, kind: number, column: DirectoryColumn): Verdict | 'some' {
  switch (kind) {
    case valueKinds.integer:
      return inverted(term, rangeVerdict(term.integers, column.integerMin, column.integerMax));
    case valueKinds.float:
      return inverted(term, rangeVerdict(term.floats, column.floatMin, column.floatMax));
    case valueKinds.string:
      return term.strings.length === 0 ? inverted(term, no) : 'some';
    case valueKinds.date:
    case valueKinds.time: {
      const values = temporalsOf(term, kind);
      // Their range is that of whole numbers of other kinds too.
      return inverted(term, rangeVerdict({ kind: 'values', values }, column.integerMin, column.integerMax));
    }
    default:
      return plainVerdict(term, kind);
  }
}

/** The dates or times among a term's strings: no other string is one. */
function temporalsOf({ strings }: ColumnTerm, kind: number): bigint[] {
  const read = kind === valueKinds.date ? dateOf : timeOf;
  const values = strings.map((string) => read(string, 0, string.length));
  return values.filter((value) => value !== noTemporal).map(BigInt);
}

/** What a term says of a kind that has no values of its own. */
function plainVerdict(term: ColumnTerm, kind: number): Verdict {
  switch (kind) {
    case valueKinds.missing:
      return term.negated ? yes : no;
    case valueKinds.null:
      return term.null === term.negated ? no : yes;
    case valueKinds.true:
      return term.true === term.negated ? no : yes;
    case valueKinds.false:
      return term.false === term.negated ? no : yes;
    default: {
      const asks = kind === valueKinds.nested ? term.nested : term.other;
      return asks ? ask : term.negated ? yes : no;
    }
  }
}

function inverted(term: ColumnTerm, verdict: Verdict | 'some'): Verdict | 'some' {
  if (!term.negated || verdict === 'some') return verdict;
  return verdict === no ? yes : no;
}

function rangeVerdict<N extends number | bigint>(
  test: ColumnTerm['integers'] | ColumnTerm['floats'],
  min: N,
  max: N,
): Verdict | 'some' {
  if (test.kind === 'range') {
    if (max < test.least || min > test.greatest) return no;
    return min >= test.least && max <= test.greatest ? yes : 'some';
  }
  const values: readonly (number | bigint)[] = test.values;
  if (!values.some((value) => value >= min && value <= max)) return no;
  return min >= max ? yes : 'some';
}

/** Shared: nothing yields while a chunk is judged. A verdict an entry, or a row. */
const entryVerdicts = new Uint8Array(chunkRowsMax);
/** Verdicts of whole numbers: as an integer, a date or a time, each in its own list. */
const integerVerdicts = new Uint8Array(chunkRowsMax + 1);
const dateVerdicts = new Uint8Array(chunkRowsMax + 1);
const timeVerdicts = new Uint8Array(chunkRowsMax + 1);
const floatVerdicts = new Uint8Array(chunkRowsMax + 1);
const stringVerdicts = new Uint8Array(chunkRowsMax + 1);
const valueVerdicts = [
  [valueKinds.integer, integerVerdicts],
  [valueKinds.float, floatVerdicts],
  [valueKinds.string, stringVerdicts],
  [valueKinds.date, dateVerdicts],
  [valueKinds.time, timeVerdicts],
] as const;
const rowVerdicts = new Uint8Array(chunkRowsMax);
const termVerdicts = new Uint8Array(chunkRowsMax);
/** The bytes of the three arrays above, four at a time; those behind the last row mean nothing. */
const entryWords = new Uint32Array(entryVerdicts.buffer);
const rowWords = new Uint32Array(rowVerdicts.buffer);
const termWords = new Uint32Array(termVerdicts.buffer);

/**
 * Finds the rows of a chunk that pass the planned terms. `columns` and `indexes` are in the order of `terms`; an index is null where its
 * column has none. Terms with an index are asked first: what they leave is often nothing.
 */
export function evaluateChunk(
  rowCount: number,
  terms: readonly Pick<PlannedTerm, 'term'>[],
  columns: readonly ColumnValues[],
  { isExact, indexes = [] }: { readonly isExact: boolean; readonly indexes?: readonly (ValueIndex | null)[] },
): ChunkRows {
  const found: Uint32Array[] = [];
  const left: number[] = [];
  for (let at = 0; at < terms.length; at++) {
    const index = indexes[at] ?? null;
    if (index === null) left.push(at);
    else {
      const bits = indexedRows(rowCount, (terms[at] as PlannedTerm).term, index);
      if (bits === null) return { bits: new Uint32Array(Math.ceil(rowCount / 32)), count: 0, asks: null };
      found.push(bits);
    }
  }
  const [first] = found;
  if (first === undefined) return judgedRows(rowCount, { terms, columns, left, isExact });
  if (left.length === 0 && found.length === 1)
    return { bits: first, count: bitsIn(first), asks: isExact ? null : first };
  const judged = left.length === 0 ? null : judgedRows(rowCount, { terms, columns, left, isExact });
  return joined(found, judged, isExact);
}

/** Finds the rows that pass a term, a bit a row, by the index of its column; null where no row does. */
function indexedRows(rowCount: number, term: ColumnTerm, index: ValueIndex): Uint32Array | null {
  const rows = index.find(term);
  if (rows.count === (term.negated ? rowCount : 0)) return null;
  const bits = new Uint32Array(Math.ceil(rowCount / 32));
  index.mark(rows, bits);
  if (!term.negated) return bits;
  for (let at = 0; at < bits.length; at++) bits[at] = ~(bits[at] as number);
  const tail = rowCount & 31;
  if (tail !== 0) bits[bits.length - 1] = (bits[bits.length - 1] as number) & ((1 << tail) - 1);
  return bits;
}

/**
 * Intersects the sets with the rows that were judged to pass. Judging says which of them ask their documents; where nothing was judged,
 * none asks if `isExact`, and otherwise all do. `asks` is null where no row is left that would ask.
 */
function joined(sets: readonly Uint32Array[], judged: ChunkRows | null, isExact: boolean): ChunkRows {
  const bits = Uint32Array.from(judged?.bits ?? (sets[0] as Uint32Array));
  for (const set of sets)
    for (let at = 0; at < bits.length; at++) bits[at] = (bits[at] as number) & (set[at] as number);
  const count = bitsIn(bits);
  if (judged === null) return { bits, count, asks: isExact || count === 0 ? null : bits };
  const asks = judged.asks?.map((word, at) => word & (bits[at] as number)) ?? null;
  return { bits, count, asks: asks !== null && bitsIn(asks) > 0 ? asks : null };
}

/** Finds the rows that pass the terms at the places `left`, by a look at each entry of their columns. */
function judgedRows(
  rowCount: number,
  {
    terms,
    columns,
    left,
    isExact,
  }: {
    readonly terms: readonly Pick<PlannedTerm, 'term'>[];
    readonly columns: readonly ColumnValues[];
    readonly left: readonly number[];
    readonly isExact: boolean;
  },
): ChunkRows {
  rowVerdicts.fill(isExact ? yes : ask, 0, rowCount).fill(no, rowCount, (rowCount + 31) & ~31);
  for (const at of left) {
    const { term } = terms[at] as Pick<PlannedTerm, 'term'>;
    const column = columns[at] as ColumnValues;
    judgeEntries(term, column);
    if (!joinTerm(rowCount, term, column)) break;
  }
  return packed(rowCount);
}

/** Into `entryVerdicts`. */
function judgeEntries(term: ColumnTerm, column: ColumnValues): void {
  const { uniformKind } = column;
  if (uniformKind !== 0) {
    judgeKind(term, column, uniformKind, entryVerdicts);
    if (term.negated) invert(column.entryCount, uniformKind);
    return;
  }
  for (const [kind, verdicts] of valueVerdicts)
    if (column.counts[kind] !== 0) judgeKind(term, column, kind, verdicts);
  mergeKinds(term, column.kinds);
}

/** One pass without a branch: kinds may come in any order, and a branch for them takes five times as long. */
function mergeKinds(term: ColumnTerm, kinds: Uint8Array): void {
  const plain = new Uint8Array(kindBound);
  for (let kind = 0; kind < kindBound; kind++) plain[kind] = hasValues(kind) ? no : plainVerdict(term, kind);
  const flip = term.negated ? yes : no;
  let whole = 0;
  let float = 0;
  let string = 0;
  for (let i = 0; i < kinds.length; i++) {
    const kind = kinds[i] as number;
    const isInteger = Number(kind === valueKinds.integer);
    const isDate = Number(kind === valueKinds.date);
    const isTime = Number(kind === valueKinds.time);
    const isFloat = Number(kind === valueKinds.float);
    const isString = Number(kind === valueKinds.string);
    entryVerdicts[i] =
      (plain[kind] as number) |
      (((integerVerdicts[whole] as number) ^ flip) & -isInteger) |
      (((dateVerdicts[whole] as number) ^ flip) & -isDate) |
      (((timeVerdicts[whole] as number) ^ flip) & -isTime) |
      (((floatVerdicts[float] as number) ^ flip) & -isFloat) |
      (((stringVerdicts[string] as number) ^ flip) & -isString);
    whole += isInteger + isDate + isTime;
    float += isFloat;
    string += isString;
  }
}

function hasValues(kind: number): boolean {
  return isWholeKind(kind) || kind === valueKinds.float || kind === valueKinds.string;
}

/** Values are yes or no, and `plainVerdict` has turned the others round already. */
function invert(count: number, kind: number): void {
  if (!hasValues(kind)) return;
  for (let i = 0; i < count; i++) entryVerdicts[i] = (entryVerdicts[i] as number) ^ yes;
}

function judgeKind(term: ColumnTerm, column: ColumnValues, kind: number, target: Uint8Array): void {
  if (kind === valueKinds.integer) {
    const { integers: test } = term;
    if (test.kind === 'range') judgeIntegersByRange(column, test.least, test.greatest, target);
    else judgeIntegers(column, test.values, target);
  } else if (kind === valueKinds.float) {
    judgeWith(column.floats, term.floats, target);
  } else if (kind === valueKinds.string) {
    judgeStrings(column, term.strings, target);
  } else if (isWholeKind(kind)) {
    judgeIntegers(column, temporalsOf(term, kind), target);
  } else {
    target.fill(plainVerdict(term, kind), 0, column.entryCount);
  }
}

/** Answers false where no row is left. */
function joinTerm(rowCount: number, term: ColumnTerm, column: ColumnValues): boolean {
  const source = byRow(rowCount, term, column);
  const words = Math.ceil(rowCount / 4);
  let left = 0;
  for (let at = 0; at < words; at++) {
    const verdicts = (rowWords[at] as number) & (source[at] as number);
    rowWords[at] = verdicts;
    left |= verdicts;
  }
  return left !== 0;
}

/** The verdicts on entries as verdicts on rows, four a word. */
function byRow(rowCount: number, term: ColumnTerm, column: ColumnValues): Uint32Array {
  const { presence, entryCount, rows, bitmap } = column;
  if (presence === presences.all) return entryWords;
  termVerdicts.fill(term.negated ? yes : no, 0, rowCount);
  if (presence === presences.bitmap) scatter(bitmap, termVerdicts);
  else {
    for (let i = 0; i < entryCount; i++) termVerdicts[rows[i] as number] = entryVerdicts[i] as number;
  }
  return termWords;
}

function scatter(bitmap: Uint32Array, target: Uint8Array): void {
  let entry = 0;
  for (let at = 0; at < bitmap.length; at++) {
    for (let word = bitmap[at] as number; word !== 0; word &= word - 1) {
      target[at * 32 + 31 - Math.clz32(word & -word)] = entryVerdicts[entry++] as number;
    }
  }
}

/** Eight words of four verdicts are 32 bits. */
function packed(rowCount: number): ChunkRows {
  const bits = new Uint32Array(Math.ceil(rowCount / 32));
  let count = 0;
  let unsure = 0;
  for (let at = 0; at < bits.length; at++) {
    let word = 0;
    for (let part = 0; part < 8; part++) {
      const verdicts = rowWords[at * 8 + part] as number;
      const passes = verdicts & 0x01010101;
      unsure |= passes & ~(verdicts >>> 1);
      word |= gathered(passes) << (part * 4);
    }
    bits[at] = word;
    count += bitCount(word);
  }
  return { bits, count, asks: unsure === 0 ? null : packedAsks(bits.length) };
}

function packedAsks(words: number): Uint32Array {
  const bits = new Uint32Array(words);
  for (let at = 0; at < words; at++) {
    let word = 0;
    for (let part = 0; part < 8; part++) {
      const verdicts = rowWords[at * 8 + part] as number;
      word |= gathered(verdicts & ~(verdicts >>> 1) & 0x01010101) << (part * 4);
    }
    bits[at] = word;
  }
  return bits;
}

/** The lowest bits of four bytes as four bits. */
function gathered(bytes: number): number {
  return (bytes | (bytes >>> 7) | (bytes >>> 14) | (bytes >>> 21)) & 0xf;
}
