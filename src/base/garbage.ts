import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { yieldTurn } from './turns.ts';

/**
 * Bytes outside of V8's heap that nobody needs any more, and when a thread collects them. V8 does not count them when it
 * decides whether to, or far too late: a thread with a small heap, as the log's, would hold on to gigabytes. So each thread
 * counts what passes through it and what it lets go, and collects when that is more than its bound.
 */
const mebibyte = 1024 * 1024;
/** The part of what a process may hold that may be garbage of one thread; several threads see the same bytes. */
const garbageShare = 1 / 16;
const garbageBytesMin = 16 * mebibyte;
const passingBytesMaxDefault = 64 * mebibyte;
const heldBytesMaxDefault = 512 * mebibyte;

/** What this thread may keep alive that nobody needs. */
const bounds = { passing: passingBytesMaxDefault, held: heldBytesMaxDefault };

/** Called once, when the thread begins; `memoryBytes` is what the whole process may hold. */
export function boundGarbage(memoryBytes: number): void {
  const share = Math.max(garbageBytesMin, Math.floor(memoryBytes * garbageShare));
  bounds.passing = Math.min(share, passingBytesMaxDefault);
  bounds.held = Math.min(2 * share, heldBytesMaxDefault);
}

/** Memory that V8 does not know of: whoever makes it sees to `sawShared` where it passes through. */
export function sharedBuffer(bytes: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(bytes));
}

/**
 * Bytes that several threads see at once: written once, then only read. The actor keeps them in its memtable, the log
 * thread puts them into a group, a compute thread makes a segment of them, and nobody copies. They are freed when every thread
 * that has seen them has collected its garbage.
 */
export function toShared(bytes: Uint8Array): Buffer {
  if (bytes.buffer instanceof SharedArrayBuffer) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  const shared = sharedBuffer(bytes.byteLength);
  shared.set(bytes);
  sawShared(shared.byteLength);
  return shared;
}

/**
 * Most collections look at young objects only, which takes 2 ms instead of 10 and frees what passed through. What was held
 * for long, as in a memtable, is found by every so many-th, which looks at all.
 */
const collectionsPerFullOne = 4;
let seenBytes = 0;
let collections = 0;
let heldBytes = 0;
let collect: ((options?: { readonly type: 'minor' }) => void) | null = null;

/** This thread holds, or has held, shared bytes that it did not count before. */
export function sawShared(bytes: number): void {
  seenBytes += bytes;
  if (seenBytes < bounds.passing) return;
  seenBytes = 0;
  collectSoon(++collections % collectionsPerFullOne === 0);
}

/** Bytes that this thread held for long, blocks or an actor put away, are garbage now. */
export function letGo(bytes: number): void {
  heldBytes += bytes;
  if (heldBytes >= bounds.held) collectSoon(true);
}

/** After this turn, in which whoever brought the bytes still holds them. */
function collectSoon(all: boolean): void {
  if (all) heldBytes = 0;
  collect ??= collector();
  const gc = collect;
  void yieldTurn().then(() => (all ? gc() : gc({ type: 'minor' })));
}

/** As `sawShared`, for a message to or from another thread that holds shared bytes somewhere near its top. */
export function sawSharedIn(message: unknown, depth = 3): void {
  if (ArrayBuffer.isView(message)) {
    if (message.buffer instanceof SharedArrayBuffer) sawShared(message.byteLength);
  } else if (depth > 0 && typeof message === 'object' && message !== null) {
    for (const part of Object.values(message)) sawSharedIn(part, depth - 1);
  }
}

function collector(): (options?: { readonly type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as ReturnType<typeof collector>;
}
