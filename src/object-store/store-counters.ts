/**
 * The calls of the object store that every thread of a process makes, by kind of key, in memory that all threads share:
 * whoever reports them needs to ask nobody, and a thread that died has lost none. Counted when they begin, failures when they end.
 */
import {
  type CountedOperation,
  keyKind,
  type OnStoreCall,
  type OnStoreFailure,
  type OnStreamedBytes,
} from './counting-object-store.ts';

export type SharedCounters = SharedArrayBuffer;

/** What `keyKind` answers; anything else counts as `other`. */
const kinds: readonly string[] = [
  'log',
  'log/blob',
  'log/floor',
  'log/done',
  'ns/manifest',
  'ns/segment',
  'ns/deletes',
  'tenant/manifest',
  'tenant/segment',
  'cluster/view',
  'cluster/lease',
  'cluster/swept',
  'account/person',
  'account/email',
  'account/key',
  'probe',
  'other',
];
const operations: readonly CountedOperation[] = ['get', 'put', 'delete', 'list'];
const putBytesCell = operations.length;
const failuresCell = putBytesCell + 1;
/** Cells of one kind of object: one for each operation, one for the bytes of puts, one for failures. */
const cellsOfKind = failuresCell + 1;
const cellBytes = 8;

export interface KindOfCalls {
  readonly kind: string;
  readonly gets: number;
  readonly puts: number;
  readonly deletes: number;
  readonly lists: number;
  /** Bytes that puts carried, whether they were stored or not. */
  readonly putBytes: number;
  /** Calls that ended with a StoreError; whoever called may have called again. */
  readonly failures: number;
}

export function createSharedCounters(): SharedCounters {
  return new SharedArrayBuffer(kinds.length * cellsOfKind * cellBytes);
}

/** For a CountingObjectStore of any thread. */
export function countInto(counters: SharedCounters): OnStoreCall {
  const cells = new BigInt64Array(counters);
  return (operation, key, bytes) => {
    const first = firstCellOf(key);
    Atomics.add(cells, first + operations.indexOf(operation), 1n);
    if (bytes > 0) Atomics.add(cells, first + putBytesCell, BigInt(bytes));
  };
}

/** As `countInto`, for the bytes of streams: they are known as they go by. */
export function countStreamedInto(counters: SharedCounters): OnStreamedBytes {
  const cells = new BigInt64Array(counters);
  return (key, bytes) => {
    Atomics.add(cells, firstCellOf(key) + putBytesCell, BigInt(bytes));
  };
}

/** As `countInto`, for calls that fail. */
export function countFailuresInto(counters: SharedCounters): OnStoreFailure {
  const cells = new BigInt64Array(counters);
  return (key) => {
    Atomics.add(cells, firstCellOf(key) + failuresCell, 1n);
  };
}

function firstCellOf(key: string): number {
  return placeOf(keyKind(key)) * cellsOfKind;
}

function placeOf(kind: string): number {
  const place = kinds.indexOf(kind);
  return place < 0 ? kinds.indexOf('other') : place;
}

/** Every kind, in a fixed order. */
export function readCounters(counters: SharedCounters): KindOfCalls[] {
  const cells = new BigInt64Array(counters);
  return kinds.map((kind, place) => {
    const cell = (index: number) => Number(Atomics.load(cells, place * cellsOfKind + index));
    const calls = { gets: cell(0), puts: cell(1), deletes: cell(2), lists: cell(3) };
    return { kind, ...calls, putBytes: cell(putBytesCell), failures: cell(failuresCell) };
  });
}
