import { isUtf8 } from 'node:buffer';
import { limits } from '../../protocol/limits.ts';
import { wrongRow, wrongValue } from './import-error.ts';
import { escapedBytesMax } from './json-bytes.ts';
import { noUtf8 } from './parquet/value.ts';
import type { VectorLists } from './parquet/vector-lists.ts';
import { type FieldWindow, nullBytes } from './parquet/window.ts';
import { renderedKinds } from './rendered-values.ts';
import type { RowVectors } from './row-vectors.ts';
import type { RowWriter } from './row-writer.ts';

/** Bytes: where no row can be longer, rows are not measured one by one. */
const shortRowBytes = 16 * 1024;

/** What the windows of a file's columns are for. */
export interface WindowUses {
  readonly windows: readonly FieldWindow[];
  /** The windows of meta's columns, in the order of the writer's. */
  readonly meta: readonly FieldWindow[];
  readonly id: FieldWindow | null;
  readonly text: readonly FieldWindow[];
  readonly vector: RowVectorSource | null;
}

/** Where the rows' vectors come from: texts and bytes of a window, or lists of numbers. */
export type RowVectorSource = { readonly vectors: RowVectors } & (
  | { readonly kind: 'window'; readonly window: FieldWindow }
  | { readonly kind: 'lists'; readonly field: VectorLists }
);

/** Windows of all fields over the same rows, which are written one after the other. */
export class WindowRows {
  readonly #writer: RowWriter;
  readonly #uses: WindowUses;
  /** Bytes that the longest row at hand can take. */
  #longest = 0;
  /** The value that was shown last, in bytes of a source. */
  #source: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  constructor(writer: RowWriter, uses: WindowUses) {
    this.#writer = writer;
    this.#uses = uses;
  }

  /** Begins with the rows that the windows have just opened. */
  open(): void {
    this.#longest = 0;
    for (const window of this.#uses.windows) this.#longest += window.longest + nullBytes;
  }

  /** Answers how many bytes the values of a row take at most, before anything is escaped. */
  bytesOf(row: number): number {
    if (this.#longest <= shortRowBytes) return this.#longest;
    let bytes = 0;
    for (const window of this.#uses.windows) bytes += window.bytesOf(row) + nullBytes;
    if (bytes > limits.importRowBytesMax)
      throw wrongRow(this.#writer.row, `its values take more than ${limits.importRowBytesMax} bytes`);
    return bytes;
  }

  write(row: number): void {
    const writer = this.#writer;
    const { meta, id, text } = this.#uses;
    writer.beginRow();
    if (id === null) writer.idByNumber();
    else {
      if (!this.#show(id, row)) this.#end = this.#start;
      writer.id(this.#source, this.#start, this.#end, id.name);
    }
    for (const window of text)
      if (this.#show(window, row)) writer.addText(this.#source, this.#start, this.#end);
    if (this.#uses.vector !== null) this.#readVector(this.#uses.vector, row);
    const isLong =
      writer.mayBeLong(this.#longest * escapedBytesMax) && writer.mayBeLong(this.#jsonBytes(row));
    const leftOut = isLong ? this.#leftOut(row) : null;
    writer.beginMeta();
    for (let column = 0; column < meta.length; column++)
      if (!leftOut?.has(column)) this.#writeValue(column, row);
    writer.endRow();
  }

  #readVector(source: RowVectorSource, row: number): void {
    const { vectors } = source;
    const number = this.#writer.row;
    if (source.kind === 'lists') source.field.read(number, vectors);
    else if (this.#show(source.window, row))
      vectors.bytes(number, this.#source.subarray(this.#start, this.#end));
    else vectors.none();
    this.#writer.vector(vectors.vector);
  }

  /** Writes a value of a row as the writer's field number `field`. */
  #writeValue(field: number, row: number): void {
    const writer = this.#writer;
    const { places, rendered, texts, name } = this.#uses.meta[field] as FieldWindow;
    const place = places[row] as number;
    if (place < 0) writer.null(field);
    else if (rendered !== null) writer.rendered(field, rendered, place);
    else if (texts !== null) {
      const [start, end] = [texts.starts[place] as number, texts.ends[place] as number];
      if (!writer.text(field, texts.viewed, start, end) && !isUtf8(texts.source.subarray(start, end)))
        throw wrongValue(writer.row, name, noUtf8);
    }
  }

  /** Answers how many bytes a row's values take at most as JSON. */
  #jsonBytes(row: number): number {
    let bytes = 0;
    for (const window of this.#uses.meta)
      bytes += window.bytesOf(row) * (window.texts === null ? 1 : escapedBytesMax) + 2;
    return bytes;
  }

  #leftOut(row: number): ReadonlySet<number> | null {
    const rawBytes = (field: number) => (this.#uses.meta[field] as FieldWindow).bytesOf(row);
    return this.#writer.leaveOut(rawBytes, (field) => this.#writeValue(field, row));
  }

  /** Shows a value as an id or a text has it, without quotes and escapes, in `#source`. False for null. */
  #show({ places, rendered, texts, quoteBytes, dropsFraction, name }: FieldWindow, row: number): boolean {
    const place = places[row] as number;
    if (place < 0) return false;
    const kind = rendered?.kinds[place];
    if (kind === renderedKinds.broken)
      throw wrongValue(this.#writer.row, name, rendered?.problemOf(place) ?? '');
    const strings = texts ?? rendered?.raw ?? null;
    if (strings !== null) {
      this.#source = strings.viewed.bytes;
      this.#start = strings.starts[place] as number;
      this.#end = strings.ends[place] as number;
      return true;
    }
    if (rendered === null || kind === renderedKinds.null) return false;
    const { bytes } = rendered.json;
    this.#source = bytes;
    this.#start = (rendered.starts[place] as number) + quoteBytes;
    this.#end = (rendered.ends[place] as number) - quoteBytes;
    const isWhole = bytes[this.#end - 1] === 0x30 && bytes[this.#end - 2] === 0x2e;
    if (dropsFraction && isWhole) this.#end -= 2;
    return true;
  }
}
