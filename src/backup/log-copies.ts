import type { SealedLog } from '../../protocol/stored-log.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ListedObject, ObjectStore } from '../object-store/object-store.ts';
import { logSlotOfKey, paths } from '../object-store/paths.ts';
import { isImport } from '../stored/import-mark.ts';
import { readFloor } from '../stored/log-floor.ts';
import { decodeLogObject, type LogRecord } from '../stored/log-object.ts';
import type { ObjectCopies } from './copy-objects.ts';
import { meaningOf } from './named-by-log.ts';

/** What was read no longer fits together, because the servers went on too far meanwhile: the attempt is begun anew. */
export class Overtaken extends Error {
  override name = 'Overtaken';
}

/** A log as an attempt has copied it. */
interface CopiedLog {
  readonly logId: string;
  /** Whether all of its records were in manifests before the first manifest was read. */
  readonly isDone: boolean;
  /** All slots above the floor at the beginning, up to this one, are copied. */
  through: number;
}

/**
 * Copies the logs of an attempt, a round after the other, faster than their servers collect them.
 *
 * A manifest that is read after `begin` has all records up to the floor that was copied there. So the copied manifests and every
 * slot above that floor are the whole state at the last slot copied, if none of these slots and of their blobs was collected
 * before it was copied: a log that was collected beyond what is copied throws `Overtaken`. So does `end` where the rows of an
 * import are gone and its namespace is still there at the last slot.
 */
export class LogCopies {
  readonly #store: ObjectStore;
  readonly #copies: ObjectCopies;
  readonly #logs: readonly CopiedLog[];
  /** Namespaces, with their tenants, of imports whose rows were gone. */
  readonly #without = new Map<string, number>();
  readonly #deletedNamespaces = new Set<string>();
  readonly #deletedTenants = new Set<number>();
  /** Whether records are of a time after the first manifest was read: what they name can't be gone but with its namespace. */
  #isAfterBegin = false;

  private constructor(store: ObjectStore, copies: ObjectCopies, logs: readonly CopiedLog[]) {
    this.#store = store;
    this.#copies = copies;
    this.#logs = logs;
  }

  /** Begins to copy the logs; call it before any manifest is read. `members` are open logs, `removed` sealed ones that the view still names. */
  static async begin(
    store: ObjectStore,
    copies: ObjectCopies,
    view: { readonly members: readonly { readonly logId: string }[]; readonly removed: readonly SealedLog[] },
  ): Promise<LogCopies> {
    const logs: CopiedLog[] = [];
    for (const { logId } of [...view.members, ...view.removed]) {
      const isDone = (await copies.copyPresent(paths.logDone(logId))) === 'copied';
      // Raised between the two, it says that less is needed of the log than is copied.
      const through = await readFloor(store, logId);
      await copies.copyPresent(paths.logFloor(logId));
      logs.push({ logId, isDone, through });
    }
    const begun = new LogCopies(store, copies, logs);
    await begun.round();
    begun.#isAfterBegin = true;
    return begun;
  }

  /** Copies what has come since the last round. Throws `Overtaken`. */
  async round(): Promise<void> {
    for (const log of this.#logs) await (log.isDone ? this.#copySeal(log) : this.#copyNext(log));
  }

  /** After the last round. Throws `Overtaken`. */
  end(): void {
    for (const [namespaceId, tenantId] of this.#without) {
      if (this.#deletedNamespaces.has(namespaceId) || this.#deletedTenants.has(tenantId)) continue;
      throw new Overtaken();
    }
  }

  async #copyNext(log: CopiedLog): Promise<void> {
    const { logId, through } = log;
    const listed = await this.#listed(logId, through);
    // Asked after the listing: what it shows of slots above the floor is all there was.
    const isDone = (await this.#store.get(paths.logDone(logId))) !== null;
    if (isDone || (await readFloor(this.#store, logId)) > through) throw new Overtaken();
    for (const blob of listed.blobs)
      if ((await this.#copies.copyImmutable(blob)) === 'gone') throw new Overtaken();
    for (const [at, { key }] of listed.slots.entries()) {
      if (logSlotOfKey(key) !== through + at + 1) throw new Overtaken();
      const bytes = await this.#copies.copyNew(key);
      if (bytes === null) throw new Overtaken();
      for (const record of decodeLogObject(bytes, key).records) await this.#copyNamed(record, logId, key);
      log.through = through + at + 1;
    }
  }

  async #copyNamed({ head, payload }: LogRecord, logId: string, place: string): Promise<void> {
    // A write names nothing beside its blob, which is copied already.
    if (head.namespaceId !== '' && !isImport(head.detail)) return;
    const bytes = head.blob === null ? payload : await this.#blob(logId, head.blob.id);
    const meaning = meaningOf(head, bytes, place);
    if (meaning?.kind === 'namespace-deleted') this.#deletedNamespaces.add(meaning.namespaceId);
    else if (meaning?.kind === 'tenant-deleted') this.#deletedTenants.add(meaning.tenantId);
    else if (meaning?.kind === 'import' && this.#isAfterBegin) {
      if ((await this.#copies.copyImmutable(meaning)) === 'gone')
        this.#without.set(meaning.namespaceId, head.tenantId);
    }
  }

  async #blob(logId: string, blobId: string): Promise<Uint8Array> {
    const found = await this.#store.get(paths.logBlob(logId, blobId));
    if (found === null) throw new Overtaken();
    return found.bytes;
  }

  /** A log whose records are all in manifests keeps nothing but its seal. */
  async #copySeal({ logId }: CopiedLog): Promise<void> {
    const { slots } = await this.#listed(logId, 0);
    const seal = slots.at(-1);
    if (seal !== undefined) await this.#copies.copyPresent(seal.key);
  }

  async #listed(
    logId: string,
    through: number,
  ): Promise<{ readonly slots: ListedObject[]; readonly blobs: ListedObject[] }> {
    const slots: ListedObject[] = [];
    const blobs: ListedObject[] = [];
    for await (const object of listAll(this.#store, paths.logFolder(logId))) {
      const slot = logSlotOfKey(object.key);
      if (slot !== null && slot > through) slots.push(object);
      else if (object.key.startsWith(paths.logBlobs(logId))) blobs.push(object);
    }
    return { slots, blobs };
  }
}
