import { dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import {
  FolderSync,
  fileStat,
  folderMode,
  makeFolder,
  missing,
  notEmpty,
  readFolder,
  removeFolder,
  succeeds,
  unless,
  unlink,
} from './fs-calls.ts';

/** Folders known to be on the disk, by name; beyond this number the knowledge is built again. */
const knownFoldersMax = 20_000;
/** No call lives this long, so a temporary file of this age belongs to a process that was killed. */
const temporaryAgeMaxMs = 60 * 60 * 1000;
/** But an upload may; its folder's name begins so. Those that can be named are aborted by whoever collects, sooner. */
const uploadMark = 'upload-';
const uploadAgeMaxMs = 7 * 24 * 60 * 60 * 1000;

/** The root folder, its temporary files, and the folders on the way to an object. */
export class FsFolders {
  readonly root: string;
  readonly #temporary: string;
  readonly #folderSync = new FolderSync();
  readonly #known = new Set<string>();

  constructor(root: string) {
    this.root = root;
    // A key's part never begins with a dot.
    this.#temporary = join(root, '.tmp');
  }

  async open(clock: Clock): Promise<void> {
    const firstMade = await makeFolder(this.#temporary, { recursive: true, mode: folderMode });
    if (firstMade !== undefined) await this.#syncUpTo(dirname(firstMade));
    await this.removeOldTemporary(clock.now());
  }

  /** Removes what a process that was killed has left half-written. */
  async removeOldTemporary(nowMs: number): Promise<void> {
    for (const name of await unless(readFolder(this.#temporary), missing, [])) {
      const path = this.temporaryPath(name);
      const stat = await unless(fileStat(path), missing, null);
      const ageMaxMs = name.startsWith(uploadMark) ? uploadAgeMaxMs : temporaryAgeMaxMs;
      if (stat === null || nowMs - stat.mtimeMs < ageMaxMs) continue;
      if (stat.isDirectory()) await removeFlatFolder(path);
      else await succeeds(unlink(path), missing);
    }
  }

  temporaryPath(name: string): string {
    return join(this.#temporary, name);
  }

  /** The folder of an upload, not made yet. */
  uploadFolder(uploadId: string): string {
    return this.temporaryPath(uploadMark + uploadId);
  }

  /** The ids of all uploads that have not ended, in no order. */
  async uploadIds(): Promise<string[]> {
    const names = await readFolder(this.#temporary);
    return names.filter((name) => name.startsWith(uploadMark)).map((name) => name.slice(uploadMark.length));
  }

  /** Puts the names in a folder on the disk. A folder that is gone has none. */
  async sync(folder: string): Promise<void> {
    await succeeds(this.#folderSync.sync(folder), missing);
  }

  /** Forgets which folders are there: somebody has removed one by hand. */
  forget(): void {
    this.#known.clear();
  }

  /**
   * Makes the folder and those above it, and puts their names on the disk: also where they exist, since whoever made
   * them may not have come to that. The store never removes them again, so that once is enough.
   */
  async ensure(folder: string): Promise<void> {
    if (this.#known.has(folder) || folder === this.root) return;
    const above = dirname(folder);
    await this.ensure(above);
    await succeeds(makeFolder(folder, { mode: folderMode }), ['EEXIST']);
    await this.sync(above);
    if (this.#known.size >= knownFoldersMax) this.#known.clear();
    this.#known.add(folder);
  }

  async #syncUpTo(above: string): Promise<void> {
    let folder = this.root;
    for (; folder.length > above.length; folder = dirname(folder)) await this.sync(folder);
    await this.sync(folder);
  }
}

/** Removes a folder of files; leaves it where somebody has just put something in. */
export async function removeFlatFolder(folder: string): Promise<void> {
  const names = await unless(readFolder(folder), missing, []);
  for (const name of names) await succeeds(unlink(join(folder, name)), missing);
  await succeeds(removeFolder(folder), [...missing, ...notEmpty]);
}
