import { valueKinds } from '../../columns/value-kinds.ts';
import type { SqlColumn, SqlType } from './bound.ts';

/** Collects the columns of a namespace and their types, from what the directories of its parts count. */
export class ColumnTypes {
  readonly #types = new Map<string, { type: SqlType; parts: number }>();

  /** Adds a part's column: how many entries of each kind it has, and whether some that it does not hold are strings. */
  add(key: string, counts: Uint32Array, otherIsText: boolean): void {
    const known = this.#types.get(key) ?? { type: 'null', parts: 0 };
    this.#types.set(key, { ...known, type: wider(known.type, typeOf(counts, otherIsText)) });
  }

  /** Counts a segment or memtable for each of its keys. */
  countPart(keys: Iterable<string>): void {
    for (const key of new Set(keys)) {
      const known = this.#types.get(key);
      if (known !== undefined) known.parts++;
    }
  }

  /** Lists columns in the order in which they came first, without the id, which is always one. */
  list(): (SqlColumn & { readonly parts: number })[] {
    return [...this.#types].map(([name, { type, parts }]) => ({ name, type, parts }));
  }
}

/** The name of the column of ids; a key of that name in a meta is no column. */
export const idColumn = 'id';

/** Whether a meta's key is a column. */
export function isColumn(key: string): boolean {
  return key !== idColumn && !key.startsWith('#');
}

function typeOf(counts: Uint32Array, otherIsText: boolean): SqlType {
  const has = (kind: number) => (counts[kind] as number) > 0;
  if (has(valueKinds.string) || has(valueKinds.nested) || (has(valueKinds.other) && otherIsText))
    return 'text';
  const numbers =
    has(valueKinds.float) || has(valueKinds.other)
      ? 'float'
      : has(valueKinds.integer) || has(valueKinds.true) || has(valueKinds.false)
        ? 'int'
        : 'null';
  const dates = wider(has(valueKinds.date) ? 'date' : 'null', has(valueKinds.time) ? 'time' : 'null');
  return wider(numbers, dates);
}

const widths: readonly SqlType[] = ['null', 'int', 'float', 'text'];

/** Answers the type that holds values of both; dates and times are text beside anything else. */
function wider(a: SqlType, b: SqlType): SqlType {
  if (a === b || b === 'null') return a;
  if (a === 'null') return b;
  if (!widths.includes(a) || !widths.includes(b)) return 'text';
  return widths.indexOf(a) < widths.indexOf(b) ? b : a;
}
