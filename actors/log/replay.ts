import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import { xxh64 } from '../../src/base/hash.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
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
 * names its predecessor. A missing slot or a broken chain is damage: stop, never skip. A seal is the end, whatever
 * slot was thought to be.
 */
export async function* replayLog(
  store: ObjectStore,
  range: { readonly logId: string; readonly after: number; readonly through: number },
): AsyncGenerator<ReplayedRecord> {
  const { logId, after, through } = range;
  const ahead: Promise<LogObject>[] = [];
  let asked = after;
  const ask = () => {
    asked++;
    const reading = readSlot(store, logId, asked);
    // Settled later, in order; an early failure must not count as unhandled meanwhile.
    reading.catch(() => {});
    ahead.push(reading);
  };
  let previous: LogObject | null = null;
  for (let seq = after + 1; seq <= through; seq++) {
    while (asked < through && ahead.length < limits.replayReadsInFlight) ask();
    const reading = ahead.shift();
    if (reading === undefined) break;
    const object = await reading;
    if (object.kind === 'seal') return;
    checkChain(previous, object, { logId, seq });
    previous = object;
    for (const [index, record] of object.records.entries()) {
      const payload = record.head.blob === null ? record.payload : await readBlob(store, logId, record.head);
      yield { position: { logId, seq, index }, head: record.head, payload };
    }
  }
}

async function readSlot(store: ObjectStore, logId: string, seq: number): Promise<LogObject> {
  const key = paths.logObject(logId, seq);
  const found = await store.get(key);
  if (found === null)
    throw new DataError(key, 0, 'the slot is missing between the floor and the end of its log');
  return decodeLogObject(found.bytes, key);
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

async function readBlob(store: ObjectStore, logId: string, head: RecordHead): Promise<Uint8Array> {
  if (head.blob === null) return new Uint8Array();
  const key = paths.logBlob(logId, head.blob.id);
  const found = await store.get(key);
  if (found === null) throw new DataError(key, 0, 'a record names this blob and it is missing');
  if (found.size !== head.blob.length || xxh64(found.bytes) !== head.blob.checksum) {
    throw new DataError(key, 0, 'the checksum does not match');
  }
  return found.bytes;
}
