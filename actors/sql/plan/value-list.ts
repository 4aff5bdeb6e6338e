/** A value of an expression: a bigint for `int`, a number for `float`, `date` (days) and `time` (seconds), a string for `text`. */
export type SqlValue = bigint | number | string | null;

/** The values of an IN list, none of them NULL, in the forms that loops look them up in; each form is made when it is first asked for. */
export class ValueList {
  readonly values: readonly SqlValue[];
  #whole: ReadonlySet<bigint> | null = null;
  #exact: ReadonlySet<number> | null = null;
  #byLength: ReadonlyMap<number, ReadonlySet<string>> | null = null;

  constructor(values: readonly SqlValue[]) {
    this.values = values;
  }

  /** The values of a list of integers. */
  get whole(): ReadonlySet<bigint> {
    this.#whole ??= new Set(this.values.map((value) => BigInt(value as bigint)));
    return this.#whole;
  }

  /** The numbers that are exact as doubles: no other is equal to a double. */
  get exact(): ReadonlySet<number> {
    const isExact = (value: SqlValue) => typeof value !== 'bigint' || BigInt(Number(value)) === value;
    this.#exact ??= new Set(this.values.filter(isExact).map(Number));
    return this.#exact;
  }

  /** The strings by their length in bytes, with a character for each byte of their UTF-8. */
  get byLength(): ReadonlyMap<number, ReadonlySet<string>> {
    this.#byLength ??= stringsByLength(this.values);
    return this.#byLength;
  }
}

function stringsByLength(values: readonly SqlValue[]): ReadonlyMap<number, ReadonlySet<string>> {
  const byLength = new Map<number, Set<string>>();
  for (const value of values) {
    const bytes = Buffer.from(String(value)).toString('latin1');
    const same = byLength.get(bytes.length);
    if (same === undefined) byLength.set(bytes.length, new Set([bytes]));
    else same.add(bytes);
  }
  return byLength;
}
