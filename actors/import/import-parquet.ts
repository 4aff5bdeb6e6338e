import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import { columnKeyBytesMax } from '../columns/chunk-builder.ts';
import { type ChosenFields, chooseFields } from './chosen-fields.ts';
import type { ImportedRows, ImportRequest } from './import-csv.ts';
import { quoted, tooMuch, wrongFile, wrongParameter, wrongRow, wrongValue } from './import-error.ts';
import { escapedBytesMax } from './json-bytes.ts';
import { ParquetColumn, UnpackedBytes } from './parquet/column.ts';
import {
  type FileMetaData,
  footerBytes,
  footerTailBytes,
  readFooter,
  type SchemaElement,
} from './parquet/metadata.ts';
import { ParquetError, unreadable } from './parquet/parquet-error.ts';
import { noUtf8, parquetValue, type ValueKind } from './parquet/value.ts';
import { DictionaryRoom, nullBytes, ParquetWindow, windowRows } from './parquet/window.ts';
import { renderedKinds } from './rendered-values.ts';
import { RowVectors } from './row-vectors.ts';
import { type RowSink, RowWriter } from './row-writer.ts';

/**
 * A Parquet file → rows. Flat columns alone. Row group by row group, and in it as many rows at a time as all columns have in the
 * pages that they have at hand.
 */
export async function importParquet(request: ImportRequest, sink: RowSink): Promise<ImportedRows> {
  try {
    return await importRows(request, sink);
  } catch (error) {
    if (error instanceof ParquetError) throw wrongFile(error.message);
    // What a file says may be of any type, and where it points may be nothing.
    if (error instanceof RangeError || error instanceof TypeError) throw wrongFile(unreadable);
    throw error;
  }
}

interface Field {
  readonly name: string;
  /** Its place among the columns of a row group. */
  readonly column: number;
  readonly element: SchemaElement;
}

async function importRows(request: ImportRequest, sink: RowSink): Promise<ImportedRows> {
  const { file, size } = request;
  const metadata = await footerOf(file, size);
  const all = fieldsOf(metadata);
  checkRows(metadata, all);
  const chosen = chooseFields(
    all.map(({ name }) => name),
    request,
  );
  const used = usedFields(chosen);
  const fields = used.map((field) => all[field] as Field);
  const kept = chosen.meta.map((field) => all[field] as Field);
  const keptKinds = kept.map(({ element }) => parquetValue(element).kind);
  const writer = new RowWriter(
    kept.map(({ name }) => name),
    sink,
    { textFields: chosen.metaText },
  );
  const vectors = chosen.vector === null ? null : new RowVectors(request.vector ?? '', request.dims);
  const rowsMax = windowRows(fields.length);
  const room = new DictionaryRoom();
  const windows = fields.map(({ name, element }) => {
    return new ParquetWindow(name, parquetValue(element), rowsMax, room);
  });
  const windowOf = (field: number) => windows[used.indexOf(field)] as ParquetWindow;
  const rows = new WindowRows(writer, {
    windows,
    meta: chosen.meta.map(windowOf),
    id: chosen.id === null ? null : windowOf(chosen.id),
    text: chosen.text.map(windowOf),
    vector: chosen.vector === null ? null : windowOf(chosen.vector),
    vectors,
  });
  const unpacked = new UnpackedBytes();
  for (const group of metadata.row_groups) {
    const rowCount = Number(group.num_rows);
    const columns = fields.map(({ element, column }) => {
      const chunk = group.columns[column]?.meta_data;
      if (chunk === undefined) throw new ParquetError('a row group lacks a column');
      return new ParquetColumn({ file, size, unpacked }, chunk, { element, rowCount });
    });
    for (let row = 0; row < rowCount; ) {
      let atHand = Math.min(rowsMax, rowCount - row);
      for (const column of columns) {
        if (column.rowsAtHand === 0) await column.load();
        atHand = Math.min(atHand, column.rowsAtHand);
      }
      rows.open(columns, atHand);
      for (let at = 0; at < atHand; at++) {
        const bytes = rows.bytesOf(at);
        if (writer.needsRoom(bytes)) await writer.handOver(bytes);
        rows.write(at);
      }
      row += atHand;
    }
    for (const column of columns) column.release();
    for (const window of windows) window.release();
  }
  await writer.end();
  if (writer.rowCount === 0) throw wrongFile('it has no rows');
  const keysOf = (...kinds: readonly ValueKind[]) =>
    kept.filter((_, at) => kinds.includes(keptKinds[at] as ValueKind)).map(({ name }) => name);
  return {
    rowCount: writer.rowCount,
    temporalKeys: keysOf('date', 'time'),
    textKeys: keysOf('text'),
    textOnly: writer.textOnly,
    dims: vectors?.dims ?? 0,
  };
}

/** The columns that are read, each once. */
function usedFields({ id, text, vector, meta }: ChosenFields): readonly number[] {
  const used = new Set([...meta, ...text]);
  if (id !== null) used.add(id);
  if (vector !== null) used.add(vector);
  return [...used].toSorted((a, b) => a - b);
}

async function footerOf(file: FileHandle, size: number): Promise<FileMetaData> {
  const tail = Buffer.alloc(Math.min(footerTailBytes, size));
  await file.read(tail, 0, tail.length, size - tail.length);
  const footer = Buffer.alloc(footerBytes(tail, size));
  await file.read(footer, 0, footer.length, size - footer.length);
  return readFooter(footer);
}

function fieldsOf({ schema }: FileMetaData): Field[] {
  const [root, ...elements] = schema;
  if (root === undefined || elements.length === 0) throw new ParquetError('it has no columns');
  if (elements.length > limits.importColumnsMax)
    throw new ParquetError(`it has more than ${limits.importColumnsMax} columns`);
  const seen = new Set<string>();
  return elements.map((element, column) => {
    // Whatever the library's types say: a footer may lack it.
    const name: string | undefined = element.name;
    if (name === undefined) throw new ParquetError('it has a column without a name');
    if (element.num_children || element.type === undefined || element.repetition_type === 'REPEATED')
      throw new ParquetError(
        `the column ${quoted(name)} is nested, and only flat columns are imported: flatten it, or leave it out`,
      );
    if (name === '' || Buffer.byteLength(name) > columnKeyBytesMax || !name.isWellFormed())
      throw new ParquetError(`a column's name has 1 to ${columnKeyBytesMax} bytes`);
    if (seen.has(name)) throw new ParquetError(`it has the column ${quoted(name)} twice`);
    seen.add(name);
    return { name, column, element };
  });
}

function checkRows({ num_rows, row_groups }: FileMetaData, fields: readonly Field[]): void {
  let rows = 0;
  for (const group of row_groups) {
    const count = Number(group.num_rows);
    if (!Number.isSafeInteger(count) || count < 0) throw new ParquetError('a row group has no count of rows');
    if (group.columns.length !== fields.length)
      throw new ParquetError('a row group has other columns than the file');
    rows += count;
  }
  if (rows !== Number(num_rows)) throw new ParquetError('its row groups have other rows than it says');
  if (rows > limits.importRowsMax)
    throw tooMuch(`the file has ${rows} rows, and an import has at most ${limits.importRowsMax}`);
}

/** Where rows are so short at most, what each of them takes is not looked at. */
const shortRowBytes = 16 * 1024;

/** What the windows of a file's columns are for. */
interface WindowUses {
  readonly windows: readonly ParquetWindow[];
  /** In the order of the writer's columns. */
  readonly meta: readonly ParquetWindow[];
  readonly id: ParquetWindow | null;
  readonly text: readonly ParquetWindow[];
  readonly vector: ParquetWindow | null;
  readonly vectors: RowVectors | null;
}

/** Windows of all fields over the same rows, which are written one after the other. */
class WindowRows {
  readonly #writer: RowWriter;
  readonly #uses: WindowUses;
  /** What a row takes at most. */
  #longest = 0;
  /** The value that was shown last, in bytes of a source. */
  #source: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  constructor(writer: RowWriter, uses: WindowUses) {
    this.#writer = writer;
    this.#uses = uses;
  }

  /** The next `count` rows, which all columns have at hand. */
  open(columns: readonly ParquetColumn[], count: number): void {
    this.#longest = 0;
    for (let field = 0; field < columns.length; field++) {
      const window = this.#uses.windows[field] as ParquetWindow;
      window.open(columns[field] as ParquetColumn, count);
      this.#longest += window.longest + nullBytes;
    }
  }

  /** What the values of a row take, at most, before anything is escaped. */
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

  #readVector(window: ParquetWindow, row: number): void {
    const { vectors } = this.#uses;
    if (vectors === null) return;
    if (window.value.kind !== 'text') {
      throw wrongParameter('vector', `the column ${quoted(window.name)} holds no vectors`);
    }
    if (this.#show(window, row)) {
      vectors.bytes(this.#writer.row, this.#source.subarray(this.#start, this.#end));
    } else vectors.none();
    this.#writer.vector(vectors.vector);
  }

  /** `field`: of the writer. */
  #writeValue(field: number, row: number): void {
    const writer = this.#writer;
    const { places, rendered, texts, name } = this.#uses.meta[field] as ParquetWindow;
    const place = places[row] as number;
    if (place < 0) writer.null(field);
    else if (rendered !== null) writer.rendered(field, rendered, place);
    else if (texts !== null) {
      const [start, end] = [texts.starts[place] as number, texts.ends[place] as number];
      if (!writer.text(field, texts.viewed, start, end) && !isUtf8(texts.source.subarray(start, end)))
        throw wrongValue(writer.row, name, noUtf8);
    }
  }

  /** What a row's values take as JSON, at most. */
  #jsonBytes(row: number): number {
    let bytes = 0;
    for (const window of this.#uses.meta)
      bytes += window.bytesOf(row) * (window.texts === null ? 1 : escapedBytesMax) + 2;
    return bytes;
  }

  #leftOut(row: number): ReadonlySet<number> | null {
    const rawBytes = (field: number) => (this.#uses.meta[field] as ParquetWindow).bytesOf(row);
    return this.#writer.leaveOut(rawBytes, (field) => this.#writeValue(field, row));
  }

  /** As an id or a text has it: without quotes and escapes. False for null. */
  #show({ places, rendered, texts, value, name }: ParquetWindow, row: number): boolean {
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
    this.#start = (rendered.starts[place] as number) + value.quoteBytes;
    this.#end = (rendered.ends[place] as number) - value.quoteBytes;
    const isWhole = bytes[this.#end - 1] === 0x30 && bytes[this.#end - 2] === 0x2e;
    if (value.dropsFraction && isWhole) this.#end -= 2;
    return true;
  }
}
