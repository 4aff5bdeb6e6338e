import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import {
  checkPageSize,
  type FileMetaData,
  type PageHeader,
  type PageValues,
  ParquetError,
  readPageHeader,
  readRuns,
  readValues,
  type SchemaElement,
  unpack,
} from './parquet-page.ts';

/**
 * The values of one column in one row group, a page at a time: what is in memory is a page and the dictionary, however large the row
 * group is.
 */
type ColumnChunk = NonNullable<FileMetaData['row_groups'][number]['columns'][number]['meta_data']>;

/** Headers are short, but for those with statistics of long strings. */
const headerBytesFirst = 64 * 1024;
const headerBytesMax = 8 * 1024 * 1024;

const heldBytesMax = 512 * 1024 * 1024;
/** Of a row of a page: whether it has a value, and which. */
const rowBytes = 12;
/** What a page costs beside its bytes. */
const pageBytes = 64 * 1024;

/** What all columns of a file have unpacked: one file is not worth more. */
export class UnpackedBytes {
  #count = 0;
  #held = 0;

  /** What all columns have in memory at once. */
  hold(more: number): void {
    this.#held += more;
    if (this.#held > heldBytesMax)
      throw new ParquetError(
        `its columns' pages take more than ${heldBytesMax} bytes at once: write smaller pages`,
      );
  }

  add(bytes: number): void {
    this.#count += bytes;
    if (this.#count > limits.parquetRawBytesMax)
      throw new ParquetError(`it unpacks to more than ${limits.parquetRawBytesMax} bytes`);
  }
}

export class ParquetColumn {
  readonly #file: FileHandle;
  readonly #element: SchemaElement;
  readonly #codec: string;
  readonly #unpacked: UnpackedBytes;
  readonly #end: number;
  #position: number;
  #rowsLeft: number;
  #dictionary: PageValues | null = null;
  /** Of the page at hand: whether each row has a value; null where all have. */
  #present: Int32Array | null = null;
  #indexes: Int32Array | null = null;
  #pageRows = 0;
  /** What the page and the dictionary at hand are counted with. */
  #pageBytes = 0;
  #dictionaryBytes = 0;
  #row = 0;
  #value = 0;
  /** What `values` of the row under way are of: its value's place in them, or -1 for null. */
  values: PageValues = { kind: 'numbers', values: new Uint8Array(0) };

  constructor(
    source: { readonly file: FileHandle; readonly size: number; readonly unpacked: UnpackedBytes },
    chunk: ColumnChunk,
    shape: { readonly element: SchemaElement; readonly rowCount: number },
  ) {
    this.#file = source.file;
    this.#unpacked = source.unpacked;
    this.#element = shape.element;
    this.#codec = chunk.codec;
    this.#rowsLeft = shape.rowCount;
    const data = Number(chunk.data_page_offset);
    const dictionary = Number(chunk.dictionary_page_offset ?? data);
    this.#position = dictionary > 0 ? Math.min(data, dictionary) : data;
    this.#end = this.#position + Number(chunk.total_compressed_size);
    const fits = this.#position >= 4 && this.#end <= source.size && this.#end >= this.#position;
    if (!fits || !Number.isSafeInteger(this.#end))
      throw new ParquetError('a column lies outside of the file');
  }

  /** Rows of the page at hand that were not taken. */
  get rowsAtHand(): number {
    return this.#pageRows - this.#row;
  }

  /** What pages may refer to, now. */
  get dictionary(): PageValues | null {
    return this.#dictionary;
  }

  /** Whether the values are those of a dictionary, which other pages share. */
  get isShared(): boolean {
    return this.#indexes !== null;
  }

  /** Where the values of the next `count` rows, which are at hand, stand among `values`; -1 for null. */
  take(places: Int32Array, count: number): void {
    const [present, indexes] = [this.#present, this.#indexes];
    const row = this.#row;
    let value = this.#value;
    for (let at = 0; at < count; at++) {
      if (present !== null && present[row + at] === 0) places[at] = -1;
      else {
        places[at] = indexes === null ? value : (indexes[value] as number);
        value++;
      }
    }
    this.#row = row + count;
    this.#value = value;
  }

  /** Nothing of it is asked for any more. */
  release(): void {
    this.#unpacked.hold(-this.#pageBytes - this.#dictionaryBytes);
  }

  /** The next page with rows. There must be rows left of the row group. */
  async load(): Promise<void> {
    do {
      if (this.#position >= this.#end) throw new ParquetError('a column has fewer rows than its row group');
      await this.#page();
    } while (this.rowsAtHand === 0);
  }

  async #page(): Promise<void> {
    const { header, length } = await this.#header();
    checkPageSize(header);
    const from = this.#position + length;
    const packedBytes = header.compressed_page_size;
    if (from + packedBytes > this.#end) throw new ParquetError('a page goes past its column');
    this.#unpacked.add(header.uncompressed_page_size + pageBytes);
    const packed = await this.#read(from, packedBytes);
    this.#position = from + packedBytes;
    if (header.type === 'DICTIONARY_PAGE') this.#readDictionary(header, packed);
    else if (header.type === 'DATA_PAGE') this.#readData(header, packed);
    else if (header.type === 'DATA_PAGE_V2') this.#readData2(header, packed);
    // Pages of an index say nothing of rows.
  }

  async #header(): Promise<{ readonly header: PageHeader; readonly length: number }> {
    for (let bytes = headerBytesFirst; ; bytes *= 8) {
      const wanted = Math.min(bytes, this.#end - this.#position);
      const isLast = wanted < bytes || bytes > headerBytesMax;
      const found = readPageHeader(await this.#read(this.#position, wanted), isLast);
      if (found !== null) return found;
    }
  }

  #readDictionary(header: PageHeader, packed: Buffer): void {
    const count = header.dictionary_page_header?.num_values ?? -1;
    this.#unpacked.hold(header.uncompressed_page_size - this.#dictionaryBytes);
    this.#dictionaryBytes = header.uncompressed_page_size;
    const raw = unpack(this.#codec, packed, header.uncompressed_page_size);
    if (count < 0 || count > raw.length * 8)
      throw new ParquetError('a dictionary has fewer values than it says');
    this.#dictionary = readValues(raw, 0, { element: this.#element, encoding: 'PLAIN', count });
  }

  #readData(header: PageHeader, packed: Buffer): void {
    const page = header.data_page_header;
    const rows = this.#rowsOf(page?.num_values, header);
    const raw = unpack(this.#codec, packed, header.uncompressed_page_size);
    let offset = 0;
    let present: Int32Array | null = null;
    if (this.#isOptional) {
      const view = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
      if (view.length < 4) throw new ParquetError('a page ends in its head');
      const length = view.readUInt32LE(0);
      if (4 + length > view.length) throw new ParquetError('a page ends in its levels');
      present = readRuns(view.subarray(4, 4 + length), 1, rows);
      offset = 4 + length;
    }
    this.#take(raw, { offset, rows, present, encoding: page?.encoding });
  }

  #readData2(header: PageHeader, packed: Buffer): void {
    const page = header.data_page_header_v2;
    const rows = this.#rowsOf(page?.num_values, header);
    const repetitions = page?.repetition_levels_byte_length ?? 0;
    const definitions = page?.definition_levels_byte_length ?? 0;
    const levels = repetitions + definitions;
    if (
      repetitions !== 0 ||
      definitions < 0 ||
      levels > packed.length ||
      levels > header.uncompressed_page_size
    )
      throw new ParquetError('a page ends in its levels');
    const present = this.#isOptional ? readRuns(packed.subarray(0, definitions), 1, rows) : null;
    const body = packed.subarray(levels);
    const rawBytes = header.uncompressed_page_size - levels;
    const raw = page?.is_compressed === false ? body : unpack(this.#codec, body, rawBytes);
    this.#take(raw, { offset: 0, rows, present, encoding: page?.encoding });
  }

  get #isOptional(): boolean {
    return this.#element.repetition_type === 'OPTIONAL';
  }

  #rowsOf(count: number | undefined, header: PageHeader): number {
    if (count === undefined || !Number.isInteger(count) || count < 0)
      throw new ParquetError('a page has no count');
    if (count > this.#rowsLeft) throw new ParquetError('a column has more rows than its row group');
    this.#rowsLeft -= count;
    const bytes = header.uncompressed_page_size + count * rowBytes;
    this.#unpacked.hold(bytes - this.#pageBytes);
    this.#pageBytes = bytes;
    return count;
  }

  #take(
    raw: Uint8Array,
    page: {
      readonly offset: number;
      readonly rows: number;
      readonly present: Int32Array | null;
      readonly encoding: string | undefined;
    },
  ): void {
    const { offset, rows, present, encoding } = page;
    let count = rows;
    if (present !== null) {
      count = 0;
      for (let row = 0; row < rows; row++) {
        if ((present[row] as number) > 1) throw new ParquetError('a value is neither there nor missing');
        count += present[row] as number;
      }
    }
    if (encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY') {
      this.#indexes = this.#readIndexes(raw, offset, count);
      this.values = this.#dictionary ?? this.values;
    } else {
      this.#indexes = null;
      this.values = readValues(raw, offset, { element: this.#element, encoding, count });
    }
    this.#present = count === rows ? null : present;
    this.#pageRows = rows;
    this.#row = 0;
    this.#value = 0;
  }

  #readIndexes(raw: Uint8Array, offset: number, count: number): Int32Array {
    const dictionary = this.#dictionary;
    if (count === 0) return new Int32Array(0);
    if (dictionary === null || offset >= raw.length) throw new ParquetError('a page has no dictionary');
    const bytes = Buffer.from(raw.buffer, raw.byteOffset + offset, raw.byteLength - offset);
    const indexes = readRuns(bytes.subarray(1), bytes[0] as number, count);
    const size = dictionary.kind === 'bytes' ? dictionary.starts.length : dictionary.values.length;
    for (let at = 0; at < count; at++) {
      const index = indexes[at] as number;
      if (index < 0 || index >= size) throw new ParquetError('a value that its dictionary does not have');
    }
    return indexes;
  }

  async #read(position: number, bytes: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(bytes);
    for (let read = 0; read < bytes; ) {
      const { bytesRead } = await this.#file.read(buffer, read, bytes - read, position + read);
      if (bytesRead === 0) throw new ParquetError('the file ends in a page');
      read += bytesRead;
    }
    return buffer;
  }
}
