import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { compressors } from 'hyparquet-compressors';
import { decompressExactly } from '../../storage/compress.ts';
import { ParquetError, refusing } from './parquet-error.ts';

/** Unpacks a page. Throws ParquetError where that does not make exactly `rawBytes`; no more than that is ever made. */
export function unpack(codec: string, packed: Uint8Array, rawBytes: number): Uint8Array {
  // Some writers pack nothing into no bytes.
  if (rawBytes === 0) return new Uint8Array(0);
  return refusing(() => {
    const raw = unpackAny(codec, packed, rawBytes);
    if (raw.length !== rawBytes) throw new ParquetError('a page unpacks to another size than it says');
    return raw;
  });
}

/** The door to hyparquet-compressors, for codecs that Node and zstd's binding don't know. */
function unpackAny(codec: string, packed: Uint8Array, rawBytes: number): Uint8Array {
  switch (codec) {
    case 'UNCOMPRESSED':
      return packed;
    case 'ZSTD':
      return decompressExactly(packed, rawBytes);
    case 'GZIP':
      return gunzipSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'BROTLI':
      return brotliDecompressSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'SNAPPY':
    case 'LZ4':
    case 'LZ4_RAW': {
      const decompress = compressors[codec];
      if (decompress === undefined) throw unknownCodec(codec);
      return decompress(packed, rawBytes);
    }
    default:
      throw unknownCodec(codec);
  }
}

function unknownCodec(codec: string): ParquetError {
  return new ParquetError(`its pages are packed with ${codec}, which is not known here: use ZSTD or SNAPPY`);
}
