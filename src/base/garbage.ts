/**
 * Bytes outside of V8's heap that nobody needs any more, and when a thread collects them. V8 does not count them when it
 * decides whether to, or far too late: a thread with a small heap, as the log's, would hold on to gigabytes. So each thread
 * counts what passes through it and what it lets go, and collects when that is more than its bound.
 */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { yieldTurn } from './turns.ts';

const mebibyte = 1024 * 1024;
/** The part of what a process may hold that may be garbage of one thread; several threads see the same bytes. */
const garbageShare = 1 / 16;
const garbageBytesMin = 16 * mebibyte;
const passingBytesMaxDefault = 64 * mebibyte;
const heldBytesMaxDefault = 512 * mebibyte;

/**
 * What this thread may keep alive that nobody needs. Most collections look at young objects only, which takes 2 ms instead of 10 and
 * frees what passed through. What was held for long, as in a memtable, is found by every so many-th, which looks at all.
 */
const bounds = {
  passing: passingBytesMaxDefault,
  briefly: passingBytesMaxDefault,
  held: heldBytesMaxDefault,
  isSmallHeap: false,
};
const collectionsPerFullOne = 4;
/** Hardly anything that is seen briefly grows old: a whole collection for every 256 MB took a fifth of a count's time. */
const briefCollectionsPerFullOne = 16;

/** Called once, when the thread begins; `memoryBytes` is what the whole process may hold. */
export function boundGarbage(memoryBytes: number): void {
  const share = Math.max(garbageBytesMin, Math.floor(memoryBytes * garbageShare));
  bounds.passing = bounds.briefly = Math.min(share, passingBytesMaxDefault);
  bounds.held = Math.min(2 * share, heldBytesMaxDefault);
}

const smallHeap = { passingBytesMax: 16 * mebibyte, idleBytesMax: 4 * mebibyte };
const idleMs = 250;
let idle: ReturnType<typeof setTimeout> | null = null;

/**
 * Called after each task of a thread that has a heap of some megabytes, and perhaps nothing to do for long. All of such a heap is looked
 * through in 10 ms, so it is done often, and once more when the thread is idle: otherwise each kept the last bytes that it had
 * seen until its next task, half a gigabyte on twenty threads.
 */
export function collectBetweenTasks(): void {
  bounds.passing = Math.min(bounds.passing, smallHeap.passingBytesMax);
  bounds.isSmallHeap = true;
  idle ??= setTimeout(() => {
    const uncounted = seenBytes + brieflySeenBytes + brieflyUsedBytes;
    if (uncounted + getHeapStatistics().external_memory < smallHeap.idleBytesMax) return;
    seenBytes = brieflySeenBytes = brieflyUsedBytes = 0;
    collectSoon(true);
  }, idleMs).unref();
  idle.refresh();
}

/** Makes memory that threads can share and that V8 does not count. This thread counts it as seen, whatever becomes of it. */
export function sharedBuffer(bytes: number): Buffer {
  sawShared(bytes);
  return Buffer.from(new SharedArrayBuffer(bytes));
}

/** Makes memory as `sharedBuffer` does, for bytes that nobody keeps. This thread counts it by `usedBriefly`, which collects less than what `sharedBuffer` counts by. */
export function sharedBriefly(bytes: number): Buffer {
  usedBriefly(bytes);
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
  return shared;
}

/** A shared buffer from this many bytes on outlives its youth: work on it takes so long that a collection of young objects does not find it. */
const largeBytes = 8 * mebibyte;

let seenBytes = 0;
let seenLargeBytes = 0;
let brieflySeenBytes = 0;
let brieflyUsedBytes = 0;
let collections = 0;
let heldBytes = 0;
let steps: Steps | null = null;
let collect: ((options?: { readonly type: 'minor' }) => void) | null = null;

/** This thread holds, or has held, shared bytes that it did not count before. */
export function sawShared(bytes: number): void {
  seenBytes += bytes;
  if (bytes >= largeBytes) seenLargeBytes += bytes;
  if (seenBytes < bounds.passing) return;
  seenBytes = 0;
  const hasLarge = seenLargeBytes >= bounds.passing;
  collectSoon(bounds.isSmallHeap || hasLarge || ++collections % collectionsPerFullOne === 0);
}

/** Notes that shared bytes which this thread has just seen are kept: they are no garbage before `letGo` is told of them. */
export function keptShared(bytes: number): void {
  seenBytes = Math.max(0, seenBytes - bytes);
}

/**
 * This thread looks at shared bytes that others hold, and lets them go at once. They are counted apart: most of what holds them here is
 * young, and a collection of young objects takes a tenth of the time of a whole one.
 */
export function sawSharedBriefly(bytes: number): void {
  brieflySeenBytes += bytes;
  if (brieflySeenBytes < bounds.briefly) return;
  brieflySeenBytes = 0;
  collectSoon(++collections % briefCollectionsPerFullOne === 0);
}

/**
 * This thread has shared bytes that nobody keeps, its own or another thread's, but which wait for a while: some of what holds them may have grown
 * old, so the whole heap is looked through more often than for those that are only seen.
 */
export function usedBriefly(bytes: number): void {
  brieflyUsedBytes += bytes;
  if (brieflyUsedBytes < bounds.briefly) return;
  brieflyUsedBytes = 0;
  collectSoon(++collections % collectionsPerFullOne === 0);
}

/** Bytes that this thread held for long, blocks or an actor put away, are garbage now. */
export function letGo(bytes: number): void {
  heldBytes += bytes;
  if (heldBytes >= bounds.held) collectSoon(true);
}

/** After this turn, in which whoever brought the bytes still holds them. */
function collectSoon(all: boolean): void {
  if (all) heldBytes = seenLargeBytes = 0;
  void yieldTurn().then(() => {
    if (all && !bounds.isSmallHeap) collectBySteps();
    else collectNow(all ? undefined : { type: 'minor' });
  });
}

function collectNow(options?: { readonly type: 'minor' }): void {
  collect ??= collector();
  collect(options);
}

/** More than what V8 lets grow outside of its heap before it begins to collect, which is 64 MB. */
const pressureBytes = 96 * mebibyte;

/** How often a collection in steps is told to hurry before a halt ends it. Garbage is three times `bounds.held` then, 384 MB where a process may hold 1 GB. */
const hurriesMax = 1;

/**
 * Has V8 look through all of the heap beside the thread's work, in steps: a heap of 180 MB that is collected at once stands still for a
 * second where the cores are busy, and for 50 ms so. There is no call for it, but V8 begins when it is told of much new memory
 * outside, a buffer that nobody touches, so that it takes none; told again meanwhile, it takes one long step, of 5 to 10 ms.
 */
function collectBySteps(): void {
  steps ??= watchSteps();
  if (!steps.underWay) steps.hurries = 0;
  // Garbage comes faster than the steps go: better a halt than memory without bound.
  else if (steps.hurries++ >= hurriesMax) return collectNow();
  steps.underWay = true;
  Buffer.allocUnsafeSlow(pressureBytes);
}

interface Steps {
  /** Whether a collection was begun and is not known to have ended. */
  underWay: boolean;
  /** How often it was told to hurry since it began. */
  hurries: number;
}

function watchSteps(): Steps {
  const watched: Steps = { underWay: false, hurries: 0 };
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as unknown as { readonly detail: { readonly kind: number } };
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) watched.underWay = false;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return watched;
}

/** Has `saw` count the shared bytes that a message to or from another thread holds somewhere near its top. */
export function sawSharedIn(message: unknown, saw = sawShared, depth = 3): void {
  if (ArrayBuffer.isView(message)) {
    if (message.buffer instanceof SharedArrayBuffer) saw(message.byteLength);
  } else if (depth > 0 && typeof message === 'object' && message !== null) {
    for (const part of Object.values(message)) sawSharedIn(part, saw, depth - 1);
  }
}

function collector(): (options?: { readonly type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as ReturnType<typeof collector>;
}
