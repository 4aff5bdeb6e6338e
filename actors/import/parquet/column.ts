import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../../protocol/limits.ts';
import { type DataPage, pageRows, readDataPage, readDataPageV2, readDictionaryPage } from './datapage.ts';
import {
  type ColumnMetaData,
  checkPageSize,
  type PageHeader,
  readPageHeader,
  type SchemaElement,
} from './metadata.ts';
import type { PageValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';

/** A header is longer than this only if it has statistics of long strings. */
const headerBytesFirst = 64 * 1024;
const headerBytesMax = 8 * 1024 * 1024;

const heldBytesMax = 512 * 1024 * 1024;
/** What a page holds for each of its rows beside the values: whether it has one, and which. */
const rowBytes = 12;
/** What a page costs beside its bytes. */
const pageBytes = 64 * 1024;

/** Adds up what all columns of a file unpack, and what they hold at once: both are bounded for the file as a whole. */
export class UnpackedBytes {
  #count = 0;
  #held = 0;

  /** Says that a column holds so many bytes more, or less. Throws ParquetError where that is too much for the file. */
  hold(more: number): void {
    this.#held += more;
    if (this.#held > heldBytesMax)
      throw new ParquetError(
        `its columns' pages take more than ${heldBytesMax} bytes at once: write smaller pages`,
      );
  }

  /** Says that so many bytes are about to be unpacked. Throws ParquetError where the file unpacks to too much. */
  add(bytes: number): void {
    this.#count += bytes;
    if (this.#count > limits.parquetRawBytesMax)
      throw new ParquetError(`it unpacks to more than ${limits.parquetRawBytesMax} bytes: split it`);
  }
}

const noPage: DataPage = {
  rows: 0,
  present: null,
  indexes: null,
  values: { kind: 'numbers', values: new Uint8Array(0) },
};

/**
 * One column of one row group, read a page at a time: in memory are a page and the dictionary, however large the row group is.
 */
export class ParquetColumn {
  readonly #file: FileHandle;
  readonly #element: SchemaElement;
  readonly #codec: string;
  readonly #unpacked: UnpackedBytes;
  readonly #end: number;
  #position: number;
  #rowsLeft: number;
  #dictionary: PageValues | null = null;
  #page = noPage;
  /** What the page and the dictionary at hand are counted with. */
  #pageBytes = 0;
  #dictionaryBytes = 0;
  /** The next row of the page, and which of the page's values is the next. */
  #row = 0;
  #value = 0;

  constructor(
    source: { readonly file: FileHandle; readonly size: number; readonly unpacked: UnpackedBytes },
    metadata: ColumnMetaData,
    shape: { readonly element: SchemaElement; readonly rowCount: number },
  ) {
    this.#file = source.file;
    this.#unpacked = source.unpacked;
    this.#element = shape.element;
    this.#codec = metadata.codec;
    this.#rowsLeft = shape.rowCount;
    const data = Number(metadata.data_page_offset);
    const dictionary = Number(metadata.dictionary_page_offset ?? data);
    this.#position = dictionary > 0 ? Math.min(data, dictionary) : data;
    this.#end = this.#position + Number(metadata.total_compressed_size);
    const fits = this.#position >= 4 && this.#end <= source.size && this.#end >= this.#position;
    if (!fits || !Number.isSafeInteger(this.#end))
      throw new ParquetError('a column lies outside of the file');
  }

  /** Rows of the page at hand that were not taken yet. */
  get rowsAtHand(): number {
    return this.#page.rows - this.#row;
  }

  /** The values among which `take` answers places. */
  get values(): PageValues {
    return this.#page.values;
  }

  /** The dictionary that later pages may refer to; null where the column has none so far. */
  get dictionary(): PageValues | null {
    return this.#dictionary;
  }

  /** Whether `values` are the dictionary's, which other pages share. */
  get isShared(): boolean {
    return this.#page.indexes !== null;
  }

  /** Takes the next `count` rows, which must be at hand: writes where each one's value stands among `values`, -1 for null. Hot. */
  take(places: Int32Array, count: number): void {
    const { present, indexes } = this.#page;
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

  /** Says that the column holds nothing any more. Call it once, when its row group is over. */
  release(): void {
    this.#unpacked.hold(-this.#pageBytes - this.#dictionaryBytes);
  }

  /** Reads pages until one has rows. The row group must have rows left. */
  async load(): Promise<void> {
    do {
      if (this.#position >= this.#end) throw new ParquetError('a column has fewer rows than its row group');
      await this.#loadPage();
    } while (this.rowsAtHand === 0);
  }

  async #loadPage(): Promise<void> {
    const { header, length } = await this.#header();
    checkPageSize(header);
    const from = this.#position + length;
    const packedBytes = header.compressed_page_size;
    if (from + packedBytes > this.#end) throw new ParquetError('a page goes past its column');
    this.#unpacked.add(header.uncompressed_page_size + pageBytes);
    const packed = await this.#read(from, packedBytes);
    this.#position = from + packedBytes;
    const shape = { element: this.#element, codec: this.#codec, dictionary: this.#dictionary };
    switch (header.type) {
      case 'DICTIONARY_PAGE':
        this.#holdDictionary(header.uncompressed_page_size);
        this.#dictionary = readDictionaryPage(header, packed, shape);
        return;
      case 'DATA_PAGE':
      case 'DATA_PAGE_V2':
        this.#holdPage(header);
        this.#page = (header.type === 'DATA_PAGE' ? readDataPage : readDataPageV2)(header, packed, shape);
        this.#row = 0;
        this.#value = 0;
        return;
      default:
      // A page of an index has no rows.
    }
  }

  async #header(): Promise<{ readonly header: PageHeader; readonly length: number }> {
    for (let bytes = headerBytesFirst; ; bytes *= 8) {
      const wanted = Math.min(bytes, this.#end - this.#position);
      const isLast = wanted < bytes || bytes > headerBytesMax;
      const found = readPageHeader(await this.#read(this.#position, wanted), isLast);
      if (found !== null) return found;
    }
  }

  #holdDictionary(bytes: number): void {
    this.#unpacked.hold(bytes - this.#dictionaryBytes);
    this.#dictionaryBytes = bytes;
  }

  /** Counts a page before anything of it is unpacked: its rows must be left in the row group, and its bytes in what a file may hold. */
  #holdPage(header: PageHeader): void {
    const rows = pageRows(header);
    if (rows > this.#rowsLeft) throw new ParquetError('a column has more rows than its row group');
    this.#rowsLeft -= rows;
    const bytes = header.uncompressed_page_size + rows * rowBytes;
    this.#unpacked.hold(bytes - this.#pageBytes);
    this.#pageBytes = bytes;
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
