import { dirname, join } from 'node:path';
import { DataError } from '../base/assert.ts';
import { type Random, randomHex } from '../base/random.ts';
import {
  exists,
  folderMode,
  makeFolder,
  missing,
  notEmpty,
  readFolder,
  removeFolder,
  rename,
  succeeds,
  unless,
  unlink,
  writeNewFile,
} from './fs-calls.ts';
import { type FsFolders, removeFlatFolder } from './fs-folders.ts';
import {
  markUpdated,
  type ObjectFile,
  readObjectHeader,
  removeFirstBytes,
  writeObjectFile,
} from './fs-object-file.ts';
import type { PutResult } from './object-store.ts';
import type { StoreCall } from './store-calls.ts';

/**
 * The versions of an object that was updated.
 *
 *     <key>                                     version 1, and the sign that the object exists; only the sign once a
 *                                               later version is current
 *     <key>@/<incarnation>/<number>.<nonce>     the bytes of a later version
 *     <key>@/<incarnation>/current.<number>.<nonce>   empty; its NAME says which version is current
 *
 * The incarnation is the nonce of the file `<key>`, so what is in the folder of a deleted and perhaps re-created object
 * can never be taken for the new one's. Deciding steps, each one atomic in the file system, also when the process is
 * killed:
 *
 * - the first update renames a prepared folder to `<key>@/<incarnation>`, which fails where that folder is not empty;
 * - a later one renames the one name `current.<n>.…` to `current.<n+1>.…`, which fails where somebody else has renamed
 *   it already. Names carry a nonce and never come back, so a writer that slept through any number of updates fails too;
 * - a delete unlinks `<key>`.
 *
 * A killed writer leaves bytes of a version that did not become current, or that is not current any more. Their number
 * tells: once a version is current, every other one of its number or below can only fail, and is removed by the writer of
 * the next, or by `tidy`, which every start does. The bytes of version 1 are cut from `<key>` once the names of a later
 * version are on the disk: before, a power cut could leave neither.
 */
export interface Version {
  readonly incarnation: string;
  readonly number: number;
  readonly nonce: string;
}

/** Times that a racing delete may take the folder away under a first update. */
const installAttemptsMax = 10;
/** Times that a reader finds its version replaced between two steps before it gives up; each time somebody got on. */
const readAttemptsMax = 100;
/** Version folders known to be on the disk, by name. */
const settledMax = 20_000;

const etagPattern = /^([0-9a-f]{16})-([1-9][0-9]{0,14})-([0-9a-f]{16})$/;
const currentPattern = /^current\.([0-9]{20})\.([0-9a-f]{16})$/;
const bytesPattern = /^([0-9]{20})\.([0-9a-f]{16})$/;

export function formatEtag(version: Version): string {
  return `${version.incarnation}-${version.number}-${version.nonce}`;
}

/** Null where no store of this kind has made the text. */
export function parseEtag(etag: string): Version | null {
  const [, incarnation, number, nonce] = etagPattern.exec(etag) ?? [];
  if (incarnation === undefined || nonce === undefined) return null;
  return { incarnation, number: Number(number), nonce };
}

export class FsVersions {
  readonly #folders: FsFolders;
  readonly #random: Random;
  readonly #settled = new Set<string>();

  constructor(folders: FsFolders, random: Random) {
    this.#folders = folders;
    this.#random = random;
  }

  /** The current version, its file read by `read`; null where there is no object. */
  async current<T extends ObjectFile>(
    path: string,
    read: (file: string) => Promise<T | null>,
  ): Promise<{ file: T; version: Version } | null> {
    for (let attempt = 0; attempt < readAttemptsMax; attempt++) {
      const first = await read(path);
      if (first === null) return null;
      const firstVersion = { incarnation: first.nonce, number: 1, nonce: first.nonce };
      if (!first.updated) return { file: first, version: firstVersion };

      const names = await unless(readFolder(versionFolder(path, first.nonce)), missing, null);
      if (names === null) {
        // Marked for an update that has not come yet; or deleted with all its versions since it was read.
        const again = await readObjectHeader(path);
        if (again?.nonce !== first.nonce) continue;
        if (isWithoutBytes(first)) throw new DataError(path, 0, 'the versions of an updated object are gone');
        return { file: first, version: firstVersion };
      }
      const version = newest(first.nonce, names);
      const file = version && (await read(bytesPath(path, version)));
      if (version === null || file === null) continue;
      if (file.nonce !== version.nonce)
        throw new DataError(bytesPath(path, version), 16, 'not the version of its name');
      return { file, version };
    }
    throw new Error(`the object was replaced ${readAttemptsMax} times while it was read`);
  }

  /** Whether the version is the current one, without reading bytes; a false may be wrong, a true never. */
  async isCurrent(path: string, version: Version): Promise<boolean> {
    const [first, named] = await Promise.all([
      readObjectHeader(path),
      version.number > 1 && exists(currentPath(path, version)),
    ]);
    if (first?.nonce !== version.incarnation) return false;
    return version.number > 1 ? named : !first.updated;
  }

  async update(
    call: StoreCall,
    path: string,
    bytes: readonly Uint8Array[],
    expected: Version,
  ): Promise<PutResult> {
    const nonce = randomHex(this.#random, 8);
    const next = { incarnation: expected.incarnation, number: expected.number + 1, nonce };
    const won =
      expected.number === 1
        ? await this.#installFirst(call, path, next, bytes)
        : await this.#moveCurrent(call, path, expected, next, bytes);
    if (!won) {
      call.mayBeApplied = false;
      await this.settle(path, expected.incarnation);
      return { kind: 'refused' };
    }
    const [first] = await Promise.all([readObjectHeader(path), this.#settleOnce(path, next.incarnation)]);
    if (first?.nonce !== next.incarnation) {
      await this.collect(path);
      throw new Error('the object was deleted while it was updated');
    }
    await removeOtherBytes(path, next);
    return { kind: 'stored', etag: formatEtag(next) };
  }

  /** Puts the names of an object and its versions on the disk, whoever made them. */
  async settle(path: string, incarnation: string): Promise<void> {
    const places = [versionFolder(path, incarnation), versionsFolder(path), dirname(path)];
    await Promise.all(places.map((folder) => this.#folders.sync(folder)));
  }

  /**
   * Removes what can't be current any more beside the object of this path: versions of deleted objects, superseded ones
   * that a killed writer left, and bytes of a first version that an earlier release kept. Any process may, at any time.
   */
  async tidy(path: string): Promise<void> {
    await this.collect(path);
    const found = await this.current<ObjectFile>(path, readObjectHeader);
    if (found === null || found.version.number === 1) return;
    const { version } = found;
    await this.settle(path, version.incarnation);
    await removeOtherBytes(path, version);
    await removeFirstBytes(path, version.incarnation);
  }

  /** Removes the versions of objects that were deleted. */
  async collect(path: string): Promise<void> {
    const incarnations = await unless(readFolder(versionsFolder(path)), missing, []);
    if (incarnations.length === 0) return;
    // Looked at after the folder: an incarnation that was in it and is not this one will never be again.
    const alive = (await readObjectHeader(path))?.nonce;
    for (const incarnation of incarnations)
      if (incarnation !== alive) await removeFlatFolder(versionFolder(path, incarnation));
    await succeeds(removeFolder(versionsFolder(path)), [...missing, ...notEmpty]);
  }

  async #installFirst(
    call: StoreCall,
    path: string,
    next: Version,
    bytes: readonly Uint8Array[],
  ): Promise<boolean> {
    if (!(await markUpdated(path, next.incarnation))) return false;
    if (await exists(versionFolder(path, next.incarnation))) return false;
    const prepared = this.#folders.temporaryPath(next.nonce);
    try {
      await makeFolder(prepared, { mode: folderMode });
      await Promise.all([
        writeObjectFile(join(prepared, bytesName(next)), next.nonce, bytes),
        writeNewFile(join(prepared, currentName(next)), []),
      ]);
      await this.#folders.sync(prepared);
      call.signal.throwIfAborted();
      call.mayBeApplied = true;
      return await install(prepared, path, next.incarnation);
    } finally {
      await removeFlatFolder(prepared);
    }
  }

  async #moveCurrent(
    call: StoreCall,
    path: string,
    expected: Version,
    next: Version,
    bytes: readonly Uint8Array[],
  ): Promise<boolean> {
    if (!(await this.isCurrent(path, expected))) return false;
    const file = bytesPath(path, next);
    let superfluous = true;
    try {
      if (!(await succeeds(writeObjectFile(file, next.nonce, bytes), missing))) return false;
      call.signal.throwIfAborted();
      call.mayBeApplied = true;
      // A rename that fails in an unknown way may have made these bytes current: then they stay.
      superfluous = false;
      const moved = await succeeds(rename(currentPath(path, expected), currentPath(path, next)), missing);
      superfluous = !moved;
      return moved;
    } finally {
      if (superfluous) await succeeds(unlink(file), missing);
    }
  }

  /**
   * As `settle`, for a version that was just installed. The folders above are looked at only once, when the bytes of the
   * first version go too: after that this process has seen both done.
   */
  async #settleOnce(path: string, incarnation: string): Promise<void> {
    const folder = versionFolder(path, incarnation);
    if (this.#settled.has(folder)) return this.#folders.sync(folder);
    await this.settle(path, incarnation);
    await removeFirstBytes(path, incarnation);
    if (this.#settled.size >= settledMax) this.#settled.clear();
    this.#settled.add(folder);
  }
}

function isWithoutBytes(file: ObjectFile & { readonly bytes?: Uint8Array | null }): boolean {
  return file.bytes === null;
}

async function install(prepared: string, path: string, incarnation: string): Promise<boolean> {
  for (let attempt = 0; attempt < installAttemptsMax; attempt++) {
    await succeeds(makeFolder(versionsFolder(path), { mode: folderMode }), ['EEXIST']);
    const renamed = rename(prepared, versionFolder(path, incarnation)).then(() => true);
    const won = await unless(unless(renamed, notEmpty, false), missing, null);
    if (won !== null) return won;
  }
  throw new Error('the folder of versions was removed again and again');
}

/** Removes the bytes that can never be current any more now that this version is. */
async function removeOtherBytes(path: string, current: Version): Promise<void> {
  const folder = versionFolder(path, current.incarnation);
  for (const name of await unless(readFolder(folder), missing, [])) {
    const [, number] = bytesPattern.exec(name) ?? [];
    if (number === undefined || Number(number) > current.number || name === bytesName(current)) continue;
    await succeeds(unlink(join(folder, name)), missing);
  }
}

/** Two names may be seen while one is renamed to the other; both were current during the look. */
function newest(incarnation: string, names: readonly string[]): Version | null {
  let found: Version | null = null;
  for (const name of names) {
    const [, number, nonce] = currentPattern.exec(name) ?? [];
    if (number === undefined || nonce === undefined || Number(number) <= (found?.number ?? 0)) continue;
    found = { incarnation, number: Number(number), nonce };
  }
  return found;
}

/** A key never holds an `@`, so these names are no object's. */
export const versionsMark = '@';
const versionsFolder = (path: string) => path + versionsMark;
const versionFolder = (path: string, incarnation: string) => join(versionsFolder(path), incarnation);
const bytesName = ({ number, nonce }: Version) => `${String(number).padStart(20, '0')}.${nonce}`;
const currentName = (version: Version) => `current.${bytesName(version)}`;
const bytesPath = (path: string, version: Version) =>
  join(versionFolder(path, version.incarnation), bytesName(version));
/** The file that holds the version's bytes. */
export const versionPath = (path: string, version: Version) =>
  version.number === 1 ? path : bytesPath(path, version);
const currentPath = (path: string, version: Version) =>
  join(versionFolder(path, version.incarnation), currentName(version));
