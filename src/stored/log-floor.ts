/**
 * The floor of a log: everything at or under `floor` is in manifests, so replay begins above it. `placement` is that of the
 * header in this slot, whose object may be collected: whoever waits for the log's barrier finds it here. One small object,
 * written by the log's own process alone, after the manifests that it speaks of are durable.
 */
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

const floorSchema = z.strictObject({ floor: z.int().min(0), placement: z.int().min(0) });
export type LogFloor = Readonly<z.output<typeof floorSchema>>;

/** Version 2 knew no placement: its logs had one writer after the other, and nobody waited for a barrier. */
const checkSecond = storedCheck(floorSchema.omit({ placement: true }));
const checkNow = storedCheck(floorSchema);

const format = {
  magic: 'TBLF',
  versions: [formats.logFloor.version, 2],
  check: (value: unknown, version: number): LogFloor =>
    version === 2 ? { ...checkSecond(value), placement: 0 } : checkNow(value),
} as const;

const noFloor: LogFloor = { floor: 0, placement: 0 };

export async function readFloor(store: Pick<ObjectStore, 'get'>, logId: string): Promise<number> {
  return (await readFloorAndPlacement(store, logId)).floor;
}

export async function readFloorAndPlacement(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
): Promise<LogFloor> {
  const key = paths.logFloor(logId);
  return (await readIntact(store, key, ({ bytes }) => decodeFloor(bytes, logId))) ?? noFloor;
}

/** Who is refused looks again: mostly once, where an earlier write of the same process arrived late. */
const triesMax = 10;

/** Raises the floor. Never lowers it: a floor already as high stays. Resolves only once the stored one is as high. */
export async function writeFloor(store: ObjectStore, logId: string, raised: LogFloor): Promise<void> {
  const key = paths.logFloor(logId);
  const bytes = [encodeRecord(format, raised, key)];
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await store.get(key);
    if (found !== null && decodeFloor(found.bytes, logId).floor >= raised.floor) return;
    const put =
      found === null ? await store.putIfAbsent(key, bytes) : await store.putIfMatch(key, bytes, found.etag);
    if (put.kind === 'stored') return;
  }
  throw new Error(`${key} was not raised to ${raised.floor}: it kept changing`);
}

/** Checked like every durable object: a floor that reads too high would lose what lies under it. */
export function decodeFloor(bytes: Uint8Array, logId: string): LogFloor {
  return decodeRecord(bytes, paths.logFloor(logId), format);
}
