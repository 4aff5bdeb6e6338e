import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';

/**
 * The floor of a log: everything at or under it is in manifests, so replay begins above it. One small object,
 * written by the log's own process alone, after the manifests that it speaks of are durable.
 */
export async function readFloor(store: ObjectStore, logId: string): Promise<number> {
  const found = await store.get(paths.logFloor(logId));
  if (found === null) return 0;
  const { floor } = unpackMessage(found.bytes) as { floor: number };
  return floor;
}

/** Raises the floor. Never lowers it: a floor already as high stays. */
export async function writeFloor(store: ObjectStore, logId: string, floor: number): Promise<void> {
  const key = paths.logFloor(logId);
  const bytes = [packMessage({ floor })];
  const found = await store.get(key);
  if (found === null) {
    await store.putIfAbsent(key, bytes);
    return;
  }
  if ((unpackMessage(found.bytes) as { floor: number }).floor < floor) await store.putIfMatch(key, bytes, found.etag);
}
