import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import { keyBytesMax } from '../columns/chunk-builder.ts';
import { fieldOf, type ImportedRows, type ImportRequest } from './import-csv.ts';
import { quoted, tooMuch, wrongFile, wrongValue } from './import-error.ts';
import { ParquetColumn, UnpackedBytes } from './parquet-column.ts';
import {
  type FileMetaData,
  footerBytes,
  ParquetError,
  readFooter,
  type SchemaElement,
} from './parquet-page.ts';
import { type ParquetValue, parquetValue, type ValueKind } from './parquet-value.ts';
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
    if (error instanceof RangeError || error instanceof TypeError)
      throw wrongFile(`it can't be read: ${error.message}`);
    throw error;
  }
}

interface Field {
  readonly name: string;
  readonly element: SchemaElement;
  readonly kind: ValueKind;
}

async function importRows(request: ImportRequest, sink: RowSink): Promise<ImportedRows> {
  const { file, size } = request;
  const metadata = await footerOf(file, size);
  const fields = fieldsOf(metadata);
  checkRows(metadata, fields);
  const names = fields.map(({ name }) => name);
  const idField = fieldOf(names, request.id, 'id');
  const textFields = request.text.map((name) => fieldOf(names, name, 'text') as number);
  const writer = new RowWriter(names, sink);
  const rows = new FieldRows(writer, { fields, idField, textFields });
  const unpacked = new UnpackedBytes();
  for (const group of metadata.row_groups) {
    const rowCount = Number(group.num_rows);
    const columns = fields.map(({ element }, at) => {
      const chunk = group.columns[at]?.meta_data;
      if (chunk === undefined) throw new ParquetError('a row group lacks a column');
      return new ParquetColumn({ file, size, unpacked }, chunk, { element, rowCount });
    });
    for (let row = 0; row < rowCount; ) {
      let atHand = rowCount - row;
      for (const column of columns) {
        if (column.rowsAtHand === 0) await column.load();
        atHand = Math.min(atHand, column.rowsAtHand);
      }
      for (let end = row + atHand; row < end; row++) {
        rows.read(columns);
        if (writer.needsRoom(rows.bytes)) await writer.handOver(rows.bytes);
        rows.write();
      }
    }
    for (const column of columns) column.release();
  }
  await writer.end();
  if (writer.rowCount === 0) throw wrongFile('it has no rows');
  const isTemporal = ({ kind }: Field) => kind === 'date' || kind === 'time';
  return {
    rowCount: writer.rowCount,
    temporalKeys: fields.filter(isTemporal).map(({ name }) => name),
    textKeys: fields.filter(({ kind }) => kind === 'text').map(({ name }) => name),
  };
}

async function footerOf(file: FileHandle, size: number): Promise<FileMetaData> {
  const tail = Buffer.alloc(Math.min(8, size));
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
  return elements.map((element) => {
    // Whatever the library's types say: a footer may lack it.
    const name: string | undefined = element.name;
    if (name === undefined) throw new ParquetError('it has a column without a name');
    if (element.num_children || element.type === undefined || element.repetition_type === 'REPEATED')
      throw new ParquetError(`the column ${quoted(name)} is nested: flat columns are imported alone`);
    if (name === '' || Buffer.byteLength(name) > keyBytesMax || !name.isWellFormed())
      throw new ParquetError(`a column's name has 1 to ${keyBytesMax} bytes`);
    if (seen.has(name)) throw new ParquetError(`it has the column ${quoted(name)} twice`);
    seen.add(name);
    return { name, element, kind: parquetValue(element).kind };
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

/** One row after the other: its values are read, so that their bytes are known, and then written. */
class FieldRows {
  /** What the row's values take, as text. */
  bytes = 0;
  readonly #writer: RowWriter;
  readonly #values: readonly ParquetValue[];
  readonly #names: readonly string[];
  readonly #idField: number | null;
  readonly #textFields: readonly number[];

  constructor(
    writer: RowWriter,
    {
      fields,
      idField,
      textFields,
    }: {
      readonly fields: readonly Field[];
      readonly idField: number | null;
      readonly textFields: readonly number[];
    },
  ) {
    this.#writer = writer;
    this.#values = fields.map(({ element }) => parquetValue(element));
    this.#names = fields.map(({ name }) => name);
    this.#idField = idField;
    this.#textFields = textFields;
  }

  read(columns: readonly ParquetColumn[]): void {
    let bytes = 0;
    for (let field = 0; field < columns.length; field++) {
      const column = columns[field] as ParquetColumn;
      const value = this.#values[field] as ParquetValue;
      const problem = value.read(column.values, column.next());
      if (problem !== null) throw wrongValue(this.#writer.row, this.#names[field] as string, problem);
      bytes += value.bytes;
    }
    if (bytes > limits.importRowBytesMax)
      throw wrongFile(`row ${this.#writer.row}: its values take more than ${limits.importRowBytesMax} bytes`);
    this.bytes = bytes;
  }

  write(): void {
    const writer = this.#writer;
    writer.beginRow();
    if (this.#idField === null) writer.idByNumber();
    else {
      const text = (this.#values[this.#idField] as ParquetValue).text() ?? Buffer.alloc(0);
      writer.id(text, 0, text.length, this.#names[this.#idField] as string);
    }
    for (const field of this.#textFields) {
      const text = (this.#values[field] as ParquetValue).text();
      if (text !== null) writer.addText(text, 0, text.length);
    }
    writer.beginMeta();
    for (let field = 0; field < this.#values.length; field++)
      (this.#values[field] as ParquetValue).write(writer, field);
    writer.endRow();
  }
}
