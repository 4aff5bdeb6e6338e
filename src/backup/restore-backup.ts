import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { sideBySide } from '../base/side-by-side.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { putOnce, streamOnce } from '../object-store/put-once.ts';
import type { BackupEntry } from './backup-format.ts';
import { type BackupSite, type FoundBackup, pieceBytes } from './backup-site.ts';
import type { CopyProgress } from './copy-objects.ts';

/** The backup can't be restored, or not there. The message is for a person. */
export class CannotRestore extends Error {
  override name = 'CannotRestore';
}

export interface RestoreComponents {
  readonly site: BackupSite;
  readonly clock: Clock;
  /** Called now and then with how far it is; `all` is what the backup has. */
  readonly onProgress: (progress: CopyProgress, all: CopyProgress) => void;
}

const copiesAtOnce = 16;

/** The index of a backup, by name; of the newest where none is given. Throws `CannotRestore` and `DataError`. */
export async function readBackup(
  site: BackupSite,
  name: string | undefined,
): Promise<{ readonly backup: FoundBackup; readonly entries: readonly BackupEntry[] }> {
  const names = await site.backups();
  const wanted = name ?? names.at(-1);
  if (wanted === undefined) throw new CannotRestore('there is no backup in this place');
  const entries: BackupEntry[] = [];
  const backup = names.includes(wanted) ? await site.readIndex(wanted, (entry) => entries.push(entry)) : null;
  if (backup === null)
    throw new CannotRestore(
      `there is no backup "${wanted}" in this place, but: ${names.join(', ') || 'none'}`,
    );
  return { backup, entries };
}

/** Reads all that a backup consists of. Throws a `DataError` that names what is missing or damaged. */
export async function checkBackup(
  { site, onProgress }: RestoreComponents,
  { backup, entries }: { readonly backup: FoundBackup; readonly entries: readonly BackupEntry[] },
): Promise<void> {
  const progress = { objects: 0, bytes: 0 };
  await sideBySide(entries, copiesAtOnce, async (entry) => {
    for await (const _ of site.read(entry));
    count(progress, entry);
    onProgress(progress, backup.end);
  });
}

/**
 * Puts a backup into an object store that has nothing of Tidebase, or that an earlier try has begun to fill. The view goes last:
 * no server starts on a store that has logs and no view, so none can meet half of one. Each object is checked before it is
 * stored. Throws `CannotRestore`, `DataError` and `StoreError`.
 */
export async function restoreBackup(
  components: RestoreComponents,
  store: ObjectStore,
  { backup, entries }: { readonly backup: FoundBackup; readonly entries: readonly BackupEntry[] },
): Promise<void> {
  const { site, clock, onProgress } = components;
  const there = await sizesIn(store);
  const progress = { objects: 0, bytes: 0 };
  const put = async (entry: BackupEntry) => {
    if (there.has(entry.key)) await checkSame(store, entry);
    else await putEntry({ site, clock, store }, entry);
    count(progress, entry);
    onProgress(progress, backup.end);
  };
  const isView = ({ key }: BackupEntry) => key === paths.view;
  await sideBySide(
    entries.filter((entry) => !isView(entry)),
    copiesAtOnce,
    put,
  );
  for (const entry of entries.filter(isView)) await put(entry);
}

/** What an earlier try has put there. Throws where it is a store that a server uses. */
async function sizesIn(store: ObjectStore): Promise<ReadonlySet<string>> {
  if ((await store.get(paths.view)) !== null)
    throw new CannotRestore('the object store is in use: restore into an empty folder or bucket');
  const there = new Set<string>();
  for (const prefix of [paths.namespaces, paths.tenants, paths.accounts, paths.oauth, paths.logs])
    for await (const { key } of listAll(store, prefix)) there.add(key);
  return there;
}

async function putEntry(
  { site, clock, store }: { readonly site: BackupSite; readonly clock: Clock; readonly store: ObjectStore },
  entry: BackupEntry,
): Promise<void> {
  if (entry.size > pieceBytes) {
    await streamOnce(store, clock, entry.key, async (sink) => {
      for await (const piece of site.read(entry)) await sink(piece);
    });
    return;
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of site.read(entry)) pieces.push(piece);
  await putOnce(store, clock, entry.key, pieces);
}

async function checkSame(store: ObjectStore, { key, size, sha256 }: BackupEntry): Promise<void> {
  const digest = createHash('sha256');
  for (let from = 0; from < size; ) {
    const found = await store.get(key, { range: { offset: from, length: pieceBytes } });
    if (found === null || found.size !== size) break;
    digest.update(found.bytes);
    from += found.bytes.length;
  }
  if (digest.digest('hex') === sha256) return;
  throw new CannotRestore(
    `${key} is there already and is another object: restore into an empty folder or bucket`,
  );
}

function count(progress: CopyProgress, { size }: BackupEntry): void {
  progress.objects++;
  progress.bytes += size;
}
