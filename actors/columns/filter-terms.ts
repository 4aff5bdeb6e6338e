/**
 * A filter as columns are compared with it. Every term asks whether a value is one of some values or in a range; `ne` is
 * `eq` the other way round. Numbers are said twice, as what an integer of 64 bits may be and as what a double may be, so
 * that a comparison of either kind is exact: filterMatches in protocol/filter.ts says what must come out.
 */
import type { Filter, FilterTerm, FilterValue, RangeOperator } from '../../protocol/filter.ts';

export interface ColumnTerm {
  readonly key: string;
  /** `ne`: rows without the key pass, and rows whose value is none of these. */
  readonly negated: boolean;
  readonly null: boolean;
  readonly true: boolean;
  readonly false: boolean;
  /** UTF-8. */
  readonly strings: readonly Buffer[];
  readonly integers: NumberTest<bigint>;
  readonly floats: NumberTest<number>;
  /** Whether an array may be equal to one of the values: only the document knows. */
  readonly nested: boolean;
  /** Whether a scalar that no column holds may pass: a long string, or an integer beyond 64 bits. */
  readonly other: boolean;
}

/** Ascending, each once; or from least to greatest, both included. */
export type NumberTest<N> =
  | { readonly kind: 'values'; readonly values: readonly N[] }
  | { readonly kind: 'range'; readonly least: N; readonly greatest: N };

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/**
 * Makes the terms that columns are asked of a filter. Two ranges of one key become one, from the greater lower bound to the lesser upper
 * bound, in which there may be nothing.
 */
export function columnTerms(filter: Filter): ColumnTerm[] {
  const terms: ColumnTerm[] = [];
  for (const term of filter.terms.map(columnTerm)) {
    const at = isRange(term) ? terms.findIndex((other) => other.key === term.key && isRange(other)) : -1;
    if (at < 0) terms.push(term);
    else terms[at] = withinBoth(terms[at] as ColumnTerm, term);
  }
  return terms;
}

function isRange({ integers }: ColumnTerm): boolean {
  return integers.kind === 'range';
}

function withinBoth(one: ColumnTerm, other: ColumnTerm): ColumnTerm {
  return {
    ...one,
    integers: narrower(one.integers, other.integers),
    floats: narrower(one.floats, other.floats),
  };
}

function narrower<N extends number | bigint>(one: NumberTest<N>, other: NumberTest<N>): NumberTest<N> {
  if (one.kind === 'values' || other.kind === 'values') return one;
  const least = one.least > other.least ? one.least : other.least;
  return { kind: 'range', least, greatest: one.greatest < other.greatest ? one.greatest : other.greatest };
}

function columnTerm(term: FilterTerm): ColumnTerm {
  switch (term.operator) {
    case 'eq':
    case 'ne':
      return valuesTerm(term.key, [term.value], term.operator === 'ne');
    case 'in':
      return valuesTerm(term.key, term.values, false);
    default:
      return rangeTerm(term.key, term.operator, term.value);
  }
}

function valuesTerm(key: string, values: readonly FilterValue[], negated: boolean): ColumnTerm {
  const strings = values.filter((value) => typeof value === 'string');
  const numbers = values.filter((value) => typeof value === 'number' || typeof value === 'bigint');
  return {
    key,
    negated,
    null: values.includes(null),
    true: values.includes(true),
    false: values.includes(false),
    // Half a surrogate pair is in no stored string, and must not be taken for the character that replaces it.
    strings: strings.filter((value) => value.isWellFormed()).map((value) => Buffer.from(value)),
    integers: { kind: 'values', values: ascending(numbers.flatMap(asInteger)) },
    floats: { kind: 'values', values: ascending(numbers.flatMap(asFloat)) },
    nested: values.some((value) => Array.isArray(value)),
    other: strings.length + numbers.length > 0,
  };
}

function ascending<N extends number | bigint>(values: readonly N[]): N[] {
  return [...new Set(values)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

function asInteger(value: number | bigint): bigint[] {
  if (typeof value === 'number' && !Number.isInteger(value)) return [];
  const whole = BigInt(value);
  return whole >= int64Min && whole <= int64Max ? [whole] : [];
}

/** The doubles that are exactly the value: one or none. */
function asFloat(value: number | bigint): number[] {
  const float = Number(value);
  return value >= float && value <= float ? [float] : [];
}

function rangeTerm(key: string, operator: RangeOperator, bound: number | bigint): ColumnTerm {
  const isLower = operator === 'gt' || operator === 'gte';
  const includes = operator === 'gte' || operator === 'lte';
  return {
    key,
    negated: false,
    null: false,
    true: false,
    false: false,
    strings: [],
    integers: isLower
      ? { kind: 'range', least: leastInteger(bound, includes), greatest: int64Max }
      : { kind: 'range', least: int64Min, greatest: -leastInteger(negative(bound), includes) },
    floats: isLower
      ? { kind: 'range', least: leastFloat(bound, includes), greatest: Number.POSITIVE_INFINITY }
      : {
          kind: 'range',
          least: Number.NEGATIVE_INFINITY,
          greatest: -leastFloat(negative(bound), includes),
        },
    nested: false,
    other: true,
  };
}

function negative(bound: number | bigint): number | bigint {
  return -bound;
}

function leastInteger(bound: number | bigint, includes: boolean): bigint {
  const whole = typeof bound === 'bigint' ? bound : BigInt(Math.ceil(bound));
  return whole > bound || includes ? whole : whole + 1n;
}

/** The least double that is more than the bound, or the bound itself where it counts. */
function leastFloat(bound: number | bigint, includes: boolean): number {
  // The nearest, so that none lies between it and the bound.
  const nearest = Number(bound);
  if (nearest > bound || (includes && nearest >= bound)) return nearest;
  return nextUp(nearest);
}

const floatBits = new DataView(new ArrayBuffer(8));

function nextUp(value: number): number {
  if (value === 0) return Number.MIN_VALUE;
  if (value === Number.POSITIVE_INFINITY) return value;
  floatBits.setFloat64(0, value);
  const bits = floatBits.getBigInt64(0);
  floatBits.setBigInt64(0, value > 0 ? bits + 1n : bits - 1n);
  return floatBits.getFloat64(0);
}
