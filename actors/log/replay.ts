import { limits } from '../../protocol/limits.ts';
import { DataError, must } from '../../src/base/assert.ts';
import { xxh64 } from '../../src/base/hash.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readFloor } from './floor.ts';
import { decodeLogObject, type LogObject, type RecordHead } from './log-object.ts';

/** A place in a log: a slot and the record within it. Everything up to a watermark is contained in a manifest. */
export interface LogPosition {
  readonly logId: string;
  readonly seq: number;
  readonly index: number;
}

export interface ReplayedRecord {
  readonly position: LogPosition;
  readonly head: RecordHead;
  readonly payload: Uint8Array;
}

/**
 * Reads the slots above `after` up to and including `through`, in order, several at a time, and checks that each one
 * names its predecessor.
 *
 * A slot that is missing, or holds a seal, may have been collected while it was read: a paused writer of this log raises
 * its floor whenever it wakes up, and a late seal lands in whatever is empty. So the floor is read again, and what lies
 * under it is in manifests. Otherwise a seal is the end, and a missing slot or a broken chain is damage: stop, never skip.
 */
export async function* replayLog(
  store: Pick<ObjectStore, 'get'>,
  range: { readonly logId: string; readonly after: number; readonly through: number },
): AsyncGenerator<ReplayedRecord> {
  const { logId, through } = range;
  const nextSlot = readAhead(store, range);
  let after = range.after;
  let previous: LogObject | null = null;
  for (let seq = after + 1; seq <= through; seq++) {
    const reading = nextSlot();
    // Collected meanwhile, and whatever is found there now is nobody's.
    if (seq <= after) continue;
    const object = await reading;
    if (object === null || object.kind === 'seal') {
      after = await collectedThrough(store, { logId, seq, through });
      if (after < seq && object !== null) return;
      if (after < seq) throw missing(paths.logObject(logId, seq), 'between the floor and the end of its log');
      previous = null;
      continue;
    }
    checkChain(previous, object, { logId, seq });
    previous = object;
    for (const [index, record] of object.records.entries()) {
      const payload = record.head.blob === null ? record.payload : await readBlob(store, logId, record.head);
      if (payload === null) {
        after = await collectedThrough(store, { logId, seq, through });
        if (after < seq)
          throw missing(paths.logBlob(logId, record.head.blob?.id ?? ''), 'and a record names it');
        break;
      }
      yield { position: { logId, seq, index }, head: record.head, payload };
    }
  }
}

/** Each call answers the next slot; some further ones are being read already. */
function readAhead(
  store: Pick<ObjectStore, 'get'>,
  range: { readonly logId: string; readonly after: number; readonly through: number },
): () => Promise<LogObject | null> {
  const ahead: Promise<LogObject | null>[] = [];
  let asked = range.after;
  return () => {
    while (asked < range.through && ahead.length < limits.replayReadsInFlight) {
      const reading = readSlot(store, range.logId, ++asked);
      // Settled later, in order; an early failure must not count as unhandled meanwhile.
      reading.catch(() => {});
      ahead.push(reading);
    }
    return must(ahead.shift(), 'a slot that is being read');
  };
}

async function readSlot(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  seq: number,
): Promise<LogObject | null> {
  const key = paths.logObject(logId, seq);
  const found = await store.get(key);
  return found === null ? null : decodeLogObject(found.bytes, key);
}

/** How far the log's records are in manifests, as far as is known now: all of them where the log is done. */
async function collectedThrough(
  store: Pick<ObjectStore, 'get'>,
  at: { readonly logId: string; readonly seq: number; readonly through: number },
): Promise<number> {
  const floor = await readFloor(store, at.logId);
  if (floor >= at.seq) return floor;
  return (await store.get(paths.logDone(at.logId))) === null ? floor : at.through;
}

function missing(key: string, where: string): DataError {
  return new DataError(key, 0, `it is missing, ${where}`);
}

function checkChain(previous: LogObject | null, object: LogObject, at: { logId: string; seq: number }): void {
  const key = paths.logObject(at.logId, at.seq);
  if (object.logId !== at.logId || object.seq !== at.seq) {
    throw new DataError(key, 8, `the object says that it is ${object.logId}/${object.seq}`);
  }
  if (previous !== null && object.previousChecksum !== previous.checksum) {
    throw new DataError(key, 24, 'it does not follow the object before it');
  }
}

/** Null where it is missing. */
async function readBlob(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  head: RecordHead,
): Promise<Uint8Array | null> {
  if (head.blob === null) return null;
  const key = paths.logBlob(logId, head.blob.id);
  const found = await store.get(key);
  if (found === null) return null;
  if (found.size !== head.blob.length || xxh64(found.bytes) !== head.blob.checksum) {
    throw new DataError(key, 0, 'the checksum does not match');
  }
  return found.bytes;
}
