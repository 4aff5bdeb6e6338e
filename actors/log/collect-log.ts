/**
 * Which objects of logs nobody needs any more.
 *
 * 1. Everything under `log/` is listed, and only then is the view read: a log that was listed was in the view before it
 *    had an object, so one that the view does not name has been taken over completely.
 * 2. Of the own log, slots and packs at or under the floor go, and blobs that no record in use names.
 * 3. Of a sealed log that is done, every group, pack and blob goes. Its seal stays for ever: a paused writer of that log meets
 *    it whenever it wakes up. So does its floor, which tells a late sealer where the log cannot end.
 *
 * A delayed duplicate of a PUT may land after its slot was emptied. Nobody reads it, and the next round finds it.
 */
import { listAll } from '../../src/object-store/list-all.ts';
import type { ListedObject, ObjectStore } from '../../src/object-store/object-store.ts';
import { lastSlotOfPackKey, logSlotOfKey, paths } from '../../src/object-store/paths.ts';
import { emptyLogObjectBytes } from '../../src/stored/log-object.ts';

export interface ListedLog {
  readonly logId: string;
  readonly slots: { readonly slot: number; readonly size: number }[];
  readonly blobIds: string[];
  /** Packs, by their last slots. */
  readonly packs: number[];
  isDone: boolean;
}

export type LogStanding =
  | { readonly kind: 'own'; readonly floor: number; readonly blobsInUse: ReadonlySet<string> }
  /** Some of its records are in no manifest yet. */
  | { readonly kind: 'needed' }
  | { readonly kind: 'done' }
  /** Done, and the view has forgotten it. */
  | { readonly kind: 'gone' };

/** The keys to delete. Pure. */
export function planLogCollection(log: ListedLog, standing: LogStanding): string[] {
  const { logId } = log;
  if (standing.kind === 'needed') return [];
  const isNeeded = (slot: number) => standing.kind === 'own' && slot > standing.floor;
  const slots = log.slots
    // A seal or a barrier has no records; whatever has some is a group.
    .filter(({ slot, size }) => size > emptyLogObjectBytes && !isNeeded(slot))
    .map(({ slot }) => paths.logObject(logId, slot));
  const blobs = log.blobIds
    .filter((id) => standing.kind !== 'own' || !standing.blobsInUse.has(id))
    .map((id) => paths.logBlob(logId, id));
  const packs = log.packs.filter((slot) => !isNeeded(slot)).map((slot) => paths.logPack(logId, slot));
  const marker = standing.kind === 'gone' && log.isDone ? [paths.logDone(logId)] : [];
  // The marker goes last: without it a log that is still in the view would have to be replayed.
  return [...slots, ...packs, ...blobs, ...marker];
}

/** Lists all objects under `prefix`, which is `log/` or within it, by their log. */
export async function listLogs(
  store: ObjectStore,
  prefix: string = paths.logs,
): Promise<Map<string, ListedLog>> {
  const logs = new Map<string, ListedLog>();
  for await (const object of listAll(store, prefix)) addListed(logs, object);
  return logs;
}

function addListed(logs: Map<string, ListedLog>, { key, size }: ListedObject): void {
  const [, logId, name, blobId] = key.split('/');
  if (logId === undefined || name === undefined) return;
  const log = logs.get(logId) ?? { logId, slots: [], blobIds: [], packs: [], isDone: false };
  logs.set(logId, log);
  const slot = logSlotOfKey(key);
  const lastPacked = lastSlotOfPackKey(key);
  if (slot !== null) log.slots.push({ slot, size });
  else if (lastPacked !== null) log.packs.push(lastPacked);
  else if (name === 'blob' && blobId !== undefined) log.blobIds.push(blobId);
  else if (name === 'done') log.isDone = true;
}
