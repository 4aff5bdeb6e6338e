/**
 * The door to hyparquet, which reads Parquet's footers and page headers. Their sizes are checked before the library reads them
 * (thrift.ts). Why its decoders of pages are not used: see the decision in actors/import/README.md.
 */
import { crc32 } from 'node:zlib';
import { parquetHeader } from 'hyparquet/src/column.js';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import type { FileMetaData, PageHeader, SchemaElement } from 'hyparquet/src/types.js';
import { limits } from '../../../protocol/limits.ts';
import { asParquetError, ParquetError, refusing } from './parquet-error.ts';
import { checkThrift, thriftReader } from './thrift.ts';

export type { FileMetaData, PageHeader, SchemaElement };

/** What a footer says of one column in one row group. */
export type ColumnMetaData = NonNullable<FileMetaData['row_groups'][number]['columns'][number]['meta_data']>;

const magicBytes = 4;
/** A length of four bytes and the magic number, with which each file ends. */
export const footerTailBytes = 8;
/** `PAR1`. */
const magic = 0x31524150;
/** `PARE`. */
const encryptedMagic = 0x45524150;

/** Answers how many bytes the footer has, its tail included. `tail` is the last bytes of the file. */
export function footerBytes(tail: Buffer, fileBytes: number): number {
  if (tail.length === footerTailBytes && tail.readUInt32LE(tail.length - magicBytes) === encryptedMagic)
    throw new ParquetError('the file is encrypted: write it without encryption');
  if (tail.length < footerTailBytes || tail.readUInt32LE(tail.length - magicBytes) !== magic)
    throw new ParquetError('the file does not end as a Parquet file does');
  const length = tail.readUInt32LE(tail.length - footerTailBytes) + footerTailBytes;
  if (length > fileBytes)
    throw new ParquetError("the file's footer says that it is longer than the whole file");
  if (length > limits.parquetFooterBytesMax)
    throw new ParquetError(
      `the file's footer has ${length} bytes, and at most ${limits.parquetFooterBytesMax} are read: write larger row groups`,
    );
  return length;
}

export function readFooter(footer: Uint8Array): FileMetaData {
  return refusing(() => {
    checkThrift(footer.subarray(0, footer.length - footerTailBytes));
    return parquetMetadata(footer, { geoparquet: false });
  });
}

/**
 * Reads the page header with which `bytes` begin, and answers how long it is. Null where it is longer than `bytes` and there are more;
 * `isLast` says that there are no more.
 */
export function readPageHeader(
  bytes: Buffer,
  isLast: boolean,
): { readonly header: PageHeader; readonly length: number } | null {
  const reader = thriftReader(bytes);
  try {
    checkThrift(bytes);
    return { header: parquetHeader(reader), length: reader.offset };
  } catch (error) {
    if (!isLast) return null;
    throw asParquetError(error);
  }
}

/** Packed data hardly ever shrinks to less than a thousandth, unless it is a page that says nothing. */
const unpackRatioMax = 1_000;
const unpackSlackBytes = 1024 * 1024;

/** Checks what a page takes, before anything of it is read or unpacked. */
export function checkPageSize({
  compressed_page_size: packed,
  uncompressed_page_size: raw,
}: PageHeader): void {
  if (!Number.isInteger(packed) || !Number.isInteger(raw) || packed < 0 || raw < 0)
    throw new ParquetError('a page has no size');
  if (raw > limits.parquetPageBytesMax)
    throw new ParquetError(
      `a page unpacks to ${raw} bytes, and at most ${limits.parquetPageBytesMax} are read: write smaller pages`,
    );
  if (raw > packed * unpackRatioMax + unpackSlackBytes)
    throw new ParquetError(`a page of ${packed} bytes says that it unpacks to ${raw}`);
}

/** Refuses a page whose bytes are not those that were written, where its header tells. */
export function checkPageBytes({ crc }: PageHeader, packed: Buffer): void {
  if (crc !== undefined && crc32(packed) !== crc >>> 0)
    throw new ParquetError('a page is damaged: its checksum is not that of its bytes');
}
