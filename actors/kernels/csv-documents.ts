import { readFileSync } from 'node:fs';
import { assert } from '../../src/base/assert.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';

/** What assembly/csv-documents.ts exports. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly sourceAddress: WebAssembly.Global;
  readonly sourceBytesMax: WebAssembly.Global;
  readonly entriesAddress: WebAssembly.Global;
  readonly entriesBytesMax: WebAssembly.Global;
  readonly madeRowsMax: WebAssembly.Global;
  readonly columnsMax: WebAssembly.Global;
  readonly fieldsMax: WebAssembly.Global;
  readonly membersBytesMax: WebAssembly.Global;
  readonly kindsAddress: WebAssembly.Global;
  readonly valuesAddress: WebAssembly.Global;
  readonly columnsAddress: WebAssembly.Global;
  readonly textsAddress: WebAssembly.Global;
  readonly membersAddress: WebAssembly.Global;
  readonly prepareRows: (
    fields: number,
    columns: number,
    texts: number,
    id: number,
    idMax: number,
    metaMax: number,
  ) => void;
  readonly makeRows: (from: number, end: number, rows: number, bytesMax: number, row: number) => number;
  readonly nextPosition: () => number;
  readonly writtenBytes: () => number;
  readonly writtenValues: () => number;
}

/** Compiled once a thread, for its first file. */
let code: WebAssembly.Module | null = null;

/** Kinds of columns, as the kernel numbers them. */
export const csvKinds = ['int', 'float', 'bool', 'date', 'time', 'text'] as const;

/** A kind beside those of columns: a number of more digits than a double tells exactly, of which the kernel tells where its text lies. */
export const longFloat = 12;

export interface CsvShape {
  /** Fields of a row. */
  readonly fields: number;
  /** The field of the ids; null: the row's number. */
  readonly id: number | null;
  /** Fields that make the text. */
  readonly texts: readonly number[];
  /** The columns of metas. */
  readonly columns: readonly {
    readonly name: string;
    readonly field: number;
    readonly kind: (typeof csvKinds)[number];
  }[];
  /** Bytes of an id and of a meta, at most. */
  readonly idBytesMax: number;
  readonly metaBytesMax: number;
}

/** Makes document entries, and values of columns, of plain rows of a CSV file. */
export class CsvDocuments {
  readonly #kernels: Kernels;
  /** The bytes of the file. */
  readonly source: ViewedBytes;
  readonly #entries: Uint8Array;
  readonly #kinds: Uint8Array;
  readonly #values: Float64Array;
  readonly #wide: Int32Array;
  readonly #rowsMax: number;

  /** Answers a kernel of its own for files of a shape; null where that has more fields, columns or names than there is room for. */
  static for(shape: CsvShape): CsvDocuments | null {
    const documents = new CsvDocuments();
    return documents.#prepare(shape) ? documents : null;
  }

  private constructor() {
    code ??= new WebAssembly.Module(readFileSync(new URL('csv-documents.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, sourceAddress, sourceBytesMax, entriesAddress, entriesBytesMax } = this.#kernels;
    const { kindsAddress, valuesAddress, madeRowsMax, columnsMax } = this.#kernels;
    const { buffer } = memory;
    this.#rowsMax = madeRowsMax.value as number;
    const cells = this.#rowsMax * (columnsMax.value as number);
    this.source = viewed(Buffer.from(buffer, sourceAddress.value as number, sourceBytesMax.value as number));
    this.#entries = new Uint8Array(buffer, entriesAddress.value as number, entriesBytesMax.value as number);
    this.#kinds = new Uint8Array(buffer, kindsAddress.value as number, cells);
    this.#values = new Float64Array(buffer, valuesAddress.value as number, cells);
    this.#wide = new Int32Array(buffer, valuesAddress.value as number, cells * 2);
  }

  /**
   * Makes the rows of `source` that begin at `from` and end before `end`: at most `rows`, and as many as have room in `bytes`; `number` is the first one's.
   * Answers how many: it stops before the first one that is not plain. What was made stays until the next call.
   */
  make(
    { from, end }: { readonly from: number; readonly end: number },
    { rows, bytes, number }: { readonly rows: number; readonly bytes: number; readonly number: number },
  ): number {
    const most = Math.min(rows, this.#rowsMax);
    return this.#kernels.makeRows(from, end, most, Math.min(bytes, this.#entries.length), number);
  }

  /** Where in `source` the first row begins that was not made. */
  get position(): number {
    return this.#kernels.nextPosition();
  }

  /** The entries that were made, one behind the other. */
  get entries(): Uint8Array {
    return this.#entries.subarray(0, this.#kernels.writtenBytes());
  }

  /** Values of all metas that were made. */
  get valueCount(): number {
    return this.#kernels.writtenValues();
  }

  /** Kinds of a column's values, by row; 0 where a row has none. */
  kindsOf(column: number): Uint8Array {
    return this.#kinds.subarray(column * this.#rowsMax, (column + 1) * this.#rowsMax);
  }

  /** A column's numbers, by row. */
  numbersOf(column: number): Float64Array {
    return this.#values.subarray(column * this.#rowsMax, (column + 1) * this.#rowsMax);
  }

  /** A column's values as pairs, by row: halves of integers of 64 bits, the lower one first, or where texts begin in `source` and end. */
  pairsOf(column: number): Int32Array {
    return this.#wide.subarray(column * this.#rowsMax * 2, (column + 1) * this.#rowsMax * 2);
  }

  #prepare({ fields, id, texts, columns, idBytesMax, metaBytesMax }: CsvShape): boolean {
    const { memory, columnsMax, fieldsMax, membersBytesMax } = this.#kernels;
    const { columnsAddress, textsAddress, membersAddress, prepareRows } = this.#kernels;
    const members = columns.map(({ name }) => Buffer.from(`,${JSON.stringify(name)}:`));
    const memberBytes = Buffer.concat(members);
    if (fields > (fieldsMax.value as number) || columns.length > (columnsMax.value as number)) return false;
    if (memberBytes.length > (membersBytesMax.value as number) || texts.length > fields) return false;
    assert(
      columns.every(({ field }) => field < fields),
      () => 'a field that rows have',
    );
    const words = new Uint32Array(memory.buffer);
    const memberStart = membersAddress.value as number;
    memberBytes.copy(new Uint8Array(memory.buffer), memberStart);
    let start = memberStart;
    for (const [at, { field, kind }] of columns.entries()) {
      const { length } = members[at] as Buffer;
      words.set(
        [field, csvKinds.indexOf(kind), start, length],
        (columnsAddress.value as number) / 4 + at * 4,
      );
      start += length;
    }
    words.set(texts, (textsAddress.value as number) / 4);
    prepareRows(fields, columns.length, texts.length, id ?? -1, idBytesMax, metaBytesMax);
    return true;
  }
}
