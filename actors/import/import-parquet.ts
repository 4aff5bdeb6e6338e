import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import { columnKeyBytesMax } from '../columns/chunk-builder.ts';
import { type ChosenFields, chooseFields } from './chosen-fields.ts';
import { FileRanges, type RangeEnd } from './file-ranges.ts';
import { OfAnotherKind, tooMuch, wrongFile } from './import-error.ts';
import type { ImportRequest, ReadRows } from './import-rows.ts';
import { areTexts, NotText } from './parquet/bytes-value.ts';
import { FlatField } from './parquet/flat-field.ts';
import { type FileMetaData, footerBytes, footerTailBytes, readFooter } from './parquet/metadata.ts';
import { NestedField } from './parquet/nested-field.ts';
import {
  ColumnPages,
  heldBytesAtMost,
  heldBytesMax,
  type ParquetSource,
  UnpackedBytes,
} from './parquet/pages.ts';
import { ParquetError, unreadable } from './parquet/parquet-error.ts';
import type { ValueKind } from './parquet/parquet-value.ts';
import { type LeafNode, type SchemaNode, schemaOf } from './parquet/schema.ts';
import { isUnnamedBytes, parquetValue, RawValue } from './parquet/value.ts';
import { VectorLists } from './parquet/vector-lists.ts';
import { DictionaryRoom, type FieldWindow, windowRows } from './parquet/window.ts';
import type { RowSink } from './row-sink.ts';
import { RowVectors } from './row-vectors.ts';
import { RowWriter } from './row-writer.ts';
import { type RowVectorSource, WindowRows } from './window-rows.ts';

/**
 * A Parquet file → the rows of those of its row groups that this thread takes, and in a group as many at a time as all columns have in the pages
 * that they have at hand.
 *
 * Columns of bytes of which the file does not say that they are text are texts first. Where a value is none, the reading ends with `OfAnotherKind`; the
 * next one has `looksAtAll`, and looks at all values before: a column is text or bytes in all of its rows.
 */
export async function importParquet(request: ImportRequest, sink: RowSink): Promise<ReadRows> {
  try {
    const file = await openParquet(request);
    // Help that takes no range leaves the whole file to the first reader.
    if (request.helps && !isLight(file)) return noRows;
    return await importRows(request, file, sink, request.looksAtAll ? await findBinary(file) : new Set());
  } catch (error) {
    if (error instanceof NotText) throw new OfAnotherKind();
    if (error instanceof ParquetError) throw wrongFile(error.message);
    // What a file says may be of any type, and where it points may be nothing.
    if (error instanceof RangeError || error instanceof TypeError) throw wrongFile(unreadable);
    throw error;
  }
}

interface ParquetFile {
  readonly source: ParquetSource;
  readonly metadata: FileMetaData;
  readonly columns: readonly SchemaNode[];
  readonly chosen: ChosenFields;
  /** The columns that are read, each once. */
  readonly used: readonly number[];
}

/** Bytes of pages that a helping thread holds at once, on top of what the first one does. */
const heldByHelpMax = heldBytesMax / 4;

const noRows: ReadRows = { rowCount: 0, temporalKeys: [], textKeys: [], textOnly: 0, dims: 0, unseen: [] };

/** Whether a thread that helps holds no more than it may, as far as the file says it. */
function isLight({ metadata }: ParquetFile): boolean {
  return metadata.row_groups.every(({ columns }) => {
    const told = columns.flatMap(({ meta_data }) => meta_data ?? []);
    return heldBytesAtMost(told) <= heldByHelpMax;
  });
}

/** A column, as it is read. */
type Field = FlatField | NestedField | VectorLists;

async function openParquet(request: ImportRequest): Promise<ParquetFile> {
  const { file, size } = request;
  const metadata = await footerOf(file, size);
  const columns = schemaOf(metadata);
  checkNames(columns);
  checkRows(metadata, columns);
  const chosen = chooseFields(
    columns.map(({ name }) => name),
    request,
  );
  const heldMax = request.helps ? heldByHelpMax : heldBytesMax;
  const source = { file, size, unpacked: new UnpackedBytes(request.ranges, heldMax) };
  return { source, metadata, columns, chosen, used: usedFields(chosen) };
}

async function importRows(
  request: ImportRequest,
  file: ParquetFile,
  sink: RowSink,
  binary: ReadonlySet<LeafNode>,
): Promise<ReadRows> {
  const { metadata, columns, chosen, used } = file;
  const { source } = file;
  const rowsMax = windowRows(used.length);
  const room = new DictionaryRoom();
  const fields = new Map(
    used.map((column) => {
      const node = columns[column] as SchemaNode;
      const isVector = column === chosen.vector;
      return [column, fieldOf(node, { isVector, binary, rowsMax, room })];
    }),
  );
  const kept = chosen.meta.map((column) => columns[column] as SchemaNode);
  const writer = new RowWriter(
    kept.map(({ name }) => name),
    sink,
    { textFields: chosen.metaText, ranges: request.ranges },
  );
  const vectors = chosen.vector === null ? null : new RowVectors(request.vector ?? '', request.dims);
  const windowAt = (column: number) => windowOf(fields.get(column) as Field) as FieldWindow;
  const rows = new WindowRows(writer, {
    windows: [...fields.values()].map(windowOf).filter((window) => window !== null),
    meta: chosen.meta.map(windowAt),
    id: chosen.id === null ? null : windowAt(chosen.id),
    text: chosen.text.map(windowAt),
    vector: vectors === null ? null : vectorSource(fields.get(chosen.vector as number) as Field, vectors),
  });
  for (;;) {
    const range = request.ranges.take(0, ({ start }) => groupsFrom(metadata, start, writer.rowsMax));
    if (range === null) break;
    await writer.begin(range);
    for (const group of metadata.row_groups.slice(range.start, range.end))
      await importGroup(source, group, { fields: [...fields.values()], rows, rowsMax, writer });
    await writer.end();
  }
  const kinds = kept.map((node) => kindOf(node, binary));
  const keysOf = (...wanted: readonly ValueKind[]) =>
    kept.filter((_, at) => wanted.some((kind) => kind === kinds[at])).map(({ name }) => name);
  return {
    rowCount: writer.rowCount,
    temporalKeys: keysOf('date', 'time'),
    textKeys: keysOf('text'),
    textOnly: writer.textOnly,
    dims: vectors?.dims ?? 0,
    unseen: [],
  };
}

type RowGroup = FileMetaData['row_groups'][number];

/** A range is as many row groups as have the rows of a chunk. */
function groupsFrom({ row_groups }: FileMetaData, start: number, rowsMax: number): RangeEnd | null {
  if (start >= row_groups.length) return null;
  let [end, rowCount] = [start, 0];
  for (; end < row_groups.length && rowCount < rowsMax; end++) rowCount += Number(row_groups[end]?.num_rows);
  return { end, rowCount };
}

async function importGroup(
  source: ParquetSource,
  group: RowGroup,
  {
    fields,
    rows,
    rowsMax,
    writer,
  }: {
    readonly fields: readonly Field[];
    readonly rows: WindowRows;
    readonly rowsMax: number;
    readonly writer: RowWriter;
  },
): Promise<void> {
  const rowCount = Number(group.num_rows);
  if (rowCount === 0) return;
  for (const field of fields) field.begin(source, group);
  for (let row = 0; row < rowCount; ) {
    let atHand = Math.min(rowsMax, rowCount - row);
    for (const field of fields) {
      if (field.rowsAtHand === 0) await field.load();
      atHand = Math.min(atHand, field.rowsAtHand);
    }
    for (const field of fields) field.open(atHand);
    rows.open();
    for (let at = 0; at < atHand; at++) {
      const bytes = rows.bytesOf(at);
      if (writer.needsRoom(bytes)) await writer.handOver(bytes);
      rows.write(at);
    }
    row += atHand;
  }
  for (const field of fields) field.release();
}

function fieldOf(
  node: SchemaNode,
  {
    isVector,
    binary,
    rowsMax,
    room,
  }: {
    readonly isVector: boolean;
    readonly binary: ReadonlySet<LeafNode>;
    readonly rowsMax: number;
    readonly room: DictionaryRoom;
  },
): Field {
  const valueOfLeaf = (leaf: LeafNode) => parquetValue(leaf.element, binary.has(leaf));
  if (isVector && !isBytes(node)) return new VectorLists(node);
  if (node.kind !== 'leaf') return new NestedField(node, rowsMax, valueOfLeaf);
  return new FlatField(node, isVector ? new RawValue() : valueOfLeaf(node), rowsMax, room);
}

function isBytes(node: SchemaNode): boolean {
  return (
    node.kind === 'leaf' &&
    (node.element.type === 'BYTE_ARRAY' || node.element.type === 'FIXED_LEN_BYTE_ARRAY')
  );
}

function windowOf(field: Field): FieldWindow | null {
  if (field instanceof FlatField) return field.window;
  return field instanceof NestedField ? field : null;
}

function vectorSource(field: Field, vectors: RowVectors): RowVectorSource {
  if (field instanceof VectorLists) return { kind: 'lists', field, vectors };
  return { kind: 'window', window: windowOf(field) as FieldWindow, vectors };
}

function kindOf(node: SchemaNode, binary: ReadonlySet<LeafNode>): ValueKind | null {
  return node.kind === 'leaf' ? parquetValue(node.element, binary.has(node)).kind : null;
}

/** Finds those of a file's columns of unnamed bytes that are not text in all of their rows. */
async function findBinary({
  metadata,
  columns,
  used,
  chosen,
  source: { file, size },
}: ParquetFile): Promise<Set<LeafNode>> {
  // What is unpacked only to look at values is not counted with what the rows unpack to.
  const source = { file, size, unpacked: new UnpackedBytes(new FileRanges()) };
  const binary = new Set<LeafNode>();
  const read = used.filter((column) => column !== chosen.vector);
  for (const leaf of read.flatMap((column) => (columns[column] as SchemaNode).leaves))
    if (isUnnamedBytes(leaf.element) && !(await isTextColumn(leaf, metadata, source))) binary.add(leaf);
  return binary;
}

async function isTextColumn(leaf: LeafNode, metadata: FileMetaData, source: ParquetSource): Promise<boolean> {
  for (const { columns, num_rows } of metadata.row_groups) {
    const chunk = columns[leaf.column]?.meta_data;
    if (chunk === undefined) throw new ParquetError('a row group lacks a column');
    const pages = new ColumnPages(source, chunk, {
      ...leaf,
      hasLevels: true,
      rowCount: Number(num_rows),
    });
    for (let held = await pages.next(); held !== null; held = await pages.next()) {
      const { values } = held.page;
      if (values.kind === 'bytes' && !areTexts(values)) {
        pages.release();
        return false;
      }
      pages.giveBack(held);
    }
    pages.release();
  }
  return true;
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

function checkNames(columns: readonly SchemaNode[]): void {
  const seen = new Set<string>();
  if (columns.length > limits.importColumnsMax)
    throw new ParquetError(`the file has more than ${limits.importColumnsMax} columns`);
  for (const { name } of columns) {
    if (name === '' || Buffer.byteLength(name) > columnKeyBytesMax)
      throw new ParquetError(`a column's name has 1 to ${columnKeyBytesMax} bytes`);
    if (seen.has(name)) throw new ParquetError(`the file has the column ${JSON.stringify(name)} twice`);
    seen.add(name);
  }
}

function checkRows({ num_rows, row_groups }: FileMetaData, nodes: readonly SchemaNode[]): void {
  const leaves = nodes.reduce((sum, node) => sum + node.leaves.length, 0);
  let rows = 0;
  for (const group of row_groups) {
    const count = Number(group.num_rows);
    if (!Number.isSafeInteger(count) || count < 0) throw new ParquetError('a row group has no count of rows');
    if (group.columns.length !== leaves)
      throw new ParquetError('a row group has other columns than the file');
    rows += count;
  }
  // A writer of old said none of the file, whatever its row groups had.
  if (rows !== Number(num_rows) && Number(num_rows) !== 0)
    throw new ParquetError("the file's row groups have other rows than it says");
  if (rows > limits.importRowsMax)
    throw tooMuch(`the file has ${rows} rows, and an import has at most ${limits.importRowsMax}`);
}
