import { must } from '../../../src/base/assert.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import { type Column, dictionaryOf, ofFrame } from '../../sql/frame/column.ts';
import { sliced } from '../../sql/frame/column-forms.ts';
import { type DecodedColumn, decodeColumn, unpacked } from '../../sql/frame/decode-column.ts';
import type { Frame } from '../../sql/frame/frame.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { idColumn } from '../../sql/plan/column-types.ts';
import type { Room } from '../../sql/room.ts';
import { documentId } from '../../storage/document-batch.ts';
import type { QueryContext } from '../query.ts';
import type { ColumnUse, KeptColumn } from './kept-columns.ts';
import { reading, takeTurn } from './query-turns.ts';
import type { SqlChunk } from './sql-parts.ts';
import { valuesElsewhere } from './sql-values.ts';

const noValues: DecodedColumn = { kind: 'constant', value: null };

/** The rows of a frame in their chunk. */
export interface FrameRange {
  readonly chunk: SqlChunk;
  /** The first of the rows, by its number in the chunk; they go to before `end`. */
  readonly from: number;
  readonly end: number;
}

/** Brings the columns that a query reads, from what is kept or from the chunks, and makes frames of them. */
export class LoadedColumns {
  readonly #context: QueryContext;
  /** The plan's columns, by index. */
  readonly #columns: readonly string[];
  readonly #types: ReadonlyMap<string, SqlType>;
  readonly #uses: ReadonlyMap<string, ColumnUse>;
  readonly #room: Room;
  /** Memory for the numbers of a frame, by column, which the next frame uses again. */
  readonly #scratch: Float64Array[] = [];

  constructor(
    context: QueryContext,
    {
      columns,
      types,
      uses,
      room,
    }: {
      readonly columns: readonly string[];
      readonly types: ReadonlyMap<string, SqlType>;
      readonly uses: ReadonlyMap<string, ColumnUse>;
      /** Gives memory for the numbers of frames. */
      readonly room: Room;
    },
  ) {
    this.#context = context;
    this.#room = room;
    this.#columns = columns;
    this.#types = types;
    this.#uses = uses;
  }

  /** Answers what is known of a column without reading it. */
  known(
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

  /** Adds to `loaded` the columns that it has not got, which are read together. */
  async load(chunk: SqlChunk, names: readonly string[], loaded: Map<string, DecodedColumn>): Promise<void> {
    const missing: string[] = [];
    for (const name of names) {
      if (name === idColumn || loaded.has(name)) continue;
      const known = this.known(chunk, name, loaded);
      if (known === undefined) missing.push(name);
      else loaded.set(name, known);
    }
    if (missing.length === 0) return;
    await reading(this.#context, async () => {
      const columns = await chunk.columns(missing, () => takeTurn(this.#context));
      for (const name of missing) {
        loaded.set(name, await this.#decode(chunk, name, columns.get(name)));
      }
    });
  }

  async #decode(chunk: SqlChunk, name: string, values: ColumnValues | undefined): Promise<DecodedColumn> {
    if (values === undefined) return noValues;
    const type = this.typeOf(name);
    const turn = () => takeTurn(this.#context);
    const decoded = decodeColumn(values, type, await valuesElsewhere(chunk, name, { values, type, turn }));
    await takeTurn(this.#context);
    const kept = this.#kept(chunk, name);
    return kept === null ? decoded : kept.keep(chunk.place?.chunk ?? 0, decoded, turn);
  }

  #kept({ place }: SqlChunk, name: string): KeptColumn | null {
    const { keptColumns } = this.#context;
    if (place === null || keptColumns === null) return null;
    const as = { type: this.typeOf(name), use: this.#uses.get(name) ?? 'value' };
    return keptColumns.column(place.reader, name, as);
  }

  typeOf(name: string): SqlType {
    return must(this.#types.get(name), 'a type');
  }

  /** Makes the column of ids of a frame from its documents, for those rows; the others have the id of the first of them. */
  async ids({ chunk, from, end }: FrameRange, rows: Int32Array): Promise<Column> {
    const stored = await reading(this.#context, () =>
      chunk.documents(Array.from(rows, (row) => chunk.firstRow + from + row)),
    );
    const codes = new Int32Array(end - from);
    for (const [code, row] of rows.entries()) codes[row] = code;
    const dictionary = dictionaryOf(stored.map(({ buffer, offset }) => documentId(buffer, offset)));
    return { kind: 'texts', codes, dictionary, nulls: null };
  }

  /** Makes a frame of loaded columns and of the rows of the part that match. It lasts until the next one. */
  frame(
    { chunk, from, end }: FrameRange,
    loaded: ReadonlyMap<string, DecodedColumn>,
    matches: readonly Uint8Array[],
  ): Frame {
    const columns = this.#columns;
    const made: Column[] = [];
    return {
      rowCount: end - from,
      rows: null,
      column: (index) => {
        const known = made[index];
        if (known !== undefined) return known;
        const name = must(columns[index], 'a column');
        const decoded = must(loaded.get(name), 'a loaded column');
        const column =
          decoded.kind === 'packed'
            ? unpacked(decoded, { from, end, scratch: (count) => this.#scratchOf(index, count) })
            : name === idColumn
              ? decoded
              : sliced(decoded, from, end);
        made[index] = ofFrame(column, end - from);
        return column;
      },
      slot: () => must<Column>(undefined, 'rows have no slots'),
      textMatch: (index) =>
        must(matches[index], 'a match').subarray(chunk.firstRow + from, chunk.firstRow + end),
    };
  }

  #scratchOf(column: number, count: number): Float64Array {
    const scratch = this.#room.grown(this.#scratch[column] ?? new Float64Array(0), count, count);
    this.#scratch[column] = scratch;
    return scratch.subarray(0, count);
  }
}
