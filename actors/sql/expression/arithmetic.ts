import type { Column, Nulls } from '../frame/column.ts';
import { asWide, type Values } from '../frame/column-forms.ts';
import { SqlError } from '../sql-error.ts';

/**
 * Makes the column of `left + right` or `left - right`. Integers are added as doubles while these hold all sums of the frame exactly,
 * otherwise as 64 bits. Throws `SqlError` where a sum does not fit these; `at`: where the operator stands.
 */
export function added(
  left: Values,
  right: Values,
  {
    operator,
    isFloat,
    rowCount,
    at,
  }: {
    readonly operator: '+' | '-';
    readonly isFloat: boolean;
    readonly rowCount: number;
    readonly at: number;
  },
): Column {
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
