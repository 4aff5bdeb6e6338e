import { limits } from '../../protocol/limits.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import { columnKeyBytesMax } from '../columns/chunk-builder.ts';
import { dateOf, noTemporal, timeOf } from '../columns/temporal.ts';
import { type ChosenFields, chooseFields } from './chosen-fields.ts';
import { CsvRow, CsvSyntaxError, fieldForms } from './csv-rows.ts';
import { FileWindow, textStartOf } from './file-window.ts';
import { OfAnotherKind, quoted, wrongFile, wrongRow, wrongValue } from './import-error.ts';
import type { ImportRequest, ReadRows } from './import-rows.ts';
import { escapedBytesMax } from './json-bytes.ts';
import { PlainCsv, plainRowBytesMax, type RowsAtHand } from './plain-csv.ts';
import { RangeEnds } from './range-ends.ts';
import type { RowSink } from './row-sink.ts';
import { RowVectors } from './row-vectors.ts';
import { RowWriter } from './row-writer.ts';
import { type DefinedColumn, parseTableDefinition } from './table-definition.ts';
import { boolOf, type ColumnKind, isFloat, kindOf, widerKind } from './value-kind.ts';

/**
 * A CSV file → the rows of those of its ranges that this thread takes.
 *
 * 1. The columns: of the table definition, or of the header. Kinds that nobody defined are inferred from the first rows; where a value is not of
 *    its column's kind, the reading ends with `OfAnotherKind`. The next one has `looksAtAll`, and infers them from all rows. So a
 *    column's kind is always that of all of its values.
 * 2. The rows.
 */
export async function importCsv(request: ImportRequest, sink: RowSink): Promise<ReadRows> {
  const reading = await openCsv(request);
  const columns = request.looksAtAll ? await inferAll(request, reading) : reading.columns;
  return importRows(request, { ...reading, columns }, sink);
}

interface Reading {
  readonly columns: readonly DefinedColumn[];
  readonly fields: ChosenFields;
  readonly isDefined: boolean;
  readonly hasHeader: boolean;
  /** Where in the file the first row begins that is no header. */
  readonly start: number;
}

async function openCsv(request: ImportRequest): Promise<Reading> {
  const defined = request.schema === null ? null : parseTableDefinition(request.schema);
  const rows = new CsvReader(request);
  const textStart = await textStartOf(request.file);
  rows.begin({ start: textStart, end: request.size }, 0);
  if (!(await rows.next())) throw wrongFile('it is empty');
  const start = rows.filePosition;
  const header = rows.strings();
  if (defined !== null) {
    const isHeader = header.length === defined.length && defined.every(({ name }, at) => name === header[at]);
    const fields = chooseFields(
      defined.map(({ name }) => name),
      request,
    );
    return {
      columns: defined,
      fields,
      isDefined: true,
      hasHeader: isHeader,
      start: isHeader ? start : textStart,
    };
  }
  const names = columnNames(header);
  const fields = chooseFields(names, request);
  const columns = await inferred(rows, { names, fields }, sampleRows);
  return { columns, fields, isDefined: false, hasHeader: true, start };
}

/** Kinds are inferred from so many rows first. */
const sampleRows = 10_000;

function columnNames(header: readonly string[]): string[] {
  const seen = new Set<string>();
  if (header.length > limits.importColumnsMax)
    throw wrongFile(`it has more than ${limits.importColumnsMax} columns`);
  return header.map((name, at) => {
    if (Buffer.byteLength(name) > columnKeyBytesMax)
      throw wrongFile(`the header's name ${at + 1} is longer than ${columnKeyBytesMax} bytes`);
    const given = name === '' ? `column${at + 1}` : name;
    if (seen.has(given)) throw wrongFile(`the header has the column ${quoted(given)} twice`);
    seen.add(given);
    return given;
  });
}

async function inferAll(
  request: ImportRequest,
  { columns, fields, hasHeader, start }: Reading,
): Promise<DefinedColumn[]> {
  const rows = new CsvReader(request);
  rows.begin({ start, end: request.size }, hasHeader ? 1 : 0);
  const names = columns.map(({ name }) => name);
  return inferred(rows, { names, fields }, Number.POSITIVE_INFINITY);
}

/** Infers the kinds of the columns that metas will have; others are texts. */
async function inferred(
  rows: CsvReader,
  { names, fields }: { readonly names: readonly string[]; readonly fields: ChosenFields },
  rowsMax: number,
): Promise<DefinedColumn[]> {
  const kinds: (ColumnKind | null)[] = names.map(() => null);
  for (let row = 0; row < rowsMax && (await rows.next()); row++) {
    for (const field of fields.meta) {
      const known = kinds[field] as ColumnKind | null;
      if (field >= rows.row.count || known === 'text' || !rows.open(field)) continue;
      const kind = kindOf(rows.source, rows.start, rows.end);
      kinds[field] = known === null ? kind : widerKind(known, kind);
    }
  }
  return names.map((name, at) => ({ name, kind: kinds[at] ?? 'text' }));
}

/** Shorter files are read before the memory of a kernel is made. */
const kernelBytesMin = 256 * 1024;

async function importRows(request: ImportRequest, reading: Reading, sink: RowSink): Promise<ReadRows> {
  const { columns, fields, isDefined, hasHeader, start } = reading;
  const { id: idField, meta } = fields;
  const { ranges } = request;
  const kept = meta.map((field) => columns[field] as DefinedColumn);
  const vectors = fields.vector === null ? null : new RowVectors(request.vector ?? '', request.dims);
  const isPlain = vectors === null && !(request.rowByRow ?? request.size < kernelBytesMin);
  const plain = isPlain ? PlainCsv.for(kept, fields, columns.length) : null;
  const rows = new CsvReader(request, plain?.source);
  const writer = new RowWriter(
    kept.map(({ name }) => name),
    sink,
    { textFields: fields.metaText, ranges },
  );
  const values = kept.map(({ kind }) => valueWriters[kind]);
  const openKept = (column: number) => rows.open(meta[column] as number);
  const writeValue = (column: number) => {
    if (!openKept(column) || (values[column] as ValueWriter)(writer, column, rows)) return;
    writeOtherwise(writer, column, rows, { isDefined, column: kept[column] as DefinedColumn });
  };
  const rawBytes = (column: number) => (openKept(column) ? rows.end - rows.start : 0);
  const ends = new RangeEnds(request, { form: 'csv', rowsMax: request.rangeRows ?? writer.rowsMax });
  for (;;) {
    if (plain !== null) {
      if (writer.needsRoom(plainRowBytesMax)) await writer.handOver(plainRowBytesMax);
      if (plain.write(rows, writer) > 0) continue;
    }
    const isRow = rows.nextHere() ?? (await rows.next());
    if (!isRow) {
      await writer.end();
      const range = ranges.take(start, (from) => ends.find(from.start));
      if (range === null) break;
      await writer.begin(range);
      rows.begin(range, range.firstRow + (hasHeader ? 1 : 0));
      continue;
    }
    if (rows.row.count !== columns.length)
      throw wrongRow(writer.row, countsDiffer(rows.row.count, columns.length));
    if (writer.needsRoom(rows.bytes)) await writer.handOver(rows.bytes);
    writer.beginRow();
    if (idField === null) writer.idByNumber();
    else {
      rows.open(idField);
      writer.id(rows.source, rows.start, rows.end, (columns[idField] as DefinedColumn).name);
    }
    for (const field of fields.text) if (rows.open(field)) writer.addText(rows.source, rows.start, rows.end);
    if (vectors !== null) readVector(vectors, fields.vector as number, rows, writer);
    const isLong = writer.mayBeLong(rows.bytes * escapedBytesMax);
    const leftOut = isLong ? writer.leaveOut(rawBytes, writeValue) : null;
    writer.beginMeta();
    for (let column = 0; column < values.length; column++) {
      if (leftOut?.has(column) || !rows.open(meta[column] as number)) continue;
      const write = values[column] as ValueWriter;
      if (!write(writer, column, rows))
        writeOtherwise(writer, column, rows, { isDefined, column: kept[column] as DefinedColumn });
    }
    writer.endRow();
  }
  const isTemporal = ({ kind }: DefinedColumn) => kind === 'date' || kind === 'time';
  return {
    rowCount: writer.rowCount,
    temporalKeys: kept.filter(isTemporal).map(({ name }) => name),
    textKeys: kept.filter(({ kind }) => kind === 'text').map(({ name }) => name),
    textOnly: writer.textOnly,
    dims: vectors?.dims ?? 0,
    unseen: [],
  };
}

function readVector(vectors: RowVectors, field: number, rows: CsvReader, writer: RowWriter): void {
  if (rows.open(field)) vectors.text(writer.row, rows.source.subarray(rows.start, rows.end));
  else vectors.none();
  writer.vector(vectors.vector);
}

/** The open value, which is not written as its column's kind is. */
function writeOtherwise(
  writer: RowWriter,
  field: number,
  rows: CsvReader,
  { isDefined, column }: { readonly isDefined: boolean; readonly column: DefinedColumn },
): void {
  if (!isDefined) throw new OfAnotherKind();
  if (!writeLoosely(writer, field, rows, column.kind))
    throw wrongValue(writer.row, column.name, notOfKind(rows, column.kind));
}

function countsDiffer(fields: number, columns: number): string {
  return `it has ${fields} ${fields === 1 ? 'field' : 'fields'} where there are ${columns} columns`;
}

type ValueWriter = (writer: RowWriter, field: number, rows: CsvReader) => boolean;

/** Write the value that is open where it is of their kind. */
const valueWriters: Readonly<Record<ColumnKind, ValueWriter>> = {
  int(writer, field, { source, start, end }) {
    return writer.int(field, source, start, end);
  },
  float(writer, field, { source, start, end }) {
    if (!isFloat(source, start, end)) return false;
    writer.float(field, source, start, end);
    return true;
  },
  bool(writer, field, { source, start, end }) {
    const value = boolOf(source, start, end);
    if (value === null) return false;
    writer.bool(field, value);
    return true;
  },
  date(writer, field, { source, start, end }) {
    const value = dateOf(source, start, end);
    if (value === noTemporal) return false;
    writer.temporal(field, 'date', value, source, start, end);
    return true;
  },
  time(writer, field, { source, start, end }) {
    const value = timeOf(source, start, end);
    if (value === noTemporal) return false;
    writer.temporal(field, 'time', value, source, start, end);
    return true;
  },
  text(writer, field, { viewed: source, start, end }) {
    writer.text(field, source, start, end);
    return true;
  },
};

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/** Where a definition says what is meant, values may be written in other ways: `007`, `+5`, `1`, `2024-01-02T03:04:05`. */
function writeLoosely(writer: RowWriter, field: number, rows: CsvReader, kind: ColumnKind): boolean {
  const text = rows.source.toString('utf8', rows.start, rows.end).trim();
  switch (kind) {
    case 'int': {
      if (!/^[+-]?\d{1,30}$/u.test(text)) return false;
      const value = BigInt(text.replace(/^\+/u, ''));
      if (value < int64Min || value > int64Max) return false;
      writer.bigInt(field, value);
      return true;
    }
    case 'float': {
      const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/u.test(text) ? Number(text) : Number.NaN;
      if (!Number.isFinite(value)) return false;
      writer.double(field, value);
      return true;
    }
    case 'bool': {
      const value = /^(1|t|true|y|yes)$/iu.test(text)
        ? true
        : /^(0|f|false|n|no)$/iu.test(text)
          ? false
          : null;
      if (value === null) return false;
      writer.bool(field, value);
      return true;
    }
    case 'time': {
      const match = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.0+)?Z?)?$/u.exec(text);
      if (match === null) return false;
      const bytes = Buffer.from(`${match[1]} ${match[2] ?? '00:00:00'}`);
      const value = timeOf(bytes, 0, bytes.length);
      if (value === noTemporal) return false;
      writer.temporal(field, 'time', value, bytes, 0, bytes.length);
      return true;
    }
    default:
      return false;
  }
}

const kindWords: Readonly<Record<ColumnKind, string>> = {
  int: 'whole number of 64 bits',
  float: 'number',
  bool: 'truth value: true or false',
  date: 'date: YYYY-MM-DD',
  time: 'time: YYYY-MM-DD HH:MM:SS',
  text: 'text',
};

function notOfKind({ source, start, end }: CsvReader, kind: ColumnKind): string {
  return `${quoted(source.toString('utf8', start, end))} is no ${kindWords[kind]}`;
}

/** Reads one row after the other, and gives one of its fields at a time as plain bytes. */
class CsvReader implements RowsAtHand {
  readonly row = new CsvRow();
  readonly #window: FileWindow;
  readonly #scratch = viewed(Buffer.alloc(limits.importRowBytesMax));
  #rowsRead = 0;
  /** What the row takes in the file. */
  bytes = 0;
  /** The open field. */
  source: Buffer = this.#scratch.bytes;
  /** The open field's bytes, with a view of them. */
  viewed: ViewedBytes = this.#scratch;
  start = 0;
  end = 0;

  /** Makes a reader whose window lies in `memory`, where that is given, and in memory of its own otherwise. */
  constructor({ file }: ImportRequest, memory?: ViewedBytes) {
    this.#window = new FileWindow(file, memory);
  }

  /** Begins with the rows that lie in the file from `start` to `end`, after so many others. Before it there are none. */
  begin(place: { readonly start: number; readonly end: number }, rowsBefore: number): void {
    this.#window.open(place);
    this.#rowsRead = rowsBefore;
  }

  get position(): number {
    return this.#window.position;
  }

  get windowEnd(): number {
    return this.#window.end;
  }

  skip(rows: number, position: number): void {
    this.#rowsRead += rows;
    this.#window.position = position;
  }

  /** Where in the file the next row begins. */
  get filePosition(): number {
    return this.#window.filePosition;
  }

  /** Whether there was a further row; null where the file must be read for it. */
  nextHere(): boolean | null {
    const window = this.#window;
    for (;;) {
      if (window.position === window.end) return window.isLast ? false : null;
      const next = this.#read(window);
      if (next < 0) {
        if (window.end - window.position > limits.importRowBytesMax) throw this.#tooLong();
        return null;
      }
      this.bytes = next - window.position;
      window.position = next;
      if (this.row.isBlank) continue;
      if (this.bytes > limits.importRowBytesMax) throw this.#tooLong();
      this.#rowsRead++;
      return true;
    }
  }

  async next(): Promise<boolean> {
    for (;;) {
      const found = this.nextHere();
      if (found !== null) return found;
      await this.#window.fill();
    }
  }

  /** Opens a field; false where it is empty. */
  open(field: number): boolean {
    const { row } = this;
    this.viewed = this.#window.viewed;
    this.source = this.viewed.bytes;
    this.start = row.starts[field] as number;
    this.end = row.ends[field] as number;
    if (row.forms[field] === fieldForms.doubled) this.#unescape();
    return this.end > this.start;
  }

  strings(): string[] {
    return Array.from({ length: this.row.count }, (_, field) => {
      this.open(field);
      return this.source.toString('utf8', this.start, this.end);
    });
  }

  #read(window: FileWindow): number {
    try {
      return this.row.read(window.bytes, window.position, window);
    } catch (error) {
      if (error instanceof CsvSyntaxError) throw wrongFile(`${this.#where()}: ${error.message}`);
      throw error;
    }
  }

  #where(): string {
    return this.#rowsRead === 0
      ? 'its first line'
      : `line ${this.#rowsRead + 1} (not counting line ends in quotes)`;
  }

  #tooLong() {
    return wrongFile(
      `${this.#where()} is longer than ${limits.importRowBytesMax} bytes: is a quote in it never closed?`,
    );
  }

  #unescape(): void {
    const { source, end } = this;
    const target = this.#scratch.bytes;
    let to = 0;
    for (let at = this.start; at < end; at++) {
      const byte = source[at] as number;
      target[to++] = byte;
      if (byte === 0x22) at++;
    }
    this.viewed = this.#scratch;
    this.source = target;
    this.start = 0;
    this.end = to;
  }
}
