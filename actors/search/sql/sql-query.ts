import type { SqlRequest } from '../../../protocol/sql.ts';
import { must } from '../../../src/base/assert.ts';
import { type Column, dictionaryOf } from '../../sql/frame/column.ts';
import { takenFrame } from '../../sql/frame/column-forms.ts';
import { type DecodedColumn, unpacked } from '../../sql/frame/decode-column.ts';
import { allRows, type Frame } from '../../sql/frame/frame.ts';
import { FrameMemory } from '../../sql/frame/frame-memory.ts';
import { evaluated, type Interruption, type Step } from '../../sql/interruption.ts';
import type { Bound, SelectPlan } from '../../sql/plan/bound.ts';
import { type ColumnRange, canMatch } from '../../sql/plan/can-match.ts';
import { idColumn } from '../../sql/plan/column-types.ts';
import { Room } from '../../sql/room.ts';
import { SelectRun } from '../../sql/run/run-select.ts';
import { documentId } from '../../storage/document-batch.ts';
import type { QueryContext } from '../query.ts';
import { columnsOfDocuments, isWorthReading } from './few-rows.ts';
import { filterRowsOf, frameRows, frameRowsOf, rowsOfWeight } from './frame-sizes.ts';
import { liveRows, wantedRows, within } from './live-rows.ts';
import { type FrameRange, LoadedColumns } from './loaded-columns.ts';
import { matchingRows } from './matching-rows.ts';
import { newEvaluator } from './new-evaluator.ts';
import { asksForExtremes, idsOf, keyColumns } from './plan-reads.ts';
import { reading, takeTurn, tooLate } from './query-turns.ts';
import { sqlAnswer } from './sql-answer.ts';
import type { SqlChunk, SqlPart } from './sql-parts.ts';
import type { CountedColumn } from './table-columns.ts';

/**
 * Runs the plan of a SELECT over the parts of a snapshot, chunk by chunk: the columns of WHERE first, the others where a row passes,
 * a frame of rows at a time. Between two frames others have their turn, and what groups and rows take is held to account.
 */
export class SqlQuery {
  readonly #context: QueryContext;
  readonly #request: SqlRequest;
  readonly #plan: SelectPlan;
  readonly #parts: readonly SqlPart[];
  readonly #run: SelectRun;
  /** What it counts is held here until it has answered. */
  readonly #room: Room;
  /** Ids of which a document must have one for WHERE to be true; null where WHERE does not say so. */
  readonly #wantedIds: readonly string[] | null;
  readonly #loader: LoadedColumns;
  /** What columns of a frame's pieces are made of. */
  readonly #pieces: FrameMemory;
  /** How many rows a frame has at most, and one that is filtered first. */
  readonly #frameRows: number;
  readonly #filterRows: number;
  readonly #asksForExtremes: boolean;
  #scanned = 0;

  constructor(
    context: QueryContext,
    request: SqlRequest,
    {
      plan,
      columns,
      parts,
    }: {
      readonly plan: SelectPlan;
      readonly columns: readonly CountedColumn[];
      readonly parts: readonly SqlPart[];
    },
  ) {
    this.#context = context;
    this.#request = request;
    this.#plan = plan;
    this.#parts = parts;
    const read = new Set(plan.columns);
    const types = new Map(
      columns.filter(({ name }) => read.has(name)).map(({ name, type }) => [name, type] as const),
    );
    const rowsMax = parts.reduce((sum, { rowCount }) => sum + rowCount, 0);
    this.#room = new Room(rowsMax, context.buffers, context.sqlHolding);
    this.#pieces = new FrameMemory(this.#room);
    this.#loader = new LoadedColumns(context, {
      columns: plan.columns,
      types,
      uses: keyColumns(plan),
      room: this.#room,
    });
    this.#run = new SelectRun(plan, newEvaluator(context, plan, this.#room), this.#room);
    this.#wantedIds = idsOf(plan.where, plan.columns);
    const kept = plan.repeated.size;
    this.#frameRows = Math.min(frameRowsOf(plan), rowsOfWeight(plan.weight, kept));
    this.#filterRows = Math.min(filterRowsOf(plan), rowsOfWeight(plan.whereWeight, kept));
    this.#asksForExtremes = asksForExtremes(plan);
  }

  async run(): Promise<string> {
    try {
      return await this.#answer();
    } finally {
      this.#room.release();
    }
  }

  async #answer(): Promise<string> {
    const { outputs } = this.#plan;
    for (const part of this.#parts) {
      if (this.#run.isComplete) break;
      await this.#add(part);
    }
    await this.#steps(this.#run.finish());
    const { rows, truncated } = this.#run.answer();
    return sqlAnswer(this.#context, this.#request, {
      columns: outputs.map(({ name }) => name),
      types: outputs.map(({ expression }) => expression.type),
      rows,
      truncated,
      chunks: this.#parts.reduce((sum, { chunks }) => sum + chunks.length, 0),
      scanned: this.#scanned,
    });
  }

  async #add(part: SqlPart): Promise<void> {
    const matches: Uint8Array[] = [];
    for (const match of this.#plan.textMatches) matches.push(await matchingRows(this.#context, part, match));
    const ids = this.#wantedIds;
    const rows = ids === null ? null : await reading(this.#context, () => part.rowsOf(ids));
    for (const chunk of part.chunks) {
      if (this.#run.isComplete) return;
      const wanted = rows === null ? null : within(rows, chunk);
      if (wanted?.length !== 0) await this.#addChunk(part, chunk, { matches, wanted });
    }
  }

  /** Adds the rows of a chunk that pass WHERE. `wanted`: the only rows of the part that can, among the chunk's; null for all. */
  async #addChunk(
    part: SqlPart,
    chunk: SqlChunk,
    { matches, wanted }: { readonly matches: readonly Uint8Array[]; readonly wanted: Int32Array | null },
  ): Promise<void> {
    const { where, columns } = this.#plan;
    await this.#turn();
    const ranges: ColumnRange[] = [];
    const rangeOf = (index: number) => {
      const name = must(columns[index], 'a column');
      const range = ranges[index] ?? (name === idColumn ? 'unknown' : chunk.range(name));
      ranges[index] = range;
      return range;
    };
    if (where !== null && !canMatch(where, rangeOf)) return;
    if (this.#asksForExtremes && part.allLive && (await this.#addExtremes(rangeOf))) return;
    const { filter } = this.#run;
    const terms = filter.termsOf(rangeOf);
    const first = [...filter.columnsOf(terms)].map((index) => must(columns[index], 'a column'));
    const loaded = new Map<string, DecodedColumn>();
    this.#scanned++;
    await this.#loader.load(chunk, first, loaded);
    // A frame that is filtered first may be larger: what is left of it goes on in pieces.
    const rowsAtOnce = terms.length === 0 ? this.#frameRows : this.#filterRows;
    for (let from = 0; from < chunk.rowCount && !this.#run.isComplete; from += rowsAtOnce) {
      await this.#turn();
      const end = Math.min(from + rowsAtOnce, chunk.rowCount);
      const live =
        wanted === null
          ? liveRows(part, chunk.firstRow + from, chunk.firstRow + end)
          : wantedRows(part, wanted, { first: chunk.firstRow, from, end });
      if (live.length === 0) continue;
      const range = { chunk, from, end };
      if (first.includes(idColumn)) loaded.set(idColumn, await this.#loader.ids(range, live));
      const frame = this.#loader.frame(range, loaded, matches);
      const passing = this.#run.wanted(await this.#passing(terms, frame, live));
      this.#checkMemory();
      if (passing.length === 0) continue;
      if (await this.#addFew(range, passing, loaded)) continue;
      await this.#loader.load(chunk, columns, loaded);
      if (columns.includes(idColumn) && !first.includes(idColumn))
        loaded.set(idColumn, await this.#loader.ids(range, passing));
      // Where most rows of a frame pass they are not taken out of it: that would cost more than it saves.
      const isWhole = terms.length === 0 || (passing.length * 2 > end - from && this.#frameRows >= frameRows);
      if (isWhole) await this.#steps(this.#run.add({ ...frame, rows: passing }, passing));
      else await this.#addPieces(frame, passing);
    }
  }

  /**
   * Adds the least and the greatest value of each column in place of all rows of a chunk, where its statistics tell them. Answers
   * whether they did.
   */
  async #addExtremes(rangeOf: (column: number) => ColumnRange): Promise<boolean> {
    const extremes: Column[] = [];
    for (const index of this.#plan.columns.keys()) {
      const range = rangeOf(index);
      if (typeof range === 'string' || !range.isEveryRow) return false;
      extremes.push({ kind: 'numbers', values: Float64Array.of(range.least, range.greatest), nulls: null });
    }
    const none = () => must<never>(undefined as never, 'extremes are of columns');
    const column = (index: number) => must(extremes[index], 'a column');
    await this.#steps(
      this.#run.add({ rowCount: 2, rows: null, column, slot: none, textMatch: none }, allRows(2)),
    );
    return true;
  }

  /**
   * Adds rows that are made of their documents, where the answer takes rows in any order, these are few, and it is less to read
   * than whole columns. Answers whether it was. `passing`: the frame's rows.
   */
  async #addFew(
    { chunk, from }: FrameRange,
    passing: Int32Array,
    loaded: ReadonlyMap<string, DecodedColumn>,
  ): Promise<boolean> {
    const { columns, grouping, orderBy } = this.#plan;
    if (grouping !== null || orderBy.length > 0) return false;
    const missing = columns.filter(
      (name) => name !== idColumn && this.#loader.known(chunk, name, loaded) === undefined,
    );
    if (!isWorthReading(chunk, passing, missing)) return false;
    const stored = await reading(this.#context, () =>
      chunk.documents(Array.from(passing, (row) => chunk.firstRow + from + row)),
    );
    const temporalKeys = this.#context.snapshot.temporalKeys ?? new Set();
    const typeOf = (name: string) => this.#loader.typeOf(name);
    const names = columns.filter((name) => name !== idColumn);
    const turn = () => takeTurn(this.#context);
    const made = await columnsOfDocuments(chunk, stored, { names, typeOf, temporalKeys, turn });
    if (made === null) return false;
    const ids = () => dictionaryOf(stored.map(({ buffer, offset }) => documentId(buffer, offset)));
    const rowCount = passing.length;
    const columnOf = (index: number): Column => {
      const name = must(columns[index], 'a column');
      if (name === idColumn)
        return { kind: 'texts', codes: allRows(rowCount), dictionary: ids(), nulls: null };
      const decoded = must(made.get(name), 'a column of documents');
      return decoded.kind === 'packed'
        ? unpacked(decoded, { from: 0, end: rowCount, scratch: null })
        : decoded;
    };
    // The same each time: what is evaluated once more after an interruption is known by its dictionary.
    const known: Column[] = [];
    const column = (index: number): Column => {
      const made = known[index] ?? columnOf(index);
      known[index] = made;
      return made;
    };
    const none = () => must<never>(undefined as never, 'texts are matched in WHERE alone');
    await this.#steps(
      this.#run.add({ rowCount, rows: null, column, slot: none, textMatch: none }, allRows(rowCount)),
    );
    return true;
  }

  /** Adds rows of a frame, so many at a time as expressions may be evaluated for. */
  async #addPieces(frame: Frame, passing: Int32Array): Promise<void> {
    for (let from = 0; from < passing.length && !this.#run.isComplete; from += this.#frameRows) {
      if (from > 0) await this.#turn();
      const rows = passing.subarray(from, from + this.#frameRows);
      this.#pieces.begin();
      await this.#steps(this.#run.add(takenFrame(frame, rows, this.#pieces), allRows(rows.length)));
    }
  }

  /** Answers the rows of a frame, among `rows`, for which terms of WHERE are true. */
  #passing(terms: readonly Bound[], frame: Frame, rows: Int32Array): Promise<Int32Array> {
    const { filter } = this.#run;
    // No generator is made here by `function*`: V8 would make a hidden class for each, which is old at once and keeps the frame alive.
    return this.#steps(evaluated(() => filter.passing(terms, frame, rows)));
  }

  /** Takes steps, and answers what they come to; others have their turn between two of them, and while an interruption's work is done. */
  async #steps<T>(steps: Generator<Step, T, void>): Promise<T> {
    try {
      for (;;) {
        const { done, value } = steps.next();
        this.#checkMemory();
        if (done === true) return value;
        if (value !== undefined) {
          await this.#workOf(value);
          this.#checkMemory();
        }
        await this.#turn();
      }
    } catch (error) {
      // Steps that are not taken any more are closed, as `for` closes them.
      steps.return(undefined as T);
      throw error;
    }
  }

  /** Does an interruption's work. Others have their turns in it, and it ends where the time of the query does. */
  async #workOf({ work }: Interruption): Promise<void> {
    await work();
    if (this.#context.slice.timedOut) throw tooLate();
  }

  #turn(): Promise<void> {
    return takeTurn(this.#context);
  }

  #checkMemory(): void {
    this.#room.hold(this.#run.bytes);
  }
}
