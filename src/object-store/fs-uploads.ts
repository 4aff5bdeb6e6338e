import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  closeFile,
  fileStat,
  folderMode,
  makeFolder,
  missing,
  openNewFile,
  syncFile,
  unless,
  writeAll,
  writeNewFile,
} from './fs-calls.ts';
import { type FsFolders, removeFlatFolder } from './fs-folders.ts';
import { placeOfHeader, writeHeader } from './fs-object-file.ts';
import type { Upload } from './object-store.ts';

const keyName = 'key';
const bytesName = 'bytes';
const idPattern = /^[0-9a-f]+$/;
/** The system writes back this much at a time, so that the last sync doesn't wait for gigabytes. */
const syncEveryBytes = 64 * 1024 * 1024;

export class FsUpload {
  /** The object's file, to be linked after `finish`. */
  readonly path: string;
  readonly #folder: string;
  readonly #nonce: string;
  #file: number | null = null;
  #size = 0;
  #unsyncedBytes = 0;
  /** The last step, which may go on though its caller has given up. */
  #step: Promise<unknown> = Promise.resolve();
  #isBusy = false;

  /** `nonce`: 16 hexadecimal digits, the upload's id and the object's. */
  constructor(folders: FsFolders, nonce: string) {
    this.#folder = folders.uploadFolder(nonce);
    this.#nonce = nonce;
    this.path = join(this.#folder, bytesName);
  }

  get size(): number {
    return this.#size;
  }

  begin(key: string): Promise<void> {
    return this.#run(async () => {
      await makeFolder(this.#folder, { mode: folderMode });
      await writeNewFile(join(this.#folder, keyName), [Buffer.from(key)]);
      const file = await openNewFile(this.path);
      this.#file = file;
      await writeAll(file, [placeOfHeader()]);
    });
  }

  append(bytes: Uint8Array): Promise<void> {
    return this.#run(async () => {
      await writeAll(this.#open(), [bytes]);
      this.#size += bytes.length;
      this.#unsyncedBytes += bytes.length;
      if (this.#unsyncedBytes < syncEveryBytes) return;
      this.#unsyncedBytes = 0;
      await syncFile(this.#open());
    });
  }

  /** The object's file is whole and on the disk. */
  finish(): Promise<void> {
    return this.#run(async () => {
      await writeHeader(this.#open(), this.#nonce, this.#size);
      await syncFile(this.#open());
    });
  }

  /** Frees everything once the last step has ended: a descriptor that is still written to must not be another file's. */
  async discard(): Promise<void> {
    // A disk that hangs holds up its own descriptor, not the caller. What stays is an old upload, to be collected.
    const discarded = this.#discard().catch(() => {});
    if (!this.#isBusy) await discarded;
  }

  async #discard(): Promise<void> {
    await this.#step.catch(() => {});
    if (this.#file !== null) await closeFile(this.#file);
    this.#file = null;
    await removeFlatFolder(this.#folder);
  }

  #open(): number {
    if (this.#file === null) throw new Error('the upload has ended');
    return this.#file;
  }

  #run(step: () => Promise<void>): Promise<void> {
    this.#isBusy = true;
    const run = step().finally(() => {
      this.#isBusy = false;
    });
    this.#step = run;
    return run;
  }
}

/**
 * Uploads of the folder store: each has a folder of its own among the temporary files, with the object's file and one
 * that holds the key. Whoever removes it has aborted the upload: the object's file is gone when it is to be linked.
 */
export async function fsUploads(folders: FsFolders): Promise<Upload[]> {
  const uploads = await Promise.all((await folders.uploadIds()).map((id) => uploadOf(folders, id)));
  return uploads.flat();
}

/** None where it ended meanwhile, or its process was killed before it said what it is. */
async function uploadOf(folders: FsFolders, uploadId: string): Promise<Upload[]> {
  const file = join(folders.uploadFolder(uploadId), keyName);
  const [key, stat] = await Promise.all([
    unless(readFile(file, 'utf8'), missing, null),
    unless(fileStat(file), missing, null),
  ]);
  if (key === null || key === '' || stat === null) return [];
  return [{ key, uploadId, startedAtMs: Math.floor(stat.mtimeMs) }];
}

export async function abortFsUpload(folders: FsFolders, uploadId: string): Promise<void> {
  // An id is part of a path here: one that no upload has must not lead anywhere else.
  if (idPattern.test(uploadId)) await removeFlatFolder(folders.uploadFolder(uploadId));
}
