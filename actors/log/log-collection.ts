import { deleteAll } from '../../src/object-store/delete-all.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ListedLog, type LogStanding, listLogs, planLogCollection } from './collect-log.ts';
import { lastOfPack } from './log-packs.ts';

/** The log of this process, as it stands. */
interface OwnLog {
  readonly logId: string;
  readonly floor: number;
  readonly blobsOnTheWay: ReadonlySet<string>;
}

/**
 * Deletes what collect-log.ts finds: the own log's slots as the floor passes them, by number, and now and then
 * whatever a listing of all logs shows beside.
 */
export class LogCollection {
  readonly #store: ObjectStore;
  #collectedThrough = 0;
  /** Blobs of the own log's records, oldest first. */
  #blobs: { readonly id: string; readonly slot: number }[] = [];
  #listed: ReadonlyMap<string, ListedLog> = new Map();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** A record in the slot names the blob. */
  blobStored(id: string, slot: number): void {
    this.#blobs.push({ id, slot });
  }

  /** Slots and blobs that the durable floor has passed. Rejects with StoreError; then the next call tries again. */
  async collectOwn(logId: string, floor: number): Promise<void> {
    const slots: string[] = [];
    for (let slot = this.#collectedThrough + 1; slot <= floor; slot++) {
      slots.push(paths.logObject(logId, slot));
      if (slot === lastOfPack(slot)) slots.push(paths.logPack(logId, slot));
    }
    const passed = this.#blobs.filter(({ slot }) => slot <= floor);
    await deleteAll(this.#store, [...passed.map(({ id }) => paths.logBlob(logId, id)), ...slots]);
    this.#collectedThrough = floor;
    this.#blobs = this.#blobs.filter(({ slot }) => slot > floor);
  }

  /** `prefix`: that of all logs, or of one. */
  async list(prefix: string): Promise<void> {
    this.#listed = await listLogs(this.#store, prefix);
  }

  /**
   * Deletes what was listed and nobody needs. `needed` logs stay whole; the others are done, those of `inView` only where their
   * marker says so.
   */
  async collectListed(own: OwnLog, needed: ReadonlySet<string>, inView: ReadonlySet<string>): Promise<void> {
    const listed = this.#listed;
    this.#listed = new Map();
    for (const log of listed.values()) {
      await deleteAll(this.#store, planLogCollection(log, this.#standing(log, { own, needed, inView })));
    }
  }

  #standing(
    log: ListedLog,
    known: {
      readonly own: OwnLog;
      readonly needed: ReadonlySet<string>;
      readonly inView: ReadonlySet<string>;
    },
  ): LogStanding {
    const { own, needed, inView } = known;
    if (log.logId === own.logId) {
      const blobsInUse = new Set([...own.blobsOnTheWay, ...this.#blobs.map(({ id }) => id)]);
      return { kind: 'own', floor: own.floor, blobsInUse };
    }
    if (needed.has(log.logId)) return { kind: 'needed' };
    if (!inView.has(log.logId)) return { kind: 'gone' };
    return log.isDone ? { kind: 'done' } : { kind: 'needed' };
  }
}
