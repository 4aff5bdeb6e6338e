import { documentIdProblem } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { exactDigitsMax, numberOfDigits } from '../../src/base/decimal.ts';
import type { ViewedBytes } from '../../src/base/viewed-bytes.ts';
import { type AddedRows, ChunkBuilder, rowsOfChunk } from '../columns/chunk-builder.ts';
import { isInt64 } from '../columns/int64.ts';
import type { KeyColumn } from '../columns/key-column.ts';
import { valueKinds } from '../columns/value-kinds.ts';
import type { WantedMembers } from '../columns/wanted-members.ts';
import { documentHeadBytes, noText } from '../storage/document-batch.ts';
import { addBigInt } from './add-big-int.ts';
import type { FileRange, FileRanges } from './file-ranges.ts';
import { tooMuch, wrongRow, wrongValue } from './import-error.ts';
import { escapedBytesMax, JsonBytes, WordText } from './json-bytes.ts';
import { leftOutOf, metaTooLong } from './long-row.ts';
import { type RenderedValues, renderedKinds } from './rendered-values.ts';
import { batchBytes, type RowSink } from './row-sink.ts';
import type { RowVector } from './row-vectors.ts';

const openBrace = 0x7b;
const closeBrace = 0x7d;
const minus = 0x2d;

interface Column {
  readonly name: string;
  /** `,"name":` as JSON. */
  readonly member: WordText;
  /** `"name":` as JSON, before a row's first value. */
  readonly firstMember: WordText;
  values: KeyColumn | null;
}

/**
 * Rows of typed columns → document entries, and their values in columns, without a JavaScript value of most of them. A row is
 * written front to back: `beginRow`, its id, `addText`…, `beginMeta`, its values, `endRow`.
 *
 * Hot: every value of an import passes here twice, as JSON of its document's meta and as an entry of its column.
 */
export class RowWriter {
  readonly #sink: RowSink;
  readonly #columns: readonly Column[];
  readonly #membersBytes: number;
  readonly #rowsMax: number;
  readonly #chunk = new ChunkBuilder();
  #chunkNumber = 0;
  #json: JsonBytes;
  /** Where the row under way begins. */
  #start = 0;
  #textStart = 0;
  #hasText = false;
  #metaStart = 0;
  #vector: RowVector | null = null;
  #values = 0;
  #stringBytes = 0;
  #batchRows = 0;
  readonly #ranges: FileRanges;
  readonly #bytesMax: number;
  /** Rows of the file before the one under way, and those that were written here. */
  #rowsBefore = 0;
  #rowCount = 0;

  /** Columns that a long row's meta may leave out: they are its text. */
  readonly #textFields: readonly number[];
  #textOnly = 0;

  /**
   * `ranges`: where the bytes of all documents are counted. `wanted`: of objects that are added whole. `textFields`: columns that are a row's
   * text, and not its id.
   */
  constructor(
    names: readonly string[],
    sink: RowSink,
    {
      ranges,
      wanted = null,
      textFields = [],
      bytesMax = limits.importDocumentsBytesMax,
    }: {
      readonly ranges: FileRanges;
      readonly wanted?: WantedMembers | null;
      readonly textFields?: readonly number[];
      readonly bytesMax?: number;
    },
  ) {
    this.#ranges = ranges;
    this.#bytesMax = bytesMax;
    if (wanted !== null) this.#chunk.wanted = wanted;
    this.#textFields = textFields;
    this.#sink = sink;
    this.#json = new JsonBytes(sink.batchBuffer(batchBytes));
    this.#columns = names.map((name) => ({
      name,
      member: new WordText(`,${JSON.stringify(name)}:`),
      firstMember: new WordText(`${JSON.stringify(name)}:`),
      values: null,
    }));
    this.#membersBytes = this.#columns.reduce((sum, { member }) => sum + member.length, 0);
    this.#rowsMax = rowsOfChunk(names.length);
    this.#openChunk();
  }

  /** Rows that were ended. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /** Rows whose meta leaves out some of the columns that are their text. */
  get textOnly(): number {
    return this.#textOnly;
  }

  /** The row of the file that is under way, from 1. */
  get row(): number {
    return this.#rowsBefore + 1;
  }

  /** Rows that a chunk has at most. */
  get rowsMax(): number {
    return this.#rowsMax;
  }

  /** Begins with the rows of a range; `end` comes after the last of them. */
  async begin(range: FileRange): Promise<void> {
    this.#rowsBefore = range.firstRow;
    await this.#sink.range(range);
  }

  /** Whether `hand over` must come before the next row. `sourceBytes`: what its values take in the file. */
  needsRoom(sourceBytes: number): boolean {
    return (
      this.#json.at + this.#roomFor(sourceBytes) > this.#json.bytes.length ||
      this.#chunk.isFull({ rowsMax: this.#rowsMax })
    );
  }

  /** How many rows have room before `handOver`, and how many bytes of entries. */
  get room(): { readonly rows: number; readonly bytes: number } {
    const rows = Math.min(this.#rowsMax - this.#chunk.rowCount, limits.importRowsMax - this.#rowsBefore);
    return { rows, bytes: this.#json.bytes.length - this.#json.at };
  }

  /** The number in its chunk of the next row. */
  get chunkRow(): number {
    return this.#chunk.rowCount;
  }

  /** Where the values of a column go; null where it has none. */
  valuesOf(column: number): KeyColumn | null {
    return (this.#columns[column] as Column).values;
  }

  /** Adds entries that somebody else has made, for which there is room, and whose values he has added to the columns. */
  addRows(entries: Uint8Array, added: AddedRows): void {
    const json = this.#json;
    json.bytes.set(entries, json.at);
    json.at += entries.length;
    this.#chunk.endRows(added);
    this.#endEntries(added.rows);
  }

  /** Full batches and chunks go to the sink. */
  async handOver(sourceBytes: number): Promise<void> {
    if (this.#chunk.isFull({ rowsMax: this.#rowsMax })) await this.#sendChunk();
    if (this.#json.at + this.#roomFor(sourceBytes) > this.#json.bytes.length)
      await this.#sendRows(sourceBytes);
  }

  /** All rows that were ended go to the sink. */
  async end(): Promise<void> {
    if (this.#chunk.rowCount > 0) await this.#sendChunk();
    if (this.#batchRows > 0) await this.#sendRows(0);
  }

  beginRow(): void {
    if (this.#rowsBefore === limits.importRowsMax)
      throw tooMuch(`the file has more than ${limits.importRowsMax} rows`);
    this.#start = this.#json.at;
    this.#json.at += documentHeadBytes;
    this.#hasText = false;
    this.#vector = null;
    this.#values = 0;
    this.#stringBytes = 0;
  }

  /** Default: the row's number. */
  idByNumber(): void {
    this.#json.integer(this.row);
    this.#endId();
  }

  id(source: Buffer, start: number, end: number, column: string): void {
    let isPlain = end > start && end - start <= limits.documentIdBytesMax;
    for (let at = start; at < end && isPlain; at++) {
      const byte = source[at] as number;
      isPlain = byte >= 0x20 && byte < 0x7f;
    }
    if (!isPlain) {
      const problem =
        end === start
          ? 'is missing: each row needs an id'
          : documentIdProblem(source.toString('utf8', start, end));
      if (problem !== null) throw wrongValue(this.row, column, `the id ${problem}`);
    }
    this.#json.copy(source, start, end);
    this.#endId();
  }

  /** Whether a row's meta might not fit, whose values take so many bytes as JSON at most: `leaveOut` comes before `beginMeta` then. */
  mayBeLong(jsonBytes: number): boolean {
    return jsonBytes + this.#membersBytes + 2 > limits.documentMetaBytesMax;
  }

  /**
   * Columns that the row under way leaves out of its meta; null where all fit. `rawBytes` tells what a column's value takes in the file,
   * `write` writes it: that is measured, and forgotten. Throws ApiError 422 where the other columns are too large.
   */
  leaveOut(
    rawBytes: (column: number) => number,
    write: (column: number) => void,
  ): ReadonlySet<number> | null {
    const bytes = this.#columns.map((column, at) => {
      const raw = rawBytes(at);
      if (raw <= limits.documentMetaBytesMax) return this.#measured(column, () => write(at));
      // As JSON it is no shorter.
      if (!this.#textFields.includes(at)) throw metaTooLong(this.row, raw);
      return raw + column.member.length;
    });
    const left = leftOutOf({ row: this.row, bytes, text: this.#textFields });
    if (left.length === 0) return null;
    this.#textOnly++;
    return new Set(left);
  }

  /** Counts one more row whose meta was made without some of its text. */
  countTextOnly(): void {
    this.#textOnly++;
  }

  #measured(column: Column, write: () => void): number {
    const { at } = this.#json;
    const { values } = column;
    column.values = null;
    this.#values = 1;
    write();
    const bytes = this.#json.at - at;
    this.#json.at = at;
    this.#values = 0;
    column.values = values;
    return bytes;
  }

  addText(source: Buffer, start: number, end: number): void {
    if (this.#hasText) this.#json.byte(0x0a);
    this.#hasText = true;
    this.#json.copy(source, start, end);
  }

  /** The row's vector, which stays as it is until the row is ended. */
  vector(vector: RowVector): void {
    this.#vector = vector.dims === 0 ? null : vector;
  }

  beginMeta(): void {
    this.#metaStart = this.#json.at;
    this.#json.byte(openBrace);
  }

  /** A whole number as JSON writes it, within 64 bits; false for anything else. */
  int(column: number, source: Buffer, start: number, end: number): boolean {
    const isNegative = source[start] === minus;
    const first = isNegative ? start + 1 : start;
    const digits = end - first;
    if (digits > exactDigitsMax || digits === 0 || (source[first] === 0x30 && end - start > 1))
      return this.#longInt(column, source, start, end);
    for (let at = first; at < end; at++) {
      const byte = source[at] as number;
      if (byte < 0x30 || byte > 0x39) return false;
    }
    const values = this.#member(column);
    const value = this.#json.digits(source, first, end, isNegative);
    values?.add(this.#chunk.rowCount, valueKinds.integer, isNegative ? -value : value);
    return true;
  }

  #longInt(column: number, source: Buffer, start: number, end: number): boolean {
    if (!isInt64(source, start, end)) return false;
    const values = this.#member(column);
    this.#json.copy(source, start, end);
    values?.addDigits(this.#chunk.rowCount, source, start, end);
    return true;
  }

  bigInt(column: number, value: bigint): void {
    const values = this.#member(column);
    this.#json.ascii(String(value));
    if (values !== null) addBigInt(values, this.#chunk.rowCount, value);
  }

  /** Writes a float as JSON has it; a whole one gets a fraction, so that it stays a float. */
  float(column: number, source: Buffer, start: number, end: number): void {
    const values = this.#member(column);
    const isNegative = source[start] === minus;
    let value = 0;
    let fraction = -1;
    let isShort = end - start <= exactDigitsMax;
    this.#json.copy(source, start, end);
    for (let at = start; at < end; at++) {
      const byte = source[at] as number;
      if (byte === 0x2e) fraction = 0;
      else if (byte >= 0x30 && byte <= 0x39) {
        value = value * 10 + (byte - 0x30);
        if (fraction >= 0) fraction++;
      } else if (byte !== minus) isShort = false;
      if ((byte | 0x20) === 0x65) fraction = Math.max(fraction, 0);
    }
    if (fraction < 0) {
      this.#json.ascii('.0');
      fraction = 0;
    }
    if (values === null) return;
    const quotient = isShort
      ? numberOfDigits(value, fraction)
      : Number(source.toString('latin1', start, end));
    values.add(this.#chunk.rowCount, valueKinds.float, isShort && isNegative ? -quotient : quotient);
  }

  double(column: number, value: number): void {
    const values = this.#member(column);
    this.#json.double(value);
    values?.add(this.#chunk.rowCount, valueKinds.float, value);
  }

  bool(column: number, value: boolean): void {
    const values = this.#member(column);
    this.#json.ascii(value ? 'true' : 'false');
    values?.add(this.#chunk.rowCount, value ? valueKinds.true : valueKinds.false, 0);
  }

  null(column: number): void {
    const values = this.#member(column);
    this.#json.ascii('null');
    values?.add(this.#chunk.rowCount, valueKinds.null, 0);
  }

  /** `value` is the date's days or the time's seconds, its text in the form of temporal.ts. */
  temporal(
    column: number,
    kind: 'date' | 'time',
    value: number,
    source: Buffer,
    start: number,
    end: number,
  ): void {
    const values = this.#member(column);
    this.#json.plainString(source, start, end);
    values?.add(this.#chunk.rowCount, kind === 'date' ? valueKinds.date : valueKinds.time, value);
  }

  /** False where some of it is not ASCII. */
  text(column: number, source: ViewedBytes, start: number, end: number): boolean {
    const values = this.#member(column);
    const isAscii = this.#json.string(source, start, end);
    if (values === null) return isAscii;
    const { strings } = values;
    const before = strings.bytes;
    values.addString(this.#chunk.rowCount, strings.addBytes(source, start, end));
    this.#stringBytes += strings.bytes - before;
    return isAscii;
  }

  /** Writes one of the values that were rendered before. */
  rendered(column: number, rendered: RenderedValues, at: number): void {
    const values = this.#member(column);
    const { json, starts, ends } = rendered;
    this.#json.copy(json.bytes, starts[at] as number, ends[at] as number);
    const kind = rendered.kinds[at] as number;
    if (kind === renderedKinds.broken)
      throw wrongValue(this.row, (this.#columns[column] as Column).name, rendered.problemOf(at));
    if (values === null) return;
    const row = this.#chunk.rowCount;
    if (kind === renderedKinds.string) {
      const { strings } = values;
      const before = strings.bytes;
      values.addString(row, rendered.stringIn(this.#chunkNumber, strings, at));
      this.#stringBytes += strings.bytes - before;
    } else if (kind === renderedKinds.wide)
      values.addHalves(row, rendered.halves[at * 2] as number, rendered.halves[at * 2 + 1] as number);
    else values.add(row, kind, rendered.numbers[at] as number);
  }

  /** A row's object, before its id: the values of its columns; `wanted` has its places then. Throws JsonSyntaxError. */
  addObject(source: Buffer, start: number, end: number): void {
    this.#checkMeta(end - start);
    this.#chunk.addObject(source, start, end);
  }

  /** The object as it is, instead of `beginMeta`, values and `endRow`. */
  meta(source: Buffer, start: number, end: number): void {
    this.#metaStart = this.#json.at;
    this.#json.copy(source, start, end);
    this.#writeHead();
    this.#endEntries(1);
  }

  endRow(): void {
    if (this.#values === 0) this.#json.at = this.#metaStart;
    else this.#json.byte(closeBrace);
    this.#writeHead();
    this.#chunk.endRow(this.#values, this.#stringBytes);
    this.#endEntries(1);
  }

  #roomFor(sourceBytes: number): number {
    const fixed =
      documentHeadBytes +
      limits.documentIdBytesMax +
      limits.vectorDimsMax * 4 +
      this.#membersBytes +
      64 +
      this.#columns.length * 8;
    // A row's text has all of it; of its meta, which is shorter than a value may become, what is measured comes value by value.
    const metaBytes = Math.min(sourceBytes + 16, limits.documentMetaBytesMax + 16);
    return fixed + sourceBytes + 16 + this.#columns.length + metaBytes * (escapedBytesMax + 1);
  }

  #endId(): void {
    this.#textStart = this.#json.at;
  }

  #member(column: number): KeyColumn | null {
    const { member, firstMember, values } = this.#columns[column] as Column;
    this.#json.words(this.#values++ === 0 ? firstMember : member);
    return values;
  }

  #writeHead(): void {
    const idLength = this.#textStart - this.#start - documentHeadBytes;
    const metaLength = this.#json.at - this.#metaStart;
    const dims = this.#writeVector();
    const { bytes, at } = this.#json;
    // Nothing of it may be lost behind the buffer's end.
    if (at > bytes.length) throw wrongRow(this.row, 'its values take more room than a row has');
    this.#checkMeta(metaLength);
    const textLength = this.#metaStart - this.#textStart;
    if (textLength > limits.documentTextBytesMax)
      throw wrongRow(
        this.row,
        `its text has ${textLength} bytes, and a document's text has at most ${limits.documentTextBytesMax}`,
      );
    const view = this.#start;
    bytes.writeUInt32LE(at - view, view);
    bytes.writeUInt16LE(idLength, view + 4);
    bytes.writeUInt16LE(dims, view + 6);
    bytes.writeUInt32LE(this.#hasText ? this.#metaStart - this.#textStart : noText, view + 8);
    bytes.writeUInt32LE(metaLength, view + 12);
  }

  /** Writes the row's vector, and answers how many numbers it has; 0 where the row has none. */
  #writeVector(): number {
    if (this.#vector === null) return 0;
    const { dims, values } = this.#vector;
    this.#json.floats(values, dims);
    return dims;
  }

  #checkMeta(bytes: number): void {
    if (bytes > limits.documentMetaBytesMax) throw metaTooLong(this.row, bytes);
  }

  #endEntries(rows: number): void {
    this.#batchRows += rows;
    this.#rowsBefore += rows;
    this.#rowCount += rows;
  }

  #openChunk(): void {
    this.#chunkNumber++;
    this.#chunk.clear();
    for (const column of this.#columns) column.values = this.#chunk.columnOf(column.name);
  }

  async #sendChunk(): Promise<void> {
    const chunk = this.#chunk;
    const columns = [...chunk.columns({})];
    const sent = { rowCount: chunk.rowCount, everyKey: chunk.everyKey, columns };
    this.#openChunk();
    await this.#sink.chunk(sent);
  }

  async #sendRows(sourceBytes: number): Promise<void> {
    const { bytes, at } = this.#json;
    const batch = { buffer: bytes.subarray(0, at), rowCount: this.#batchRows };
    if (this.#ranges.countBytes(at) > this.#bytesMax)
      throw tooMuch(`its rows make documents of more than ${this.#bytesMax} bytes: split it`);
    this.#json = new JsonBytes(this.#sink.batchBuffer(this.#roomFor(sourceBytes)));
    this.#batchRows = 0;
    if (batch.rowCount > 0) await this.#sink.rows(batch);
  }
}
