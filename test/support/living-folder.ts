/** Reads folders of a server that runs: files and folders that it removes meanwhile are left out instead of failing a test. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of all files below a folder, at any depth. Empty where there is no such folder. */
export function filesBelow(folder: string): string[] {
  const files: string[] = [];
  for (const entry of unlessGone(() => readdirSync(folder, { withFileTypes: true })) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) files.push(...filesBelow(path));
    else if (entry.isFile()) files.push(path);
  }
  return files;
}

/** A file's bytes, or null where it has gone. */
export const readIfThere = (path: string) => unlessGone(() => readFileSync(path));

/** A file's size in bytes, 0 where it has gone. */
export const sizeIfThere = (path: string) => unlessGone(() => statSync(path).size) ?? 0;

function unlessGone<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
