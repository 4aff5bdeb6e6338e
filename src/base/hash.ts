/** The door to xxHash: checksums of stored bytes and hashes of document ids. Not for secrets. */
import { createHash, hash } from 'node:crypto';
import xxhash from 'xxhash-wasm';

const { h64Raw, h64, create64 } = await xxhash();

/** XXH64 of the bytes; a seed above 64 bits counts modulo 2^64. */
export function xxh64(bytes: Uint8Array, seed = 0n): bigint {
  return h64Raw(bytes, seed);
}

/** XXH64 of bytes that come in pieces; the same as that of all of them at once. */
export interface RunningXxh64 {
  update(bytes: Uint8Array): void;
  digest(): bigint;
}

export function runningXxh64(seed = 0n): RunningXxh64 {
  const state = create64(BigInt.asUintN(64, seed));
  return {
    update(bytes) {
      state.update(bytes);
    },
    digest: () => state.digest(),
  };
}

/** XXH64 of a string's UTF-8. */
export function xxh64Text(text: string): bigint {
  return h64(text);
}

/** SHA-256 as lower-case hexadecimal: digests of keys and of addresses. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** SHA-256 of the bytes or of a string's UTF-8, a character a byte: the quickest way out of the native side. */
export function sha256Latin1(data: string | Uint8Array): string {
  return hash('sha256', data, 'latin1' as 'binary');
}
