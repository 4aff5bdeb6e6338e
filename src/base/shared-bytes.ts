import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Bytes that several threads see at once: written once, then only read. The actor keeps them in its memtable, the log
 * thread puts them into a group, a build thread makes a segment of them, and nobody copies.
 *
 * They are freed when every thread that has seen them has collected its garbage, and V8 does not count them when it
 * decides whether to: a thread with a small heap, as the log's, would hold on to gigabytes. So each thread collects when
 * it has seen so many of them.
 */
export function toShared(bytes: Uint8Array): Buffer {
  if (bytes.buffer instanceof SharedArrayBuffer) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  const shared = Buffer.from(new SharedArrayBuffer(bytes.byteLength));
  shared.set(bytes);
  sawShared(shared.byteLength);
  return shared;
}

/** Of a thread, between two collections: what it may keep alive that nobody needs. */
const seenBytesMax = 64 * 1024 * 1024;
/**
 * Most collections look at young objects only, which takes 2 ms instead of 10 and frees what passed through. What was held
 * for long, as in a memtable, is found by every so many-th, which looks at all.
 */
const collectionsPerFullOne = 4;
let seenBytes = 0;
let collections = 0;
let collect: ((options?: { readonly type: 'minor' }) => void) | null = null;

/** This thread holds, or has held, shared bytes that it did not count before. */
export function sawShared(bytes: number): void {
  seenBytes += bytes;
  if (seenBytes < seenBytesMax) return;
  seenBytes = 0;
  collect ??= collector();
  const gc = collect;
  const isFull = ++collections % collectionsPerFullOne === 0;
  // After this turn, in which whoever brought them still holds them.
  setImmediate(() => (isFull ? gc() : gc({ type: 'minor' })));
}

/** As `sawShared`, for a message to or from another thread that holds shared bytes somewhere near its top. */
export function sawSharedIn(message: unknown, depth = 3): void {
  if (message instanceof Uint8Array) {
    if (message.buffer instanceof SharedArrayBuffer) sawShared(message.byteLength);
  } else if (depth > 0 && typeof message === 'object' && message !== null && !ArrayBuffer.isView(message)) {
    for (const part of Object.values(message)) sawSharedIn(part, depth - 1);
  }
}

function collector(): (options?: { readonly type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as ReturnType<typeof collector>;
}
