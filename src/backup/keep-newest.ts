import type { BackupSite } from './backup-site.ts';

/** Removes all backups but the newest `keep`, then the copies that no backup names any more. Answers how many of each. */
export async function keepNewest(
  site: BackupSite,
  keep: number,
): Promise<{ readonly backups: number; readonly objects: number }> {
  const names = await site.backups();
  const gone = names.slice(0, Math.max(0, names.length - keep));
  // Read before anything is removed: an index that is damaged stops it all, since what it names is not known.
  const named = new Set<string>();
  for (const name of names.slice(gone.length)) await site.readIndex(name, ({ at }) => named.add(at));
  for (const name of gone) await site.remove(`backups/${name}`);
  let objects = 0;
  for (const under of ['objects/', 'content/'])
    for await (const { key } of site.list(under)) {
      if (named.has(key)) continue;
      await site.remove(key);
      objects++;
    }
  return { backups: gone.length, objects };
}
