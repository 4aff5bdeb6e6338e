import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';

const format = {
  magic: 'TBLF',
  versions: [formats.logFloor.version],
  check: storedCheck(z.strictObject({ floor: z.int().min(0) })),
} as const;

/**
 * The floor of a log: everything at or under it is in manifests, so replay begins above it. One small object,
 * written by the log's own process alone, after the manifests that it speaks of are durable.
 */
export async function readFloor(store: Pick<ObjectStore, 'get'>, logId: string): Promise<number> {
  return (await readIntact(store, paths.logFloor(logId), ({ bytes }) => decodeFloor(bytes, logId))) ?? 0;
}

/** Raises the floor. Never lowers it: a floor already as high stays. */
export async function writeFloor(store: ObjectStore, logId: string, floor: number): Promise<void> {
  const key = paths.logFloor(logId);
  const bytes = [encodeRecord(format, { floor }, key)];
  const found = await store.get(key);
  if (found === null) {
    await store.putIfAbsent(key, bytes);
    return;
  }
  if (decodeFloor(found.bytes, logId) < floor) await store.putIfMatch(key, bytes, found.etag);
}

/** Checked like every durable object: a floor that reads too high would lose what lies under it. */
export function decodeFloor(bytes: Uint8Array, logId: string): number {
  return decodeRecord(bytes, paths.logFloor(logId), format).floor;
}
