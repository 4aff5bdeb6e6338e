import { decodeTenantEvent } from '../../actors/tenant/tenant-state.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeLogObject, type LogRecord } from '../../src/stored/log-object.ts';
import type { Place } from './clients.ts';
import type { StoredObjects } from './stored-objects.ts';

/**
 * In which order the records of writes came to the store. The judge tries that order first, which makes it fast where all
 * is well. And it holds the log to its word: what is acknowledged has a record by then, what has none is never seen.
 */
export class StoredRecords {
  readonly #objects: StoredObjects;
  readonly #ranks = new Map<string, number>();
  /** Ends of names that were asked for and have not been seen in a log: log and place → tokens. */
  readonly #drops = new Map<string, string[]>();
  #next = 0;

  constructor(objects: StoredObjects) {
    this.#objects = objects;
  }

  /** `logId`: empty where it may be any. */
  askedToDrop(logId: string, { tenantId, namespace }: Place, token: string): void {
    const key = `${logId}/${tenantId}/${namespace}`;
    this.#drops.set(key, [...(this.#drops.get(key) ?? []), token]);
  }

  /** Infinite where no record of it was seen. */
  rankOf(token: string): number {
    return this.#ranks.get(token) ?? Number.POSITIVE_INFINITY;
  }

  stored(key: string): void {
    if (!/^log\/\w+\/[0-9]{20}$/.test(key)) return;
    const bytes = this.#objects.find(key)?.bytes ?? new Uint8Array();
    const object = decodeLogObject(bytes, key);
    for (const record of object.records) this.#take(object.logId, record);
  }

  #take(logId: string, { head, payload }: LogRecord): void {
    const blobKey = head.blob === null ? null : paths.logBlob(logId, head.blob.id);
    const bytes = blobKey === null ? payload : (this.#objects.find(blobKey)?.bytes ?? new Uint8Array());
    const rank = this.#next++;
    if (head.namespace === '') {
      const event = decodeTenantEvent(bytes, `a record of ${logId}`);
      if (event.kind !== 'namespace-deleted') return;
      const place = `${head.tenantId}/${event.name}`;
      const token = (this.#drops.get(`${logId}/${place}`) ?? this.#drops.get(`/${place}`))?.shift();
      if (token !== undefined) this.#ranks.set(token, rank);
      return;
    }
    // A patch holds older tokens too: those have their rank.
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    for (const [token] of text.matchAll(/c\d+\.\d+(?!\d)/g)) {
      if (!this.#ranks.has(token)) this.#ranks.set(token, rank);
    }
  }
}
