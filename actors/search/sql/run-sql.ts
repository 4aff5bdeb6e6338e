import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import type { SqlRequest } from '../../../protocol/sql.ts';
import { must } from '../../../src/base/assert.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import { valueKinds } from '../../columns/value-kinds.ts';
import { Evaluator } from '../../sql/expression/evaluate.ts';
import type { NewReplacer, Replacer } from '../../sql/expression/replacer.ts';
import { type Column, dictionaryOf } from '../../sql/frame/column.ts';
import { sliced, takenFrame } from '../../sql/frame/column-forms.ts';
import { type DecodedColumn, decodeColumn, unpacked } from '../../sql/frame/decode-column.ts';
import { allRows, type Frame } from '../../sql/frame/frame.ts';
import { evaluated, type Interruption, type Step } from '../../sql/interruption.ts';
import { namesIn } from '../../sql/parse/names-in.ts';
import { parseSql } from '../../sql/parse/parser.ts';
import type { Select, TextMatch } from '../../sql/parse/syntax.ts';
import { bindInSteps } from '../../sql/plan/bind.ts';
import type { Bound, SelectPlan, SqlColumn, SqlType } from '../../sql/plan/bound.ts';
import { collectColumns } from '../../sql/plan/bound-parts.ts';
import { type ColumnRange, canMatch } from '../../sql/plan/can-match.ts';
import { ColumnTypes, idColumn, isColumn } from '../../sql/plan/column-types.ts';
import { Room, RoomExceeded } from '../../sql/room.ts';
import { SelectRun } from '../../sql/run/run-select.ts';
import { located, locating, SqlError } from '../../sql/sql-error.ts';
import { documentId, documentText } from '../../storage/document-batch.ts';
import { isReadFailure } from '../../storage/read-failure.ts';
import type { Found } from '../../text/judge.ts';
import { Judge } from '../../text/judge.ts';
import { MatchReplacer } from '../../text/replace-matches.ts';
import { noteSpent, spentBefore } from '../../thread/spent.ts';
import { framed, late, type QueryContext } from '../query.ts';
import { isOutOfTime, scanNewestFirst } from '../scan.ts';
import { columnsOfDocuments, isWorthReading } from './few-rows.ts';
import type { ColumnUse, KeptColumn } from './kept-columns.ts';
import { liveKeys } from './live-keys.ts';
import { sqlPage } from './sql-page.ts';
import { type SqlChunk, type SqlPart, sqlParts } from './sql-parts.ts';
import { hasTextElsewhere, valuesElsewhere } from './sql-values.ts';

/**
 * One statement over a snapshot.
 *
 * 1. The columns that there are, and their types, from the directories of all parts.
 * 2. The statement is bound to them: what is wrong with it is known before anything is read.
 * 3. Chunk by chunk: the columns of WHERE first, the others where a row passes, a frame of rows at a time. Between two frames
 *    others have their turn, the time limit is looked at, and what groups and rows take.
 */
export async function runSql(context: QueryContext, request: SqlRequest): Promise<string> {
  const { sql } = request;
  const statement = locating(sql, () => parseSql(sql));
  const parts = await reading(context, () => sqlParts(context.snapshot, context.report));
  const wanted = statement.kind === 'select' ? namesIn(statement) : null;
  let columns = await reading(context, () => columnsOf(context, parts, wanted));
  if (statement.kind === 'showColumns') return showColumns(context, request, { columns, parts });
  let plan: SelectPlan;
  try {
    plan = await boundInTurns(context, statement, columns);
  } catch (error) {
    if (!(error instanceof SqlError)) throw error;
    // What is wrong may name columns that were not asked for.
    if (wanted === null) throw located(sql, error);
    columns = await reading(context, () => columnsOf(context, parts, null));
    plan = await boundInTurns(context, statement, columns).catch((known: unknown) => {
      throw known instanceof SqlError ? located(sql, known) : known;
    });
  }
  try {
    return await new SqlQuery(context, request, { plan, columns, parts }).run();
  } catch (error) {
    if (error instanceof RoomExceeded) {
      const megabytes = (error.bytesMax / 2 ** 20).toPrecision(2);
      const problem = `the groups, distinct values or rows of this query take more than the ${megabytes} MB that it may have now`;
      throw tooMuch(context, problem, 'narrow it with WHERE, group by less, or run fewer queries at once');
    }
    if (!(error instanceof SqlError)) throw error;
    const { cpuMs } = spentBefore(error.cause);
    const shown = located(sql, error);
    throw cpuMs > 0 ? noteSpent(shown, cpuMs, context.report) : shown;
  }
}

async function boundInTurns(
  context: QueryContext,
  statement: Select,
  columns: readonly CountedColumn[],
): Promise<SelectPlan> {
  await takeTurn(context);
  const steps = bindInSteps(statement, columns);
  for (let step = steps.next(); ; step = steps.next()) {
    await takeTurn(context);
    if (step.done) return step.value;
  }
}

/** Rows of a frame: so many are looked at in a few milliseconds, whatever is done with them. */
const frameRows = 16_384;
/** A look-up of several keys together may take half a microsecond. */
const hashedFrameRows = 2_048;
/** RE2 takes microseconds to replace in a text. */
const replacingFrameRows = 512;

/** Fewer, where a row has many columns to answer. */
function frameRowsOf({ replaces, outputs, grouping }: SelectPlan): number {
  if (replaces) return replacingFrameRows;
  if (grouping !== null) return isHashed(grouping) ? hashedFrameRows : frameRows;
  return Math.max(64, Math.min(frameRows, Math.floor(cellsOfFrame / outputs.length)));
}

/** Rows that expressions of that weight may be evaluated for at once: some five milliseconds and megabytes. */
function rowsOfWeight(weight: number): number {
  return Math.max(frameRowsMin, Math.floor(stepsOfFrame / Math.max(1, weight)));
}

const stepsOfFrame = 524_288;
/** With fewer, most of the time would be what an expression costs whatever it is asked for. */
const frameRowsMin = 64;

function isHashed({ keys, aggregates }: NonNullable<SelectPlan['grouping']>): boolean {
  return keys.length > 1 || (keys.length > 0 && aggregates.some(({ distinct }) => distinct));
}

const cellsOfFrame = 32_768;

type CountedColumn = SqlColumn & { readonly parts: number };

/**
 * Waits for reads within the time of the query, and for what is done with them. Throws `query_timeout` where that is over and the
 * store answers; whoever called the query says what else failed.
 */
async function reading<T>(context: QueryContext, read: () => Promise<T>): Promise<T> {
  try {
    return await context.slice.waitFor(read());
  } catch (error) {
    if (isReadFailure(error) && isOutOfTime(error)) throw tooLate();
    throw error;
  }
}

async function takeTurn({ slice }: QueryContext): Promise<void> {
  if (!slice.due()) return;
  await slice.giveWay();
  if (slice.timedOut) throw tooLate();
}

/**
 * The id, and the keys of live documents' metas in the order in which they came first. Where some names alone are wanted, of the others
 * no more is known than that some document has or had them.
 */
async function columnsOf(
  context: QueryContext,
  parts: readonly SqlPart[],
  wanted: ReadonlySet<string> | null,
): Promise<CountedColumn[]> {
  const types = new ColumnTypes();
  for (const part of parts) {
    const keys = await liveKeys(part, { wanted, turn: () => takeTurn(context) });
    for (const [key, counts] of keys) {
      if (!isColumn(key)) continue;
      const isWanted = wanted === null || wanted.has(key.toLowerCase());
      const isOpen = isWanted && (counts[valueKinds.other] as number) > 0 && counts[valueKinds.string] === 0;
      types.add(key, counts, isOpen && (await isTextElsewhere(context, part, key)));
    }
    types.countPart(keys.keys());
  }
  return [
    { name: idColumn, type: 'text', parts: parts.filter(({ hasLive }) => hasLive).length },
    ...types.list(),
  ];
}

async function isTextElsewhere(
  context: QueryContext,
  { chunks, isLive }: SqlPart,
  key: string,
): Promise<boolean> {
  for (const chunk of chunks) {
    const values = (await chunk.columns([key], () => takeTurn(context))).get(key);
    if (values !== undefined && (await hasTextElsewhere(chunk, key, { values, isLive }))) return true;
  }
  return false;
}

function showColumns(
  context: QueryContext,
  request: SqlRequest,
  { columns, parts }: { readonly columns: readonly CountedColumn[]; readonly parts: readonly SqlPart[] },
): string {
  const rows = columns.map(({ name, type, parts: count }) => JSON.stringify([name, type, count]));
  return sqlAnswer(context, request, {
    columns: ['name', 'type', 'segments'],
    types: ['text', 'text', 'int'],
    rows,
    truncated: false,
    chunks: parts.reduce((sum, { chunks }) => sum + chunks.length, 0),
    scanned: 0,
  });
}

interface Answered {
  readonly columns: readonly string[];
  readonly types: readonly SqlType[];
  readonly rows: readonly string[];
  readonly truncated: boolean;
  readonly chunks: number;
  readonly scanned: number;
}

/** The page of the rows that the request has room for. Throws where even that is too large. */
function sqlAnswer(context: QueryContext, request: SqlRequest, answered: Answered): string {
  const { columns, types, truncated, chunks, scanned } = answered;
  const { rows, next } = sqlPage(context, request, answered.rows);
  refuseLargeAnswer(context, rows);
  return framed(
    context,
    { kind: 'complete' },
    `"columns":${JSON.stringify(columns)},"types":${JSON.stringify(types)},"rows":[${rows.join(',')}],` +
      `"chunks":${chunks},"scanned":${scanned},"truncated":${truncated || next !== null}` +
      `${next === null ? '' : `,"next":"${next}"`}`,
  );
}

class SqlQuery {
  readonly #context: QueryContext;
  readonly #request: SqlRequest;
  readonly #plan: SelectPlan;
  readonly #types: ReadonlyMap<string, SqlType>;
  readonly #parts: readonly SqlPart[];
  readonly #run: SelectRun;
  /** Of what it counts, until it has answered. */
  readonly #room: Room;
  /** WHERE is true of documents with these ids alone; null where it does not say so. */
  readonly #wantedIds: readonly string[] | null;
  /** Of columns whose distinct values are asked for, or that keys are made of. */
  readonly #uses: ReadonlyMap<string, ColumnUse>;
  /** By column: numbers of the frame. */
  readonly #scratch: Float64Array[] = [];
  readonly #frameRows: number;
  /** Of a frame that is filtered first. */
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
    this.#types = new Map(columns.map(({ name, type }) => [name, type]));
    const rowsMax = parts.reduce((sum, { rowCount }) => sum + rowCount, 0);
    this.#room = new Room(rowsMax, context.buffers, context.sqlHolding);
    this.#run = new SelectRun(plan, this.#evaluator(), this.#room);
    this.#uses = keyColumns(plan);
    this.#wantedIds = idsOf(plan.where, plan.columns);
    this.#frameRows = Math.min(frameRowsOf(plan), rowsOfWeight(plan.weight));
    this.#filterRows = Math.min(frameRows, rowsOfWeight(plan.whereWeight));
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
    for (const match of this.#plan.textMatches) matches.push(await this.#matching(part, match));
    const ids = this.#wantedIds;
    const rows = ids === null ? null : await reading(this.#context, () => part.rowsOf(ids));
    for (const chunk of part.chunks) {
      if (this.#run.isComplete) return;
      const wanted = rows === null ? null : within(rows, chunk);
      if (wanted?.length !== 0) await this.#addChunk(part, chunk, { matches, wanted });
    }
  }

  /** `wanted`: the only rows of the chunk that can pass; null for all. */
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
    await this.#load(chunk, first, loaded);
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
      if (first.includes(idColumn)) loaded.set(idColumn, await this.#ids(range, live));
      const frame = this.#frame(range, loaded, matches);
      const passing = this.#run.wanted(await this.#passing(terms, frame, live));
      this.#checkMemory();
      if (passing.length === 0) continue;
      if (await this.#addFew(range, passing, loaded)) continue;
      await this.#load(chunk, columns, loaded);
      if (columns.includes(idColumn) && !first.includes(idColumn))
        loaded.set(idColumn, await this.#ids(range, passing));
      // Of most rows of a frame nothing is taken out, which would cost more than it saves.
      const isWhole = terms.length === 0 || (passing.length * 2 > end - from && this.#frameRows >= frameRows);
      if (isWhole) await this.#steps(this.#run.add({ ...frame, rows: passing }, passing));
      else await this.#addPieces(frame, passing);
    }
  }

  /** Of a chunk whose statistics tell the least and the greatest of each column: they stand for all of its rows. Answers whether they do. */
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
   * Where the answer takes any rows and these are few: made of their documents, if that is less to read than whole columns. Answers
   * whether it was. `passing`: of the frame.
   */
  async #addFew(
    { chunk, from }: Range,
    passing: Int32Array,
    loaded: ReadonlyMap<string, DecodedColumn>,
  ): Promise<boolean> {
    const { columns, grouping, orderBy } = this.#plan;
    if (grouping !== null || orderBy.length > 0) return false;
    const missing = columns.filter(
      (name) => name !== idColumn && this.#known(chunk, name, loaded) === undefined,
    );
    if (!isWorthReading(chunk, passing, missing)) return false;
    const stored = await reading(this.#context, () =>
      chunk.documents(Array.from(passing, (row) => chunk.firstRow + from + row)),
    );
    const temporalKeys = this.#context.snapshot.temporalKeys ?? new Set();
    const typeOf = (name: string) => this.#typeOf(name);
    const names = columns.filter((name) => name !== idColumn);
    const made = await columnsOfDocuments(chunk, stored, { names, typeOf, temporalKeys });
    if (made === null) return false;
    const ids = () => dictionaryOf(stored.map(({ buffer, offset }) => documentId(buffer, offset)));
    const rowCount = passing.length;
    const column = (index: number): Column => {
      const name = must(columns[index], 'a column');
      if (name === idColumn)
        return { kind: 'texts', codes: allRows(rowCount), dictionary: ids(), nulls: null };
      const decoded = must(made.get(name), 'a column of documents');
      return decoded.kind === 'packed'
        ? unpacked(decoded, { from: 0, end: rowCount, scratch: new Float64Array(rowCount) })
        : decoded;
    };
    const none = () => must<never>(undefined as never, 'texts are matched in WHERE alone');
    await this.#steps(
      this.#run.add({ rowCount, rows: null, column, slot: none, textMatch: none }, allRows(rowCount)),
    );
    return true;
  }

  /** `passing`: of the frame. */
  async #addPieces(frame: Frame, passing: Int32Array): Promise<void> {
    for (let from = 0; from < passing.length && !this.#run.isComplete; from += this.#frameRows) {
      if (from > 0) await this.#turn();
      const rows = passing.subarray(from, from + this.#frameRows);
      await this.#steps(this.#run.add(takenFrame(frame, rows), allRows(rows.length)));
    }
  }

  async #passing(terms: readonly Bound[], frame: Frame, rows: Int32Array): Promise<Int32Array> {
    let passing = rows;
    const { filter } = this.#run;
    const filtering = function* () {
      passing = yield* evaluated(() => filter.passing(terms, frame, rows));
    };
    await this.#steps(filtering());
    return passing;
  }

  /** Others have their turn between two of them, and while an interruption's work is done. */
  async #steps(steps: Generator<Step, void, void>): Promise<void> {
    for (const step of steps) {
      if (step !== undefined) await this.#workOf(step);
      this.#checkMemory();
      await this.#turn();
    }
    this.#checkMemory();
  }

  /** What is known of a column without reading it. */
  #known(
    chunk: SqlChunk,
    name: string,
    loaded: ReadonlyMap<string, DecodedColumn>,
  ): DecodedColumn | undefined {
    const column = loaded.get(name);
    if (column !== undefined) return column;
    // No row of it has a value: nothing is kept of that.
    if (chunk.range(name) === 'none') return noValues;
    return this.#kept(chunk, name)?.get(chunk.place?.chunk ?? 0);
  }

  async #load(chunk: SqlChunk, names: readonly string[], loaded: Map<string, DecodedColumn>): Promise<void> {
    const missing: string[] = [];
    for (const name of names) {
      if (name === idColumn || loaded.has(name)) continue;
      const known = this.#known(chunk, name, loaded);
      if (known === undefined) missing.push(name);
      else loaded.set(name, known);
    }
    if (missing.length === 0) return;
    await reading(this.#context, async () => {
      const columns = await chunk.columns(missing, () => this.#turn());
      for (const name of missing) {
        loaded.set(name, await this.#decode(chunk, name, columns.get(name)));
      }
    });
  }

  async #decode(chunk: SqlChunk, name: string, values: ColumnValues | undefined): Promise<DecodedColumn> {
    if (values === undefined) return noValues;
    const type = this.#typeOf(name);
    const decoded = decodeColumn(values, type, await valuesElsewhere(chunk, name, { values, type }));
    await this.#turn();
    const kept = this.#kept(chunk, name);
    return kept === null ? decoded : kept.keep(chunk.place?.chunk ?? 0, decoded, () => this.#turn());
  }

  #kept({ place }: SqlChunk, name: string): KeptColumn | null {
    const { keptColumns } = this.#context;
    if (place === null || keptColumns === null) return null;
    const as = { type: this.#typeOf(name), use: this.#uses.get(name) ?? 'value' };
    return keptColumns.column(place.reader, name, as);
  }

  #typeOf(name: string): SqlType {
    return must(this.#types.get(name), 'a type');
  }

  /** Of those rows of a frame; the others' are the first one's. */
  async #ids({ chunk, from, end }: Range, rows: Int32Array): Promise<Column> {
    const stored = await reading(this.#context, () =>
      chunk.documents(Array.from(rows, (row) => chunk.firstRow + from + row)),
    );
    const codes = new Int32Array(end - from);
    for (const [code, row] of rows.entries()) codes[row] = code;
    const dictionary = dictionaryOf(stored.map(({ buffer, offset }) => documentId(buffer, offset)));
    return { kind: 'texts', codes, dictionary, nulls: null };
  }

  #frame(
    { chunk, from, end }: Range,
    loaded: ReadonlyMap<string, DecodedColumn>,
    matches: readonly Uint8Array[],
  ): Frame {
    const { columns } = this.#plan;
    const ofFrame: Column[] = [];
    return {
      rowCount: end - from,
      rows: null,
      column: (index) => {
        const known = ofFrame[index];
        if (known !== undefined) return known;
        const name = must(columns[index], 'a column');
        const decoded = must(loaded.get(name), 'a loaded column');
        const column =
          decoded.kind === 'packed'
            ? unpacked(decoded, { from, end, scratch: this.#scratchOf(index) })
            : name === idColumn
              ? decoded
              : sliced(decoded, from, end);
        ofFrame[index] = column;
        return column;
      },
      slot: () => must<Column>(undefined, 'rows have no slots'),
      textMatch: (index) =>
        must(matches[index], 'a match').subarray(chunk.firstRow + from, chunk.firstRow + end),
    };
  }

  #scratchOf(column: number): Float64Array {
    const scratch = this.#scratch[column] ?? new Float64Array(frameRows);
    this.#scratch[column] = scratch;
    return scratch;
  }

  /** A part's rows whose text matches. */
  async #matching(part: SqlPart, { query, regex, at }: TextMatch): Promise<Uint8Array> {
    const rows = new Uint8Array(part.rowCount);
    if (query === '') return rows.fill(1);
    const context = this.#context;
    const pattern = asked(at, () => context.patterns.of(query, regex));
    const judge = new Judge(pattern, { elsewhere: context.match, turns: context.slice });
    const options = {
      below: Number.POSITIVE_INFINITY,
      condition: pattern.condition,
      slice: context.slice,
      report: context.report,
    };
    const end = await scanNewestFirst(part.snapshot, options, ({ buffer, offset, row, parts }) => {
      const take = (found: Found) => {
        if (found !== null) rows[row] = 1;
        return true;
      };
      const text = documentText(buffer, offset);
      if (text === null) return true;
      const found = asked(at, () => judge.find(text, 'none', parts));
      if (!(found instanceof Promise)) return take(found);
      return late(context, found, take).catch((error: unknown) => asked(at, () => raise(error)));
    });
    if (end.kind === 'failed') throw end.cause;
    if (end.kind === 'timed-out') throw tooLate();
    return rows;
  }

  #evaluator(): Evaluator {
    const { slice, match, patterns } = this.#context;
    const surroundings = { elsewhere: match, turns: slice };
    const newReplacer: NewReplacer = ({ pattern, replacement, at }) =>
      asked(at, () =>
        replacerOf(new MatchReplacer({ query: pattern, replacement, patterns }, surroundings), at),
      );
    return new Evaluator(newReplacer, this.#room, { repeated: this.#plan.repeated, turns: slice });
  }

  /** Others have their turns in what it does, and it ends where the time of the query does. */
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

/** Nothing but the least and the greatest of columns of all rows. */
function asksForExtremes({ where, grouping }: SelectPlan): boolean {
  if (where !== null || grouping === null || grouping.keys.length > 0) return false;
  return grouping.aggregates.every(
    ({ name, argument }) => (name === 'min' || name === 'max') && argument?.kind === 'column',
  );
}

function keyColumns({ grouping, columns }: SelectPlan): Map<string, ColumnUse> {
  const uses = new Map<string, ColumnUse>();
  const distinct = (grouping?.aggregates ?? []).flatMap((one) =>
    one.distinct && one.argument !== null ? [one.argument] : [],
  );
  const keys = [...(grouping?.keys ?? []), ...distinct];
  for (const use of ['operand', 'key'] as const) {
    for (const key of keys) {
      if ((key.kind === 'column') !== (use === 'key')) continue;
      const found = new Set<number>();
      collectColumns(key, found);
      for (const index of found) uses.set(must(columns[index], 'a column'), use);
    }
  }
  return uses;
}

const noValues: DecodedColumn = { kind: 'constant', value: null };

interface Range {
  readonly chunk: SqlChunk;
  /** In the chunk. */
  readonly from: number;
  readonly end: number;
}

function refuseLargeAnswer(context: QueryContext, rows: readonly string[]): void {
  const bytes = rows.reduce((sum, row) => sum + row.length, 0);
  if (bytes <= limits.answerBytesMax) {
    if (context.room.take(bytes)) return;
    throw new ApiError(
      'rate_limited',
      'your running queries take up your part of the memory: send fewer at once, select fewer columns, or say LIMIT',
      { retryAfter: 1 },
    );
  }
  const problem = `the answer takes more than ${limits.answerBytesMax / 2 ** 20} MB`;
  throw tooMuch(context, problem, 'select fewer columns, or say LIMIT');
}

/** Only the work could tell, so it is counted. */
function tooMuch({ slice, report }: QueryContext, problem: string, remedy: string): ApiError {
  const error = new ApiError('invalid', `sql: ${problem}: ${remedy}`, { fields: { sql: problem } });
  return noteSpent(error, slice.cpuMs, report);
}

/** Ids of which a condition that is true says that the document's is one. */
function idsOf(where: Bound | null, columns: readonly string[]): readonly string[] | null {
  if (where === null) return null;
  const isId = (bound: Bound) => bound.kind === 'column' && columns[bound.index] === idColumn;
  switch (where.kind) {
    case 'logic': {
      if (where.operator === 'or') return null;
      for (const operand of where.operands) {
        const ids = idsOf(operand, columns);
        if (ids !== null) return ids;
      }
      return null;
    }
    case 'compare': {
      const { operator, left, right } = where;
      const [column, other] = isId(left) ? [left, right] : [right, left];
      if (operator !== '=' || !isId(column) || other.kind !== 'literal') return null;
      return typeof other.value === 'string' ? [other.value] : null;
    }
    case 'in':
      return where.negated || !isId(where.operand) ? null : where.values.map(String);
    default:
      return null;
  }
}

/** Of ascending rows of a part those that a chunk has. */
function within(rows: Int32Array, { firstRow, rowCount }: SqlChunk): Int32Array {
  return rows.filter((row) => row >= firstRow && row < firstRow + rowCount);
}

/** Those of a frame that live, from 0 for its first. */
function wantedRows(
  part: SqlPart,
  rows: Int32Array,
  { first, from, end }: { readonly first: number; readonly from: number; readonly end: number },
): Int32Array {
  const some = rows.filter((row) => row >= first + from && row < first + end && part.isLive(row));
  return some.map((row) => row - first - from);
}

/** Numbers of the live ones, from 0 for the first. */
function liveRows(part: SqlPart, first: number, end: number): Int32Array {
  if (part.allLive) return allRows(end - first);
  const rows = new Int32Array(end - first);
  let count = 0;
  for (let row = first; row < end; row++) if (part.isLive(row)) rows[count++] = row - first;
  return rows.subarray(0, count);
}

function tooLate(): ApiError {
  return new ApiError('query_timeout', 'the query ran past the time limit of your plan: narrow it');
}

/** What is wrong with a pattern is wrong with the statement. */
function asked<T>(at: number, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof ApiError) throw new SqlError(at, error.fields?.q ?? error.message, error);
    throw error;
  }
}

/** As expressions see it: what is refused for a text is wrong with the statement. */
function replacerOf(replacer: MatchReplacer, at: number): Replacer {
  return {
    quickly: (text) => replacer.quickly(text),
    slowly: (text) => replacer.slowly(text).catch((error: unknown) => asked(at, () => raise(error))),
  };
}

function raise(error: unknown): never {
  throw error;
}
