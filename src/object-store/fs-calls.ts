/**
 * The file calls of the folder store. Callbacks turned into promises: an object of `fs/promises` costs twice as much
 * for each small file.
 */
import fs from 'node:fs';
import { promisify } from 'node:util';

export const openFile = promisify(fs.open);
export const closeFile = promisify(fs.close);
export const readFile = promisify(fs.read);
export const syncFile = promisify(fs.fsync);
export const link = promisify(fs.link);
export const unlink = promisify(fs.unlink);
export const rename = promisify(fs.rename);
export const makeFolder = promisify(fs.mkdir);
export const removeFolder = promisify(fs.rmdir);
export const readFolder: (path: string) => Promise<string[]> = promisify(fs.readdir);
export const readFolderEntries: (path: string, options: { withFileTypes: true }) => Promise<fs.Dirent[]> =
  promisify(fs.readdir);
export const fileStat = promisify(fs.stat);
export const accessFile = promisify(fs.access);
const writeParts = promisify(fs.writev);

/** Objects are their owner's business. */
const fileMode = 0o600;
export const folderMode = 0o700;
/** Linux takes 1,024 pieces in one call. */
const partsPerWriteMax = 512;

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The value; or `otherwise` where the call failed with one of the codes. */
export async function unless<T, U>(call: Promise<T>, codes: readonly string[], otherwise: U): Promise<T | U> {
  try {
    return await call;
  } catch (error) {
    if (codes.includes(errorCode(error) ?? '')) return otherwise;
    throw error;
  }
}

/** Whether the call succeeded; false where it failed with one of the codes. */
export function succeeds(call: Promise<unknown>, codes: readonly string[]): Promise<boolean> {
  return unless(
    call.then(() => true),
    codes,
    false,
  );
}

/** Nothing is there: the name, or a folder on the way to it. */
export const missing: readonly string[] = ['ENOENT', 'ENOTDIR'];
/** A folder that was to be removed or replaced holds something. */
export const notEmpty: readonly string[] = ['ENOTEMPTY', 'EEXIST'];

/** Whether a file or folder of the name is there. */
export function exists(path: string): Promise<boolean> {
  return succeeds(accessFile(path), missing);
}

/** Ends a descriptor that was only read from; nothing depends on when. */
export function releaseFile(file: number): void {
  fs.close(file, () => {});
}

/** A file that was not there before, for reading and writing. */
export function openNewFile(path: string): Promise<number> {
  return openFile(path, 'wx+', fileMode);
}

/** A new file with these bytes, on the disk when the promise resolves. Its name is not: the folder must be synced. */
export async function writeNewFile(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await openNewFile(path);
  try {
    await writeAll(file, parts);
    await syncFile(file);
  } finally {
    await closeFile(file);
  }
}

/** Writes the parts where the file's position stands. */
export async function writeAll(file: number, parts: readonly Uint8Array[]): Promise<void> {
  let rest = parts.filter((part) => part.byteLength > 0);
  while (rest.length > 0) {
    const { bytesWritten } = await writeParts(file, rest.slice(0, partsPerWriteMax));
    rest = withoutFirst(rest, bytesWritten);
  }
}

function withoutFirst(parts: readonly Uint8Array[], byteCount: number): Uint8Array[] {
  let skip = byteCount;
  for (const [index, part] of parts.entries()) {
    if (skip < part.byteLength) return [part.subarray(skip), ...parts.slice(index + 1)];
    skip -= part.byteLength;
  }
  return [];
}

/**
 * Puts the names in folders on the disk. Callers that come while a folder is being synced share the next sync, so a
 * burst of new objects in one folder costs two.
 */
export class FolderSync {
  readonly #folders = new Map<string, { running: Promise<void>; next: Promise<void> | null }>();

  sync(folder: string): Promise<void> {
    const state = this.#folders.get(folder);
    if (state === undefined) return this.#start(folder);
    // The running one may have begun before the caller's change.
    state.next ??= state.running.then(
      () => this.#start(folder),
      () => this.#start(folder),
    );
    return state.next;
  }

  #start(folder: string): Promise<void> {
    const state = { running: syncFolder(folder), next: null };
    this.#folders.set(folder, state);
    const done = () => {
      if (state.next === null) this.#folders.delete(folder);
    };
    state.running.then(done, done);
    return state.running;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const file = await openFile(folder, 'r');
  try {
    await syncFile(file);
  } finally {
    releaseFile(file);
  }
}
