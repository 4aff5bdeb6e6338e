import type { Column, Nulls } from '../frame/column.ts';
import { asValues, asWide, type Values } from '../frame/column-forms.ts';
import type { SqlValue } from '../plan/value-list.ts';
import { SqlError } from '../sql-error.ts';

/**
 * Makes the column of `left + right` or `left - right`. Integers are added as doubles while these hold all sums of the frame exactly,
 * otherwise as 64 bits. Throws `SqlError` where a sum does not fit these; `at`: where the operator stands.
 */
export function added(left: Column, right: Column, sum: Sum): Column {
  return (
    addedToConstant(left, right, sum) ??
    addedValues(asValues(left, sum.rowCount), asValues(right, sum.rowCount), sum)
  );
}

interface Sum {
  readonly operator: '+' | '-';
  readonly isFloat: boolean;
  readonly rowCount: number;
  readonly at: number;
}

/** Adds a number to each row without making a column of it; null where neither side is one, or 64 bits may be needed. */
function addedToConstant(left: Column, right: Column, { operator, isFloat, rowCount }: Sum): Column | null {
  const [constant, other] = right.kind === 'constant' ? [right, left] : [left, right];
  if (constant.kind !== 'constant' || other.kind !== 'numbers') return null;
  const exact = exactNumber(constant.value);
  if (exact === null) return null;
  const isMinus = operator === '-';
  const sign = isMinus && constant === left ? -1 : 1;
  const number = isMinus && constant === right ? -exact : exact;
  const sums = new Float64Array(rowCount);
  const { values, nulls } = other;
  let largest = 0;
  for (let row = 0; row < sums.length; row++) {
    const sum = sign * (values[row] as number) + number;
    sums[row] = sum;
    const size = sum < 0 ? -sum : sum;
    if (size > largest) largest = size;
  }
  return isFloat || largest <= Number.MAX_SAFE_INTEGER ? { kind: 'numbers', values: sums, nulls } : null;
}

/** A number that a double holds exactly; null for NULL, texts and larger integers. */
function exactNumber(value: SqlValue): number | null {
  if (typeof value !== 'bigint') return typeof value === 'number' ? value : null;
  return Math.abs(Number(value)) <= Number.MAX_SAFE_INTEGER ? Number(value) : null;
}

function addedValues(left: Values, right: Values, { operator, isFloat, rowCount, at }: Sum): Column {
  const nulls = eitherNull(left.nulls, right.nulls);
  if (left.kind === 'numbers' && right.kind === 'numbers') {
    const sums = new Float64Array(rowCount);
    const [a, b] = [left.values, right.values];
    let largest = 0;
    const sign = operator === '+' ? 1 : -1;
    for (let row = 0; row < sums.length; row++) {
      const sum = (a[row] as number) + sign * (b[row] as number);
      sums[row] = sum;
      const size = sum < 0 ? -sum : sum;
      if (size > largest) largest = size;
    }
    if (isFloat || largest <= Number.MAX_SAFE_INTEGER) return { kind: 'numbers', values: sums, nulls };
  }
  return { kind: 'wide', values: wideSums(asWide(left), asWide(right), { operator, nulls, at }), nulls };
}

function eitherNull(a: Nulls, b: Nulls): Nulls {
  if (a === null || b === null) return a ?? b;
  return a.map((isNull, row) => isNull | (b[row] as number));
}

function wideSums(
  left: BigInt64Array,
  right: BigInt64Array,
  { operator, nulls, at }: { readonly operator: '+' | '-'; readonly nulls: Nulls; readonly at: number },
): BigInt64Array {
  const sums = new BigInt64Array(left.length);
  for (let row = 0; row < sums.length; row++) {
    if (nulls?.[row] === 1) continue;
    const [a, b] = [left[row] as bigint, right[row] as bigint];
    const sum = operator === '+' ? a + b : a - b;
    if (BigInt.asIntN(64, sum) !== sum)
      throw new SqlError(at, `${a} ${operator} ${b} does not fit 64 bits: a float in the sum makes it one`);
    sums[row] = sum;
  }
  return sums;
}
