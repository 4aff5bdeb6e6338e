import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { compressors } from 'hyparquet-compressors';
import { decompressExactly } from '../../storage/compress.ts';
import { unpackLz4, unpackLz4Block } from './lz4.ts';
import { ParquetError, refusing } from './parquet-error.ts';

/** Unpacks a page. Throws ParquetError where that does not make exactly `rawBytes`; no more than that is ever made. */
export function unpack(codec: string | undefined, packed: Uint8Array, rawBytes: number): Uint8Array {
  // Some writers pack nothing into no bytes.
  if (rawBytes === 0) return new Uint8Array(0);
  return refusing(() => {
    const raw = unpackAny(codec, packed, rawBytes);
    if (raw.length !== rawBytes) throw new ParquetError('a page unpacks to another size than it says');
    return raw;
  });
}

/** The door to hyparquet-compressors, for Snappy, which neither Node nor zstd's binding knows. */
function unpackAny(codec: string | undefined, packed: Uint8Array, rawBytes: number): Uint8Array {
  switch (codec) {
    case 'UNCOMPRESSED':
      return packed;
    case 'ZSTD':
      return decompressExactly(packed, rawBytes);
    case 'GZIP':
      return gunzipSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'BROTLI':
      return brotliDecompressSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'LZ4':
      return unpackLz4(packed, rawBytes);
    case 'LZ4_RAW':
      return unpackLz4Block(packed, rawBytes);
    case 'SNAPPY':
      return compressors.SNAPPY?.(packed, rawBytes) ?? new Uint8Array(0);
    default:
      throw new ParquetError(
        `its pages are packed with ${codec ?? 'a codec that has no name'}: use ZSTD or SNAPPY`,
      );
  }
}
