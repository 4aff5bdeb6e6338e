import { assert } from '../base/assert.ts';
import type { ByteRange, ListOptions } from './object-store.ts';

/** S3 allows 1,024 bytes; the rest is room for a bucket's own prefix. */
export const keyBytesMax = 900;
/** File systems end a name at 255 bytes; the rest is room for an implementation's own endings. */
export const keyPartBytesMax = 200;
/** What S3 answers in one page. */
export const listLimitMax = 1000;

const keyPattern = /^(?:[\w-][\w.-]{0,199}\/)*[\w-][\w.-]{0,199}$/;
/** The beginning of a key: as a key, but the last part may be cut anywhere, also to nothing. */
const prefixPattern = /^(?:[\w-][\w.-]{0,199}\/)*(?:[\w-][\w.-]{0,199})?$/;

export function assertKey(key: string): void {
  assert(key.length <= keyBytesMax && keyPattern.test(key), () => `bad object key: ${JSON.stringify(key)}`);
}

export function assertRange(range: ByteRange | undefined): void {
  if (range === undefined) return;
  const numbers = 'suffix' in range ? [range.suffix] : [range.length, range.offset + 1];
  assert(
    numbers.every((n) => Number.isSafeInteger(n) && n >= 1),
    () => `bad range: ${JSON.stringify(range)}`,
  );
}

export function assertListing(prefix: string, options: Pick<ListOptions, 'after' | 'limit'>): void {
  assertPrefix(prefix, 'prefix');
  if (options.after !== undefined) assertPrefix(options.after, 'after');
  assert(
    Number.isInteger(options.limit) && options.limit >= 1 && options.limit <= listLimitMax,
    () => `bad limit of a listing: ${options.limit}`,
  );
}

function assertPrefix(prefix: string, name: string): void {
  assert(
    prefix.length <= keyBytesMax && prefixPattern.test(prefix),
    () => `bad ${name} of a listing: ${JSON.stringify(prefix)}`,
  );
}

/** The part of an object of `size` bytes that a range names: empty where it begins beyond the end. */
export function cutRange(range: ByteRange | undefined, size: number): { offset: number; length: number } {
  if (range === undefined) return { offset: 0, length: size };
  if ('suffix' in range) {
    const length = Math.min(range.suffix, size);
    return { offset: size - length, length };
  }
  const offset = Math.min(range.offset, size);
  return { offset, length: Math.min(range.length, size - offset) };
}

export function totalBytes(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0);
}

/** One array of its own memory, also where the parts are views on shared memory. */
export function concatenate(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(totalBytes(parts));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}
