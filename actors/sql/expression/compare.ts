import {
  type Column,
  compareBytes,
  type Dictionary,
  dictionaryOf,
  falsy,
  type Nulls,
  startOf,
  truthy,
  unknown,
} from '../frame/column.ts';
import { asTexts, asValues, asWide, type Values } from '../frame/column-forms.ts';
import { type Comparison, flipped } from '../parse/syntax.ts';
import type { ValueList } from '../plan/value-list.ts';

/** Compares two columns of one type, row by row. Each kind of sides has a loop of its own: a comparison is most of what a query does. */
export function compareColumns(operator: Comparison, left: Column, right: Column, rowCount: number): Column {
  const truths = new Uint8Array(rowCount);
  if (isText(left) || isText(right)) compareTexts(operator, left, right, truths);
  else compareNumbers(operator, left, right, truths);
  return { kind: 'truths', values: truths };
}

function isText(column: Column): boolean {
  return column.kind === 'texts' || (column.kind === 'constant' && typeof column.value === 'string');
}

function compareNumbers(operator: Comparison, left: Column, right: Column, truths: Uint8Array): void {
  if (left.kind === 'constant' && right.kind !== 'constant')
    return compareNumbers(flipped[operator], right, left, truths);
  const rowCount = truths.length;
  const a = asValues(left, rowCount);
  if (right.kind === 'constant' && right.value !== null && a.kind === 'numbers') {
    compareWithNumber(operator, a.values, Number(right.value), truths);
    // A whole number that no double is may have been rounded to one of them.
    if (typeof right.value === 'bigint' && BigInt(Number(right.value)) !== right.value)
      compareBigs(operator, asWide(a), asWide(asValues(right, rowCount)), truths);
    return markNulls(truths, a.nulls);
  }
  if (a.kind === 'wide' && right.kind === 'constant' && typeof right.value === 'bigint') {
    compareWithBig(operator, a.values, right.value, truths);
    return markNulls(truths, a.nulls);
  }
  const b = asValues(right, rowCount);
  if (a.kind === 'numbers' && b.kind === 'numbers') compareEach(operator, a.values, b.values, truths);
  else compareWide(operator, a, b, truths);
  markNulls(truths, a.nulls);
  markNulls(truths, b.nulls);
}

/** Compares integers of 64 bits, or such integers with floats. */
function compareWide(operator: Comparison, a: Values, b: Values, truths: Uint8Array): void {
  const isFloat = [a, b].some(
    ({ kind, values }) => kind === 'numbers' && !(values as Float64Array).every(Number.isInteger),
  );
  if (!isFloat) return compareBigs(operator, asWide(a), asWide(b), truths);
  const [x, y] = [a, b].map(({ values }) => Float64Array.from(values as ArrayLike<number | bigint>, Number));
  compareEach(operator, x as Float64Array, y as Float64Array, truths);
}

function markNulls(truths: Uint8Array, nulls: Nulls): void {
  if (nulls === null) return;
  for (let row = 0; row < truths.length; row++) if (nulls[row] === 1) truths[row] = unknown;
}

function compareWithNumber(
  operator: Comparison,
  values: Float64Array,
  other: number,
  truths: Uint8Array,
): void {
  const count = truths.length;
  switch (operator) {
    case '=':
      for (let row = 0; row < count; row++) truths[row] = Number(values[row] === other);
      return;
    case '<>':
      for (let row = 0; row < count; row++) truths[row] = Number(values[row] !== other);
      return;
    case '<':
      for (let row = 0; row < count; row++) truths[row] = Number((values[row] as number) < other);
      return;
    case '<=':
      for (let row = 0; row < count; row++) truths[row] = Number((values[row] as number) <= other);
      return;
    case '>':
      for (let row = 0; row < count; row++) truths[row] = Number((values[row] as number) > other);
      return;
    case '>=':
      for (let row = 0; row < count; row++) truths[row] = Number((values[row] as number) >= other);
  }
}

function compareEach(operator: Comparison, a: Float64Array, b: Float64Array, truths: Uint8Array): void {
  const holds = holdsFor(operator);
  for (let row = 0; row < truths.length; row++)
    truths[row] = holds[1 + Math.sign((a[row] as number) - (b[row] as number))] as number;
}

/** Compares integers of 64 bits by halves of 32, of which the lower ones have no sign. */
function compareBigs(operator: Comparison, a: BigInt64Array, b: BigInt64Array, truths: Uint8Array): void {
  const holds = holdsFor(operator);
  const x = new Int32Array(a.buffer, a.byteOffset, a.length * 2);
  const y = new Int32Array(b.buffer, b.byteOffset, b.length * 2);
  for (let row = 0; row < truths.length; row++) {
    const high = (x[row * 2 + 1] as number) - (y[row * 2 + 1] as number);
    const order = high !== 0 ? high : ((x[row * 2] as number) >>> 0) - ((y[row * 2] as number) >>> 0);
    truths[row] = holds[1 + Math.sign(order)] as number;
  }
}

function compareWithBig(
  operator: Comparison,
  values: BigInt64Array,
  other: bigint,
  truths: Uint8Array,
): void {
  const holds = Uint8Array.from(holdsFor(operator));
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const otherLow = Number(BigInt.asUintN(32, other));
  const otherHigh = Number(other >> 32n);
  if (operator === '=') {
    const low = otherLow | 0;
    for (let row = 0; row < truths.length; row++)
      truths[row] = Number(halves[row * 2] === low) & Number(halves[row * 2 + 1] === otherHigh);
    return;
  }
  for (let row = 0; row < truths.length; row++) {
    const high = (halves[row * 2 + 1] as number) - otherHigh;
    const order = high !== 0 ? high : ((halves[row * 2] as number) >>> 0) - otherLow;
    truths[row] = holds[1 + Math.sign(order)] as number;
  }
}

/** Whether it holds for less, equal and more. */
function holdsFor(operator: Comparison): readonly number[] {
  switch (operator) {
    case '=':
      return [0, 1, 0];
    case '<>':
      return [1, 0, 1];
    case '<':
      return [1, 0, 0];
    case '<=':
      return [1, 1, 0];
    case '>':
      return [0, 0, 1];
    case '>=':
      return [0, 1, 1];
  }
}

function compareTexts(operator: Comparison, left: Column, right: Column, truths: Uint8Array): void {
  if (left.kind === 'constant' && right.kind === 'texts')
    return compareTexts(flipped[operator], right, left, truths);
  const rowCount = truths.length;
  const a = asTexts(left, rowCount);
  const holds = holdsFor(operator);
  const orderOf = (order: number) => holds[1 + Math.sign(order)] as number;
  if (right.kind === 'constant' && right.value !== null) {
    const byCode = codesThat(operator, a.dictionary, String(right.value));
    for (let row = 0; row < rowCount; row++) truths[row] = byCode[a.codes[row] as number] as number;
  } else {
    const b = asTexts(right, rowCount);
    for (let row = 0; row < rowCount; row++) {
      if (a.nulls?.[row] === 1 || b.nulls?.[row] === 1) continue;
      truths[row] = orderOf(
        compareBytes(a.dictionary, a.codes[row] as number, b.dictionary, b.codes[row] as number),
      );
    }
    markNulls(truths, b.nulls);
  }
  markNulls(truths, a.nulls);
}

/** Answers, by code, 1 for each string of a dictionary that compares so with `other`, and 0 for the rest. */
export function codesThat(operator: Comparison, dictionary: Dictionary, other: string): Uint8Array {
  const wanted = dictionaryOf([other]);
  const holds = holdsFor(operator);
  const byCode = new Uint8Array(dictionary.count);
  for (let code = 0; code < byCode.length; code++)
    byCode[code] = holds[1 + Math.sign(compareBytes(dictionary, code, wanted, 0))] as number;
  return byCode;
}

const fewValues = 8;

/** Answers, by row, whether its value is one of a list without NULLs. */
export function isIn(column: Column, list: ValueList, rowCount: number): Uint8Array {
  const truths = new Uint8Array(rowCount);
  if (isText(column)) {
    const texts = asTexts(column, rowCount);
    const byCode = codesIn(texts.dictionary, list);
    for (let row = 0; row < rowCount; row++) truths[row] = byCode[texts.codes[row] as number] as number;
    markNulls(truths, texts.nulls);
    return truths;
  }
  const values = asValues(column, rowCount);
  if (values.kind === 'wide') {
    const wanted = list.whole;
    for (let row = 0; row < rowCount; row++)
      truths[row] = wanted.has(values.values[row] as bigint) ? truthy : falsy;
  } else {
    const { exact } = list;
    // Few values have a loop each.
    const numbers = values.values;
    if (exact.size <= fewValues) {
      const each = new Uint8Array(rowCount);
      for (const value of exact) {
        compareWithNumber('=', numbers, value, each);
        for (let row = 0; row < rowCount; row++)
          truths[row] = (truths[row] as number) | (each[row] as number);
      }
    } else {
      for (let row = 0; row < rowCount; row++) truths[row] = Number(exact.has(numbers[row] as number));
    }
  }
  markNulls(truths, values.nulls);
  return truths;
}

/** Answers, by code, 1 for each string of a dictionary that is in a list. Looks at lengths first: most strings have none of the list's. */
export function codesIn(dictionary: Dictionary, { byLength }: ValueList): Uint8Array {
  const byCode = new Uint8Array(dictionary.count);
  for (let code = 0; code < dictionary.count; code++) {
    const same = byLength.get(lengthOf(dictionary, code));
    if (same === undefined) continue;
    const start = startOf(dictionary, code);
    if (same.has(dictionary.bytes.toString('latin1', start, dictionary.ends[code]))) byCode[code] = 1;
  }
  return byCode;
}

function lengthOf(dictionary: Dictionary, code: number): number {
  return (dictionary.ends[code] as number) - startOf(dictionary, code);
}
