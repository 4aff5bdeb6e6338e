import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { sideBySide } from '../base/side-by-side.ts';
import { readView } from '../cluster/view.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ListedObject, ObjectStore } from '../object-store/object-store.ts';
import { isReplaced, paths } from '../object-store/paths.ts';
import type { BackupEntry } from './backup-format.ts';
import type { BackupSite, FoundBackup } from './backup-site.ts';
import { type CopyProgress, ObjectCopies } from './copy-objects.ts';
import { LogCopies, Overtaken } from './log-copies.ts';

export interface BackupComponents {
  readonly store: ObjectStore;
  readonly site: BackupSite;
  readonly clock: Clock;
  /** Called now and then with how far it is. */
  readonly onProgress: (progress: CopyProgress) => void;
}

export interface TakenBackup {
  readonly backup: FoundBackup;
  /** What was copied now, because no earlier backup had it. */
  readonly added: CopyProgress;
}

/** Objects that are copied at once. */
const copiesAtOnce = 16;
/** The longest attempt, in milliseconds: shorter than the 15 minutes for which servers keep what they retire. */
const attemptMsMax = 10 * 60_000;
const attemptsMax = 20;
const followEveryMs = 1_000;

/** The store has nothing to back up, or servers are too busy for it. The message is for a person. */
export class CannotBackUp extends Error {
  override name = 'CannotBackUp';
}

/**
 * A backup of a store that servers go on writing to: what is restored is all that was acknowledged before one moment.
 *
 * 1. Segments and their like, which are never replaced, are copied first. That takes long and needs no order.
 * 2. An attempt then takes seconds: the view; floors and logs; all manifests; whatever else they name; people and their
 *    addresses; what the logs have got meanwhile, whose last slots are the moment; the claims of keys and customers. Rows of an import lie
 *    in an object that its record names, and are copied with the record.
 *    Manifests are older than the moment and never older than the floors that were copied before them, so a server that opens
 *    the copy replays the logs over them, as after any restart, and is at the moment.
 * 3. Servers delete what no manifest names any more after 15 minutes, logs once all is in manifests, and change the view as
 *    they come and go. An attempt that took too long, or met any of this, is begun anew, with less to copy.
 * 4. The index is written last. Without one there is no backup.
 *
 * The format of what is copied is not looked into, but for views, floors and logs.
 */
export async function takeBackup(components: BackupComponents): Promise<TakenBackup> {
  const { store, site } = components;
  if ((await readView(store)).version === 0)
    throw new CannotBackUp('no server has ever written to this object store: there is nothing to back up');
  const journals = await site.readJournals();
  const known = await knownEntries(site, journals.entries);
  const copies = new ObjectCopies(store, site, { clock: components.clock, known });
  await copyListed(components, copies, [paths.namespaces, paths.tenants]);
  const moment = await attempts(components, copies);
  const entries = [...copies.entries.values()];
  const backup = await site.putIndex(
    { format: 'tidebase backup', version: 1, moment: new Date(moment).toISOString() },
    entries.sort((a, b) => (a.key < b.key ? -1 : 1)),
  );
  for (const key of [...journals.keys, ...copies.notes]) await site.remove(key);
  return { backup, added: copies.added };
}

/** What the newest backup has, and what an ended one had copied after it. An index that is damaged is as good as none. */
async function knownEntries(
  site: BackupSite,
  noted: readonly BackupEntry[],
): Promise<Map<string, BackupEntry>> {
  const known = new Map<string, BackupEntry>();
  const newest = (await site.backups()).at(-1);
  try {
    if (newest !== undefined) await site.readIndex(newest, (entry) => known.set(entry.key, entry));
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    known.clear();
  }
  for (const entry of noted) known.set(entry.key, entry);
  return known;
}

/** Answers the moment, in milliseconds since 1970. */
async function attempts(components: BackupComponents, copies: ObjectCopies): Promise<number> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    try {
      return await oneAttempt(components, copies);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }
  throw new CannotBackUp(
    `the servers went on too fast in ${attemptsMax} attempts: try again when they write less, or from a machine nearer to the store`,
  );
}

async function oneAttempt(components: BackupComponents, copies: ObjectCopies): Promise<number> {
  const { store, clock } = components;
  const beganAt = clock.monotonic();
  // An attempt that was overtaken may have left manifests of what was deleted since.
  copies.forget((key) => isReplaced(key));
  const view = await readView(store);
  // Changed between the two, it is found to be another one at the end.
  await copies.copyPresent(paths.view);
  const logs = await LogCopies.begin(store, copies, view);
  await following(clock, logs, async () => {
    await copyManifests(components, copies);
    await copyListed(components, copies, [paths.namespaces, paths.tenants]);
    // The claim of an address first: the person whom it names was there before it.
    await copyAll(components, copies, paths.emailClaims);
    await copyAll(components, copies, paths.people);
  });
  const moment = clock.now();
  await logs.round();
  logs.end();
  // Claims that lead to nothing in the copy do no harm; people do who have tenants that are not in it.
  await copyAll(components, copies, paths.accounts, isClaim);
  await copyAll(components, copies, paths.oauth);
  const isChanged = (await readView(store)).version !== view.version;
  if (isChanged || clock.monotonic() - beganAt > attemptMsMax) throw new Overtaken();
  return moment;
}

/** Does the work, and copies what the logs get meanwhile. */
async function following(clock: Clock, logs: LogCopies, work: () => Promise<void>): Promise<void> {
  let isOver = false;
  const follow = async () => {
    while (!isOver) {
      await logs.round();
      await clock.sleep(isOver ? 0 : followEveryMs);
    }
  };
  const [done, followed] = await Promise.allSettled([
    work().finally(() => {
      isOver = true;
    }),
    follow(),
  ]);
  if (followed.status === 'rejected') throw followed.reason;
  if (done.status === 'rejected') throw done.reason;
}

/** Whether it leads to a tenant: of a key, of a customer. Addresses lead to people. */
function isClaim(key: string): boolean {
  return !key.startsWith(paths.people) && !key.startsWith(paths.emailClaims);
}

/** Manifests and what else is replaced of namespaces and tenants. */
async function copyManifests(components: BackupComponents, copies: ObjectCopies): Promise<void> {
  for (const prefix of [paths.namespaces, paths.tenants])
    await copyAll(components, copies, prefix, isReplaced);
}

/** All that is under the prefixes and never replaced. What goes meanwhile is named by no manifest that was read. */
async function copyListed(
  components: BackupComponents,
  copies: ObjectCopies,
  prefixes: readonly string[],
): Promise<void> {
  for (const prefix of prefixes) {
    const lasting = only(listAll(components.store, prefix), ({ key }) => !isReplaced(key));
    await sideBySide(lasting, copiesAtOnce, async (object) => {
      await copies.copyImmutable(object);
      components.onProgress(copies.progress);
    });
  }
}

async function copyAll(
  components: BackupComponents,
  copies: ObjectCopies,
  prefix: string,
  isWanted: (key: string) => boolean = () => true,
): Promise<void> {
  const wanted = only(listAll(components.store, prefix), ({ key }) => isWanted(key));
  await sideBySide(wanted, copiesAtOnce, async ({ key }) => {
    await copies.copyPresent(key);
    components.onProgress(copies.progress);
  });
}

async function* only(
  objects: AsyncIterable<ListedObject>,
  isWanted: (object: ListedObject) => boolean,
): AsyncGenerator<ListedObject, void, void> {
  for await (const object of objects) if (isWanted(object)) yield object;
}
