import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../../protocol/limits.ts';
import type { FileRanges } from '../file-ranges.ts';
import { type DataPage, pageRows, readDataPage, readDataPageV2, readDictionaryPage } from './datapage.ts';
import {
  type ColumnMetaData,
  checkPageBytes,
  checkPageSize,
  type PageHeader,
  readPageHeader,
  type SchemaElement,
} from './metadata.ts';
import type { PageValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';

/** What is read at once where less is asked for: small pages stand close together. A header is longer only if it has statistics of long strings. */
const aheadBytes = 64 * 1024;
const headerBytesMax = 8 * 1024 * 1024;

/** Bytes of pages that a thread holds at once. */
export const heldBytesMax = 512 * 1024 * 1024;
/** What a page holds for each of its values beside it: its levels, and which it is. */
const valueBytes = 12;

/** Bytes that the pages of columns hold at most, if all of them are held at once; of a file that says what it has. */
export function heldBytesAtMost(columns: readonly ColumnMetaData[]): number {
  return columns.reduce(
    (sum, { total_uncompressed_size, num_values }) =>
      sum + Number(total_uncompressed_size) + Number(num_values) * valueBytes,
    0,
  );
}

/** What a page costs beside its bytes. */
const pageBytes = 64 * 1024;

/** Adds up what all columns of a file unpack, bounded for the file as a whole, and what they hold at once, bounded for each thread that reads it. */
export class UnpackedBytes {
  readonly #ranges: FileRanges;
  readonly #heldMax: number;
  #held = 0;

  constructor(ranges: FileRanges, heldMax = heldBytesMax) {
    this.#ranges = ranges;
    this.#heldMax = heldMax;
  }

  /** Says that a column holds so many bytes more, or less. Throws ParquetError where that is too much for the file. */
  hold(more: number): void {
    this.#held += more;
    if (this.#held > this.#heldMax)
      throw new ParquetError(
        `its columns' pages take more than ${this.#heldMax} bytes at once: write smaller pages`,
      );
  }

  /** Says that so many bytes are about to be unpacked. Throws ParquetError where the file unpacks to too much. */
  add(bytes: number): void {
    if (this.#ranges.countUnpacked(bytes) > limits.parquetRawBytesMax)
      throw new ParquetError(`it unpacks to more than ${limits.parquetRawBytesMax} bytes: split it`);
  }
}

/** Writers of old forgot the header of the dictionary's page when they told how long a column is. */
const forgottenBytes = 100;

const nothing = Buffer.alloc(0);

/** What all columns of a file are read from. */
export interface ParquetSource {
  readonly file: FileHandle;
  readonly size: number;
  readonly unpacked: UnpackedBytes;
}

/** Which levels a column's values have. */
export interface LevelShape {
  readonly element: SchemaElement;
  readonly repetitionMax: number;
  readonly definitionMax: number;
  /** Whether its pages give levels, and not only which values are null: of flat columns, whose greatest level is 1. */
  readonly hasLevels: boolean;
  /** Rows of the row group. */
  readonly rowCount: number;
}

export interface HeldPage {
  readonly page: DataPage;
  /** What it is counted with until it is given back. */
  readonly bytes: number;
}

/** The pages of one column of one row group, front to back: in memory are the dictionary, and pages until they are given back. */
export class ColumnPages {
  readonly #source: ParquetSource;
  readonly #shape: LevelShape;
  readonly #codec: string;
  readonly #end: number;
  #position: number;
  /** Values and nulls that are still to come. */
  #valuesLeft: number;
  #dictionary: PageValues | null = null;
  #heldBytes = 0;
  #dictionaryBytes = 0;
  /** Bytes that were read before they were asked for, and where they stand in the file. */
  #ahead: Buffer = nothing;
  #aheadStart = 0;

  constructor(source: ParquetSource, metadata: ColumnMetaData, shape: LevelShape) {
    this.#source = source;
    this.#shape = shape;
    this.#codec = metadata.codec;
    const data = Number(metadata.data_page_offset);
    const dictionary = Number(metadata.dictionary_page_offset ?? data);
    this.#position = dictionary > 0 ? Math.min(data, dictionary) : data;
    const end = this.#position + Number(metadata.total_compressed_size);
    const fits = this.#position >= 4 && end <= source.size && end >= this.#position;
    if (!fits || !Number.isSafeInteger(end)) throw new ParquetError('a column lies outside of the file');
    this.#end = Math.min(source.size, end + forgottenBytes);
    const values = Number(metadata.num_values);
    // Without lists each row has one, and a page of more is refused before anything of it is made.
    this.#valuesLeft = shape.repetitionMax === 0 ? Math.min(values, shape.rowCount) : values;
  }

  /** The dictionary that later pages may refer to; null where the column has none so far. */
  get dictionary(): PageValues | null {
    return this.#dictionary;
  }

  /** Reads the next page of values; null where the column has ended. */
  async next(): Promise<HeldPage | null> {
    while (this.#valuesLeft > 0 && this.#position < this.#end) {
      const page = await this.#read();
      if (page !== null) return page;
    }
    return null;
  }

  /** Says that a page is not used any more. */
  giveBack({ bytes }: HeldPage): void {
    this.#heldBytes -= bytes;
    this.#source.unpacked.hold(-bytes);
  }

  /** Says that nothing of the column is used any more. Call it once. */
  release(): void {
    this.#source.unpacked.hold(-this.#heldBytes - this.#dictionaryBytes);
  }

  /** Null for a page that holds no values of rows. */
  async #read(): Promise<HeldPage | null> {
    const { header, length } = await this.#header();
    checkPageSize(header);
    const from = this.#position + length;
    const packedBytes = header.compressed_page_size;
    if (from + packedBytes > this.#end) throw new ParquetError('a page goes past its column');
    this.#source.unpacked.add(header.uncompressed_page_size + pageBytes);
    const packed = await this.#bytes(from, packedBytes);
    checkPageBytes(header, packed);
    this.#position = from + packedBytes;
    const shape = { ...this.#shape, codec: this.#codec, dictionary: this.#dictionary };
    switch (header.type) {
      case 'DICTIONARY_PAGE':
        this.#holdDictionary(header.uncompressed_page_size);
        this.#dictionary = readDictionaryPage(header, packed, shape);
        return null;
      case 'DATA_PAGE':
      case 'DATA_PAGE_V2': {
        const bytes = this.#hold(header);
        const page = (header.type === 'DATA_PAGE' ? readDataPage : readDataPageV2)(header, packed, shape);
        return { page, bytes };
      }
      default:
        // A page of an index has no rows.
        return null;
    }
  }

  async #header(): Promise<{ readonly header: PageHeader; readonly length: number }> {
    const ahead = this.#aheadFrom(this.#position);
    const found = ahead.length === 0 ? null : readPageHeader(ahead, false);
    if (found !== null) return found;
    for (let bytes = aheadBytes; ; bytes *= 8) {
      const wanted = Math.min(bytes, this.#end - this.#position);
      const isLast = wanted < bytes || bytes > headerBytesMax;
      const read = readPageHeader(await this.#bytes(this.#position, wanted), isLast);
      if (read !== null) return read;
    }
  }

  #holdDictionary(bytes: number): void {
    this.#source.unpacked.hold(bytes - this.#dictionaryBytes);
    this.#dictionaryBytes = bytes;
  }

  /** Counts a page before anything of it is unpacked: its values must be left in the column, and its bytes in what a file may hold. */
  #hold(header: PageHeader): number {
    const values = pageRows(header);
    if (values > this.#valuesLeft) throw new ParquetError('a column has more values than it says');
    this.#valuesLeft -= values;
    const levelBytes = values * valueBytes;
    // Levels of values that are not there cost a file nothing: they are counted with what it unpacks to.
    if (this.#shape.repetitionMax > 0) this.#source.unpacked.add(levelBytes);
    const bytes = header.uncompressed_page_size + levelBytes;
    this.#source.unpacked.hold(bytes);
    this.#heldBytes += bytes;
    return bytes;
  }

  /** What was read ahead from a place on. */
  #aheadFrom(position: number): Buffer {
    const at = position - this.#aheadStart;
    return at >= 0 && at < this.#ahead.length ? this.#ahead.subarray(at) : nothing;
  }

  async #bytes(position: number, bytes: number): Promise<Buffer> {
    const ahead = this.#aheadFrom(position);
    if (bytes <= ahead.length) return ahead.subarray(0, bytes);
    const wanted = Math.max(bytes, Math.min(aheadBytes, this.#end - position));
    const buffer = Buffer.allocUnsafeSlow(wanted);
    for (let read = 0; read < wanted; ) {
      const { bytesRead } = await this.#source.file.read(buffer, read, wanted - read, position + read);
      if (bytesRead === 0) throw new ParquetError('the file ends in a page');
      read += bytesRead;
    }
    // Pages are views of it: it is not used again, but forgotten.
    if (wanted <= aheadBytes) {
      this.#ahead = buffer;
      this.#aheadStart = position;
    }
    return buffer.subarray(0, bytes);
  }
}
