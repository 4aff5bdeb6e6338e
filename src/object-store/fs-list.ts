import { join } from 'node:path';
import { missing, readFolderEntries, unless } from './fs-calls.ts';
import { versionsMark } from './fs-versions.ts';

export interface ListedFile {
  readonly key: string;
  /** Whether there may be versions beside the file: its own size is not the object's then. */
  readonly versions: boolean;
}

/** The first `limit` keys under the prefix and above `after`, in byte order. */
export async function listFiles(
  root: string,
  prefix: string,
  after: string,
  limit: number,
): Promise<readonly ListedFile[]> {
  const found: ListedFile[] = [];
  await walk(root, prefix.slice(0, prefix.lastIndexOf('/') + 1), { prefix, after, limit }, found);
  return found;
}

interface Wanted {
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
}

async function walk(root: string, folderKey: string, wanted: Wanted, found: ListedFile[]): Promise<void> {
  const entries = await unless(
    readFolderEntries(join(root, folderKey), { withFileTypes: true }),
    missing,
    [],
  );
  const beside = new Set(
    entries.filter((entry) => entry.name.endsWith(versionsMark)).map((entry) => entry.name),
  );
  // With the slash at its end a folder's name sorts as the keys in it do.
  const names = entries
    .filter((entry) => !entry.name.startsWith('.') && !beside.has(entry.name))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
  for (const name of names) {
    if (found.length >= wanted.limit) return;
    const key = folderKey + name;
    if (!key.startsWith(wanted.prefix)) continue;
    if (!name.endsWith('/')) {
      if (key > wanted.after) found.push({ key, versions: beside.has(name + versionsMark) });
    } else if (key > wanted.after || wanted.after.startsWith(key)) {
      await walk(root, key, wanted, found);
    }
  }
}
