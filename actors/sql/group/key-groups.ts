import { assert, must } from '../../../src/base/assert.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Coded, Column } from '../frame/column.ts';
import { codesOf, taken } from '../frame/column-forms.ts';
import type { Frame } from '../frame/frame.ts';
import { allRows } from '../frame/frame.ts';
import { ByCodes } from '../intern/by-codes.ts';
import type { Interner } from '../intern/interner.ts';
import { LazyInterner } from '../intern/lazy-interner.ts';
import { PairInterner } from '../intern/pair-interner.ts';
import type { Bound } from '../plan/bound.ts';
import { collectColumns } from '../plan/bound-parts.ts';
import { bytesOfAll, type Holder, type Room } from '../room.ts';

/**
 * Keys of GROUP BY that depend on the same column, or on none, or one key that depends on several columns: the values of all of
 * them together get one number. Where the column's values are coded, keys are evaluated once for each code, however many rows
 * have it.
 */
export class KeyGroup {
  /** The keys, by their places in the plan. */
  readonly keys: readonly number[];
  /** Whether the keys are the same in every row. */
  readonly isConstant: boolean;
  readonly #bounds: readonly Bound[];
  readonly #evaluator: Evaluator;
  /** The column that all keys are made of; null where there is none, or where there are several. */
  readonly #column: number | null;
  /** The place in `#bounds` of the key that is the column itself, which the others are then made of; -1 where there is none. */
  readonly #plain: number;
  /** The keys whose values get numbers: the plain one alone where there is one, otherwise all. */
  readonly #interned: readonly Bound[];
  /** The interner of each key, by its place in `#interned`. */
  readonly #interners: readonly Interner[];
  /** Pairs of the first and the second of `#interned`, of these pairs and the third, and so on. */
  readonly #pairs: readonly PairInterner[];
  readonly #byCodes: ByCodes;
  #newRows = new Int32Array(0);
  /** The numbers of one key of several in a frame's rows: the next frame uses them again. */
  #numbers = new Int32Array(0);
  /** Interners, pairs and codes: everything here that holds memory. */
  readonly #parts: readonly Holder[];
  /** The last rows whose codes came for the first time: after an interruption the same are interned again. */
  #first: FirstRows | null = null;

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
    this.#parts = [...this.#interners, ...this.#pairs, this.#byCodes];
  }

  /** How many numbers there are so far. */
  get count(): number {
    return this.#pairs.at(-1)?.count ?? must(this.#interners[0], 'a key').count;
  }

  get bytes(): number {
    return bytesOfAll(this.#parts);
  }

  /** Writes the number of each row's keys into `numbers`. */
  intern(frame: Frame, rows: Int32Array, numbers: Int32Array): void {
    if (this.isConstant && rows.length > 0) {
      const single = new Int32Array(1);
      this.#internRows(frame, rows.subarray(0, 1), single);
      numbers.fill(single[0] as number, 0, rows.length);
      return;
    }
    const column = this.#column === null ? null : frame.column(this.#column);
    const coded = column === null ? null : codesOf(column);
    // The interner of a key that is the column itself looks at codes by itself.
    if (column === null || coded === null || this.#plain >= 0 || hasNulls(column))
      this.#internRows(frame, rows, numbers);
    else this.#internCodes(frame, { column, coded, rows }, numbers);
  }

  /** Makes the column of one key, by its place in `keys`, in the groups that have those numbers. */
  keyColumn(at: number, numbers: Int32Array): Column {
    if (this.isConstant)
      return this.#evaluator.evaluate(must(this.#bounds[at], 'a key'), noRows(numbers.length));
    if (this.#plain >= 0) {
      const plain = this.#keyValues(0, numbers);
      return at === this.#plain
        ? plain
        : this.#evaluator.evaluate(must(this.#bounds[at], 'a key'), {
            ...noRows(numbers.length),
            column: () => plain,
          });
    }
    return this.#keyValues(at, numbers);
  }

  #keyValues(at: number, groups: Int32Array): Column {
    let numbers = groups;
    // From the last pair, which all keys are joined in, down to the one that has this key as its second.
    for (let pair = this.#interned.length - 1; pair > at; pair--)
      numbers = must(this.#pairs[pair - 1], 'pairs').firsts(numbers);
    if (at > 0) numbers = must(this.#pairs[at - 1], 'pairs').seconds(numbers);
    return must(this.#interners[at], 'a key').valuesOf(numbers);
  }

  #internRows(frame: Frame, rows: Int32Array, numbers: Int32Array): void {
    if (this.#interned.length > 1 && this.#numbers.length < rows.length)
      this.#numbers = new Int32Array(rows.length);
    for (const [at, bound] of this.#interned.entries()) {
      const own = at === 0 ? numbers : this.#numbers.subarray(0, rows.length);
      must(this.#interners[at], 'a key').intern(
        this.#evaluator.evaluate(bound, frame),
        rows,
        frame.rowCount,
        own,
      );
      if (at > 0) must(this.#pairs[at - 1], 'pairs').internAll(numbers.subarray(0, rows.length), own);
    }
  }

  #internCodes(
    frame: Frame,
    { column, coded, rows }: { readonly column: Column; readonly coded: Coded; readonly rows: Int32Array },
    numbers: Int32Array,
  ): void {
    const { codes, of } = coded;
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
    if (count > 0)
      this.#internFirst(this.#firstOf(frame, column, newRows.subarray(0, count)), { codes, byCode });
    for (let i = 0; i < rows.length; i++)
      numbers[i] = (byCode[codes[rows[i] as number] as number] as number) - 1;
  }

  /** Makes a frame of rows whose codes come for the first time; of the same frame they are the same until they are interned. */
  #firstOf(of: Frame, column: Column, rows: Int32Array): FirstRows {
    if (this.#first?.of !== of) {
      const some = taken(column, rows);
      this.#first = { of, frame: { ...noRows(rows.length), column: () => some }, rows: rows.slice() };
    }
    assert(this.#first.rows.length === rows.length, () => `${rows.length} rows are the first of their codes`);
    return this.#first;
  }

  /** Interns rows whose codes come for the first time. Where that is interrupted, they come for the first time once more. */
  #internFirst(
    { frame, rows }: FirstRows,
    { codes, byCode }: { readonly codes: Coded['codes']; readonly byCode: Int32Array },
  ): void {
    const numbers = new Int32Array(rows.length);
    let isDone = false;
    try {
      this.#internRows(frame, allRows(rows.length), numbers);
      isDone = true;
      this.#first = null;
    } finally {
      for (let i = 0; i < rows.length; i++)
        byCode[codes[rows[i] as number] as number] = isDone ? (numbers[i] as number) + 1 : 0;
    }
  }
}

/** Rows of a frame whose codes come for the first time. */
interface FirstRows {
  readonly of: Frame;
  /** The frame of these rows alone. */
  readonly frame: Frame;
  /** Which rows of the other they are. */
  readonly rows: Int32Array;
}

/** A frame of values that belong to no rows, and so have nothing else. */
function noRows(rowCount: number): Frame {
  const none = () => must<never>(undefined as never, 'keys of one column have it alone');
  return { rowCount, rows: null, column: none, slot: none, textMatch: none };
}

/** Whether some texts may be NULL: such rows may have any code. */
function hasNulls(column: Column): boolean {
  return column.kind === 'texts' && column.nulls !== null;
}

/** Groups the keys of a plan: those that depend on the same column together, in the order in which their columns come. */
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
