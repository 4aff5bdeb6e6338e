import { must } from '../../../src/base/assert.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Coded, Column } from '../frame/column.ts';
import { codesOf, taken } from '../frame/column-forms.ts';
import type { Frame } from '../frame/frame.ts';
import { allRows } from '../frame/frame.ts';
import { ByCodes, type Interner, PairInterner } from '../intern/interner.ts';
import { LazyInterner } from '../intern/lazy-interner.ts';
import type { Bound } from '../plan/bound.ts';
import { boundParts } from '../plan/plan-weight.ts';
import type { Room } from '../room.ts';

/**
 * Keys of groups that depend on the same column, or on no column, or a key that depends on several: their values together → one
 * number. Where the column's values are coded, keys are evaluated once for each code, however many rows have it.
 */
export class KeyGroup {
  /** In the plan. */
  readonly keys: readonly number[];
  /** They are the same in every row. */
  readonly isConstant: boolean;
  readonly #bounds: readonly Bound[];
  readonly #evaluator: Evaluator;
  /** All keys are of this column; null where they are of none, or of several. */
  readonly #column: number | null;
  /** The key that is the column itself: the others are made of it, for the groups that are asked for. -1 where there is none. */
  readonly #plain: number;
  /** Of the keys that are looked at: of all, or of the plain one. */
  readonly #interned: readonly Bound[];
  readonly #interners: readonly Interner[];
  /** Of the first two keys, of that and the third, and so on. */
  readonly #pairs: readonly PairInterner[];
  readonly #byCodes: ByCodes;
  #newRows = new Int32Array(0);

  constructor(
    evaluator: Evaluator,
    {
      keys,
      bounds,
      columns,
      room,
    }: {
      readonly keys: readonly number[];
      readonly bounds: readonly Bound[];
      readonly columns: ReadonlySet<number>;
      readonly room: Room;
    },
  ) {
    this.keys = keys;
    this.#bounds = bounds;
    this.#evaluator = evaluator;
    const [first] = columns;
    this.#column = columns.size === 1 && first !== undefined ? first : null;
    this.isConstant = columns.size === 0;
    this.#plain = this.#column === null ? -1 : bounds.findIndex(({ kind }) => kind === 'column');
    this.#interned = this.#plain < 0 ? bounds : bounds.slice(this.#plain, this.#plain + 1);
    this.#byCodes = new ByCodes(room);
    this.#interners = this.#interned.map(({ type }) => new LazyInterner(type === 'text', room));
    this.#pairs = this.#interned.slice(1).map(() => new PairInterner(room));
  }

  get count(): number {
    return this.#pairs.at(-1)?.count ?? must(this.#interners[0], 'a key').count;
  }

  get bytes(): number {
    const parts = [...this.#interners, ...this.#pairs, this.#byCodes];
    return parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Numbers of the keys of those rows, into `numbers`. */
  intern(frame: Frame, rows: Int32Array, numbers: Int32Array): void {
    if (this.isConstant && rows.length > 0) {
      const single = new Int32Array(1);
      this.#internRows(frame, rows.subarray(0, 1), single);
      numbers.fill(single[0] as number, 0, rows.length);
      return;
    }
    const column = this.#column === null ? null : frame.column(this.#column);
    const coded = column === null ? null : codesOf(column);
    // Of a key that is the column itself its interner knows the codes.
    if (column === null || coded === null || this.#plain >= 0 || hasNulls(column))
      this.#internRows(frame, rows, numbers);
    else this.#internCodes(column, coded, rows, numbers);
  }

  /** One key's values of some numbers. */
  keyColumn(at: number, groups: Int32Array): Column {
    if (this.isConstant)
      return this.#evaluator.evaluate(must(this.#bounds[at], 'a key'), noRows(groups.length));
    if (this.#plain >= 0) {
      const plain = this.#keyValues(0, groups);
      return at === this.#plain
        ? plain
        : this.#evaluator.evaluate(must(this.#bounds[at], 'a key'), {
            ...noRows(groups.length),
            column: () => plain,
          });
    }
    return this.#keyValues(at, groups);
  }

  #keyValues(at: number, groups: Int32Array): Column {
    let numbers = groups;
    // From the last pair, of all keys, down to the one that has this key as its second.
    for (let pair = this.#interned.length - 1; pair > at; pair--)
      numbers = must(this.#pairs[pair - 1], 'pairs').firsts(numbers);
    if (at > 0) numbers = must(this.#pairs[at - 1], 'pairs').seconds(numbers);
    return must(this.#interners[at], 'a key').valuesOf(numbers);
  }

  #internRows(frame: Frame, rows: Int32Array, numbers: Int32Array): void {
    for (const [at, bound] of this.#interned.entries()) {
      const own = at === 0 ? numbers : new Int32Array(rows.length);
      must(this.#interners[at], 'a key').intern(
        this.#evaluator.evaluate(bound, frame),
        rows,
        frame.rowCount,
        own,
      );
      if (at > 0) must(this.#pairs[at - 1], 'pairs').internAll(numbers.subarray(0, rows.length), own);
    }
  }

  #internCodes(column: Column, { codes, of }: Coded, rows: Int32Array, numbers: Int32Array): void {
    let byCode = this.#byCodes.of(of, 0);
    if (this.#newRows.length < rows.length) this.#newRows = new Int32Array(rows.length);
    const newRows = this.#newRows;
    let count = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const code = codes[row] as number;
      if (code >= byCode.length) byCode = this.#byCodes.of(of, code + 1);
      if (byCode[code] === 0) {
        byCode[code] = 1;
        newRows[count++] = row;
      }
    }
    if (count > 0) this.#internFirst(column, newRows.subarray(0, count), { codes, byCode });
    for (let i = 0; i < rows.length; i++)
      numbers[i] = (byCode[codes[rows[i] as number] as number] as number) - 1;
  }

  /** As `#internNew`; codes come for the first time once more where it fails. */
  #internFirst(
    column: Column,
    rows: Int32Array,
    known: { readonly codes: Coded['codes']; readonly byCode: Int32Array },
  ): void {
    try {
      this.#internNew(column, rows, known);
    } catch (error) {
      for (const row of rows) known.byCode[known.codes[row] as number] = 0;
      throw error;
    }
  }

  /** Each of the rows has a code that came for the first time. */
  #internNew(
    column: Column,
    rows: Int32Array,
    { codes, byCode }: { readonly codes: Coded['codes']; readonly byCode: Int32Array },
  ): void {
    const some = taken(column, rows);
    const none = () => must<never>(undefined as never, 'keys of one column have it alone');
    const frame: Frame = {
      rowCount: rows.length,
      rows: null,
      column: () => some,
      slot: none,
      textMatch: none,
    };
    const numbers = new Int32Array(rows.length);
    this.#internRows(frame, allRows(rows.length), numbers);
    for (let i = 0; i < rows.length; i++)
      byCode[codes[rows[i] as number] as number] = (numbers[i] as number) + 1;
  }
}

/** Of a number of values that belong to no rows. */
function noRows(rowCount: number): Frame {
  const none = () => must<never>(undefined as never, 'keys of one column have it alone');
  return { rowCount, rows: null, column: none, slot: none, textMatch: none };
}

/** Of texts NULL has any code. */
function hasNulls(column: Column): boolean {
  return column.kind === 'texts' && column.nulls !== null;
}

/** Keys that depend on the same columns together, in the order in which their columns come. */
export function keyGroups(evaluator: Evaluator, keys: readonly Bound[], room: Room): KeyGroup[] {
  const groups = new Map<string, { keys: number[]; bounds: Bound[]; columns: ReadonlySet<number> }>();
  for (const [key, bound] of keys.entries()) {
    const columns = new Set<number>();
    const isPure = collectColumns(bound, columns);
    const name = isPure && columns.size <= 1 ? [...columns].join() : `alone ${key}`;
    const known = groups.get(name) ?? { keys: [], bounds: [], columns: isPure ? columns : new Set([-1, -2]) };
    known.keys.push(key);
    known.bounds.push(bound);
    groups.set(name, known);
  }
  return [...groups.values()].map((group) => new KeyGroup(evaluator, { ...group, room }));
}

/** Adds the columns of an expression to `columns`. Answers whether it depends on columns alone. Looks at each part once. */
export function collectColumns(bound: Bound, columns: Set<number>): boolean {
  const seen = new Set<Bound>([bound]);
  let isPure = true;
  // A set's iterator comes to what is added meanwhile.
  for (const part of seen) {
    if (part.kind === 'column') columns.add(part.index);
    else if (part.kind === 'slot' || part.kind === 'textMatch') isPure = false;
    else for (const each of boundParts(part)) seen.add(each);
  }
  return isPure;
}
