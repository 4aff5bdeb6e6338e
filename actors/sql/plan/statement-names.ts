import type { Expression, SelectItem } from '../parse/syntax.ts';
import type { SqlColumn } from './bound.ts';

/** A name as a statement has it; in double quotes its case matters. */
interface WrittenName {
  readonly name: string;
  readonly quoted: boolean;
}

/** The columns that there are, by their names and by how these read in lower case. */
export class ColumnNames {
  readonly #exact = new Map<string, SqlColumn>();
  readonly #lower = new Map<string, SqlColumn[]>();

  constructor(columns: readonly SqlColumn[]) {
    for (const column of columns) {
      if (!this.#exact.has(column.name)) this.#exact.set(column.name, column);
      const lower = column.name.toLowerCase();
      const same = this.#lower.get(lower);
      if (same === undefined) this.#lower.set(lower, [column]);
      else same.push(column);
    }
  }

  /** Finds the column of that very name, otherwise the only one that differs in case alone; null where there is neither. */
  find({ name, quoted }: WrittenName): SqlColumn | null {
    const exact = this.#exact.get(name);
    if (exact !== undefined || quoted) return exact ?? null;
    const alike = this.alike(name);
    return alike.length === 1 ? (alike[0] as SqlColumn) : null;
  }

  /** Finds the columns whose names differ in case alone, or not at all. */
  alike(name: string): readonly SqlColumn[] {
    return this.#lower.get(name.toLowerCase()) ?? [];
  }
}

/** The names of each list of columns: a table of the same segments has the same list, mostly. */
const namesOf = new WeakMap<readonly SqlColumn[], ColumnNames>();

/** Answers the names of columns; for the same array the same ones. */
export function columnNames(columns: readonly SqlColumn[]): ColumnNames {
  const known = namesOf.get(columns);
  if (known !== undefined) return known;
  const names = new ColumnNames(columns);
  namesOf.set(columns, names);
  return names;
}

/** What the aliases of a SELECT stand for: the first item that has the name, otherwise the first that differs in case alone. */
export class Aliases {
  readonly #exact = new Map<string, Expression>();
  readonly #lower = new Map<string, Expression>();

  constructor(items: readonly SelectItem[]) {
    for (const { alias, expression } of items) {
      if (alias === null) continue;
      if (!this.#exact.has(alias)) this.#exact.set(alias, expression);
      const lower = alias.toLowerCase();
      if (!this.#lower.has(lower)) this.#lower.set(lower, expression);
    }
  }

  find({ name, quoted }: WrittenName): Expression | null {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    return quoted ? null : (this.#lower.get(name.toLowerCase()) ?? null);
  }
}
