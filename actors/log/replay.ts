import { DataError } from '../../src/base/assert.ts';
import { xxh64 } from '../../src/base/hash.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';
import { readFloor } from '../../src/stored/log-floor.ts';
import { encodeHead, headFromWire, type LogObject, type RecordHead } from '../../src/stored/log-object.ts';
import { readSlots, type SlotRange } from './read-slots.ts';

/** A place in a log: a slot and the record within it. Everything up to a watermark is contained in a manifest. */
export interface LogPosition {
  readonly logId: string;
  readonly slot: number;
  readonly index: number;
}

export interface ReplayedRecord {
  readonly position: LogPosition;
  readonly head: RecordHead;
  readonly payload: Uint8Array;
  /** Why its payload can't be had: only its target suffers, which must not be opened without it. */
  readonly damage?: DataError;
}

/**
 * Reads the slots above `after` up to and including `through`, in order, several at a time, and checks that each one
 * names its predecessor.
 *
 * A slot that is missing, or holds a seal, may have been collected while it was read: a paused writer of this log raises
 * its floor whenever it wakes up, and a late seal lands in whatever is empty. So the floor is read again, and what lies
 * under it is in manifests. Otherwise a seal is the end, and a missing slot or a broken chain is damage: stop, never
 * skip, since nobody knows whose records it held. A damaged blob is known to be its record's, so the replay goes on.
 *
 * `packStore` is the same store for packs, each of which is asked for once: where `store` tries again and again, slots are read meanwhile.
 */
export async function* replayLog(
  store: Pick<ObjectStore, 'get'>,
  range: SlotRange,
  packStore = store,
): AsyncGenerator<ReplayedRecord> {
  const { logId, through } = range;
  let after = range.after;
  let previous: LogObject | null = null;
  for await (const { slot, reading } of readSlots(store, range, packStore)) {
    // Collected meanwhile, and whatever is found there now is nobody's.
    if (slot <= after) {
      previous = null;
      continue;
    }
    const object = await reading;
    if (object === null || object.kind === 'seal') {
      after = await collectedThrough(store, { logId, slot, through });
      if (after < slot && object !== null) return;
      const where = `between ${paths.logFloor(logId)} and the end of its log`;
      if (after < slot) throw missing(paths.logObject(logId, slot), where);
      previous = null;
      continue;
    }
    checkChain(previous, object, { logId, slot });
    previous = object;
    for (const [index, record] of object.records.entries()) {
      const found = { position: { logId, slot, index }, ...record };
      const { blob } = record.head;
      const whole = blob === null ? found : await withBlob(store, found, blob);
      if (whole === null) {
        after = await collectedThrough(store, { logId, slot, through });
        if (after >= slot) break;
      }
      yield whole ?? {
        ...found,
        damage: missing(paths.logBlob(logId, blob?.id ?? ''), 'and a record names it'),
      };
    }
  }
}

/** How far the log's records are in manifests, as far as is known now: all of them where the log is done. */
async function collectedThrough(
  store: Pick<ObjectStore, 'get'>,
  at: { readonly logId: string; readonly slot: number; readonly through: number },
): Promise<number> {
  const floor = await readFloor(store, at.logId);
  if (floor >= at.slot) return floor;
  return (await store.get(paths.logDone(at.logId))) === null ? floor : at.through;
}

function missing(key: string, where: string): DataError {
  return new DataError(key, 0, `it is missing, ${where}`);
}

function checkChain(
  previous: LogObject | null,
  object: LogObject,
  at: { logId: string; slot: number },
): void {
  const key = paths.logObject(at.logId, at.slot);
  if (object.logId !== at.logId || object.slot !== at.slot) {
    throw new DataError(key, 8, `the object says that it is ${object.logId}/${object.slot}`);
  }
  if (previous !== null && object.previousChecksum !== previous.checksum) {
    throw new DataError(key, 24, 'it does not follow the object before it');
  }
}

/** Reads the payload from its blob; null where the blob is missing. */
export async function withBlob(
  store: Pick<ObjectStore, 'get'>,
  record: ReplayedRecord,
  blob: NonNullable<RecordHead['blob']>,
): Promise<ReplayedRecord | null> {
  const key = paths.logBlob(record.position.logId, blob.id);
  try {
    return await readIntact(store, key, ({ bytes, size }) => {
      if (size !== blob.length) throw new DataError(key, size, `it should have ${blob.length} bytes`);
      if (xxh64(bytes) !== blob.checksum) throw new DataError(key, 0, 'the checksum does not match');
      return { ...record, payload: bytes };
    });
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return { ...record, damage: error };
  }
}

/** A record as the log thread sends it to an actor thread, the payload apart. */
export function replayedToWire({ head, position, damage }: ReplayedRecord): readonly unknown[] {
  const { logId, slot, index } = position;
  const found = damage === undefined ? null : [damage.place, damage.offset, damage.reason];
  return [encodeHead(head), logId, slot, index, found];
}

/** The inverse of `replayedToWire`. */
export function replayedFromWire(wire: readonly unknown[], payload: Uint8Array): ReplayedRecord {
  const [head, logId, slot, index, damage] = wire as [
    unknown,
    string,
    number,
    number,
    [string, number, string] | null,
  ];
  const record = { head: headFromWire(head), position: { logId, slot, index }, payload };
  return damage === null ? record : { ...record, damage: new DataError(...damage) };
}
