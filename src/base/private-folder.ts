import { chmod, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** What a process makes from now on, native code included, only its owner may read: folders 0700, files 0600. */
export function makeOnlyPrivate(): void {
  process.umask(0o077);
}

/** Bits of a mode that let anybody but the owner in. */
const othersBits = 0o077;

/**
 * Takes from the group and from all others what an earlier release, or a copy, has given them in this folder and below.
 *
 * A folder that was closed to them already is not looked into, apart from `folder` itself: nobody could read what is in it,
 * and it may hold very much. A folder is closed after all that is in it, so that a start that is cut off goes on where it was.
 * What belongs to another user is left alone, and so is what a symbolic link leads to.
 */
export async function closeToOthers(folder: string): Promise<void> {
  await closeChildren(folder);
  const found = await look(folder);
  if (found?.isOpen) await close(folder, found.mode);
}

async function closeChildren(folder: string): Promise<void> {
  for (const entry of await unlessGone(readdir(folder, { withFileTypes: true }), [])) {
    if (!entry.isDirectory() && !entry.isFile()) continue;
    const path = join(folder, entry.name);
    const found = await look(path);
    if (!found?.isOpen) continue;
    if (entry.isDirectory()) await closeChildren(path);
    await close(path, found.mode);
  }
}

function close(path: string, mode: number): Promise<void> {
  return unlessGone(chmod(path, mode & ~othersBits & 0o7777), undefined);
}

/** `isOpen`: it is ours, and others may do something with it. */
async function look(path: string): Promise<{ readonly mode: number; readonly isOpen: boolean } | null> {
  const found = await unlessGone(lstat(path), null);
  if (found === null) return null;
  const { mode, uid } = found;
  return { mode, isOpen: uid === process.getuid?.() && (mode & othersBits) !== 0 };
}

/** A process that serves from the folder until this one takes its place removes files meanwhile. */
async function unlessGone<T, U>(call: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return otherwise;
    throw error;
  }
}
