import { dirname, join, resolve } from 'node:path';
import { must } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { errorCode, link, missing, succeeds, unlink } from './fs-calls.ts';
import { FsFolders } from './fs-folders.ts';
import { listFiles } from './fs-list.ts';
import {
  aboutFile,
  type FileAbout,
  type ObjectFile,
  readObjectFile,
  readObjectHeader,
  writeObjectFile,
} from './fs-object-file.ts';
import { abortFsUpload, FsUpload, fsUploads } from './fs-uploads.ts';
import { FsVersions, formatEtag, parseEtag, versionPath } from './fs-versions.ts';
import { assertKey, assertListing, assertRange } from './keys.ts';
import {
  type CallOptions,
  type GetOptions,
  type ListOptions,
  type ListPage,
  type ListUploadsOptions,
  type ObjectStore,
  type PutResult,
  type StoredObject,
  StoreError,
  type StreamResult,
  type Upload,
  type UploadPage,
} from './object-store.ts';
import { type StoreCall, StoreCalls } from './store-calls.ts';
import { folderPieceBytes, inParts, pageOfUploads } from './uploads.ts';

/** A disk that syncs for longer than this is as good as gone. */
export const fsTimeoutMsDefault = 30_000;
/** Keys whose last write failed in an unknown way; more than a few means that the disk is failing. */
const unsettledMax = 1000;
/** A new name that failed with one of these was not made. Any other failure leaves it open. */
const notLinkedCodes: readonly string[] =
  'EACCES EDQUOT EMLINK ENAMETOOLONG ENOENT ENOSPC ENOTDIR EPERM EROFS EXDEV'.split(' ');

/**
 * Objects as files in a folder on a local disk; any number of processes may share it. An object that is created and
 * never changed is one file under its key; `fs-versions.ts` says how an update works.
 *
 * A create writes a temporary file, syncs it, links it to its key (which fails where something is) and syncs the folder.
 * The file system must order its metadata (ext4, xfs, btrfs and the like do) and know hard links; a network file system
 * is not meant.
 */
export class FsObjectStore implements ObjectStore {
  readonly #folders: FsFolders;
  readonly #versions: FsVersions;
  readonly #calls: StoreCalls;
  readonly #random: Random;
  /** What was read of these keys may not be on the disk yet: a reader syncs first, since callers trust what they read. */
  readonly #unsettled = new Set<string>();
  #brokenDisk: unknown = null;

  /** Makes the folder where it is missing, and removes what killed processes left half-written. */
  static async open(
    folder: string,
    clock: Clock,
    random: Random,
    timeoutMs = fsTimeoutMsDefault,
  ): Promise<FsObjectStore> {
    const folders = new FsFolders(resolve(folder));
    await folders.open(clock);
    return new FsObjectStore(folders, new StoreCalls(clock, timeoutMs), random);
  }

  private constructor(folders: FsFolders, calls: StoreCalls, random: Random) {
    this.#folders = folders;
    this.#calls = calls;
    this.#random = random;
    this.#versions = new FsVersions(folders, random);
  }

  async get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    assertKey(key);
    assertRange(options?.range);
    return this.#calls.read('get', key, options?.timeoutMs, () => this.#read(key, options));
  }

  async getIfChanged(
    key: string,
    etag: string,
    options?: CallOptions,
  ): Promise<StoredObject | 'unchanged' | null> {
    assertKey(key);
    const version = parseEtag(etag);
    return this.#calls.read('get', key, options?.timeoutMs, async () => {
      if (version && !this.#unsettled.has(key) && (await this.#versions.isCurrent(this.#path(key), version)))
        return 'unchanged';
      const object = await this.#read(key);
      return object?.etag === etag ? 'unchanged' : object;
    });
  }

  async putIfAbsent(key: string, bytes: readonly Uint8Array[], options?: CallOptions): Promise<PutResult> {
    assertKey(key);
    return this.#write('create', key, options, (call) => this.#create(call, key, bytes));
  }

  async putIfMatch(
    key: string,
    bytes: readonly Uint8Array[],
    etag: string,
    options?: CallOptions,
  ): Promise<PutResult> {
    assertKey(key);
    const version = parseEtag(etag);
    if (version === null) return { kind: 'refused' };
    return this.#write('update', key, options, (call) =>
      this.#versions.update(call, this.#path(key), bytes, version),
    );
  }

  async putStream(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: CallOptions,
  ): Promise<StreamResult> {
    assertKey(key);
    const nonce = randomHex(this.#random, 8);
    const upload = new FsUpload(this.#folders, nonce);
    // As a read: whatever becomes of a step before the last one, nothing was stored.
    const step = (work: () => Promise<void>) =>
      this.#calls.read('stream', key, options?.timeoutMs, () => this.#onSoundDisk(work));
    try {
      await step(() => upload.begin(key));
      for await (const part of inParts(chunks, folderPieceBytes, { lends: true }))
        await step(() => upload.append(part));
      await step(() => upload.finish());
      return await this.#write('stream', key, options, async (call) => {
        const put = await this.#install(call, key, { temporary: upload.path, nonce });
        return put.kind === 'refused' ? put : { ...put, size: upload.size };
      });
    } finally {
      await upload.discard();
    }
  }

  async listUploads(prefix: string, options: ListUploadsOptions): Promise<UploadPage> {
    const { after, limit, timeoutMs } = options;
    assertListing(prefix, { limit });
    return this.#calls.read('list-uploads', prefix, timeoutMs, async () =>
      pageOfUploads(await fsUploads(this.#folders), { prefix, after, limit }),
    );
  }

  async abortUpload({ key, uploadId }: Upload, options?: CallOptions): Promise<void> {
    assertKey(key);
    return this.#calls.read('abort-upload', key, options?.timeoutMs, () =>
      abortFsUpload(this.#folders, uploadId),
    );
  }

  async delete(key: string, options?: CallOptions): Promise<void> {
    assertKey(key);
    const path = this.#path(key);
    return this.#write('delete', key, options, async (call) => {
      call.mayBeApplied = true;
      await succeeds(unlink(path), [...missing, 'EISDIR']);
      await this.#folders.sync(dirname(path));
      // Only now: a first version that came back after a power cut must not come back without the later ones.
      await this.#versions.collect(path);
    });
  }

  async list(prefix: string, options: ListOptions): Promise<ListPage> {
    assertListing(prefix, options);
    return this.#calls.read('list', prefix, options.timeoutMs, async () => {
      const files = await listFiles(this.#folders.root, prefix, options.after ?? '', options.limit + 1);
      const objects = await Promise.all(
        files.slice(0, options.limit).map(async ({ key, versions }) => {
          const about = await this.#about(key, versions);
          return about === null ? [] : [{ key, ...about }];
        }),
      );
      return { objects: objects.flat(), more: files.length > options.limit };
    });
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  async #read(key: string, options?: GetOptions): Promise<StoredObject | null> {
    const path = this.#path(key);
    const found = await this.#versions.current(path, (file) => readObjectFile(file, options?.range));
    if (found === null) return null;
    if (this.#unsettled.has(key)) await this.#versions.settle(path, found.version.incarnation);
    return {
      bytes: must(found.file.bytes, 'the bytes of a current version'),
      etag: formatEtag(found.version),
      size: found.file.size,
    };
  }

  /** Null where the object is gone. */
  async #about(key: string, versions: boolean): Promise<FileAbout | null> {
    const path = this.#path(key);
    if (!versions) return aboutFile(path);
    const found = await this.#versions.current<ObjectFile>(path, readObjectHeader);
    if (found === null) return null;
    // Replaced since it was read: the next version is looked at.
    return (await aboutFile(versionPath(path, found.version))) ?? this.#about(key, versions);
  }

  async #create(call: StoreCall, key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    const nonce = randomHex(this.#random, 8);
    const temporary = this.#folders.temporaryPath(nonce);
    try {
      await writeObjectFile(temporary, nonce, bytes);
      return await this.#install(call, key, { temporary, nonce });
    } finally {
      await succeeds(unlink(temporary), missing);
    }
  }

  /** Gives a finished object file its name. */
  async #install(
    call: StoreCall,
    key: string,
    { temporary, nonce }: { readonly temporary: string; readonly nonce: string },
  ): Promise<PutResult> {
    const path = this.#path(key);
    call.signal.throwIfAborted();
    const linked = await this.#link(call, temporary, path);
    // Also where it was refused: the caller trusts the object that stands in its way.
    await this.#folders.sync(dirname(path));
    return linked
      ? { kind: 'stored', etag: formatEtag({ incarnation: nonce, number: 1, nonce }) }
      : { kind: 'refused' };
  }

  async #link(call: StoreCall, temporary: string, path: string): Promise<boolean> {
    await this.#folders.ensure(dirname(path));
    for (let attempt = 1; ; attempt++) {
      try {
        call.mayBeApplied = true;
        await link(temporary, path);
        return true;
      } catch (error) {
        const code = errorCode(error) ?? '';
        call.mayBeApplied = code !== 'EEXIST' && !notLinkedCodes.includes(code);
        if (code === 'EEXIST') return false;
        if (code !== 'ENOENT' || attempt === 2) throw error;
        this.#folders.forget();
        await this.#folders.ensure(dirname(path));
      }
    }
  }

  async #write<T>(
    operation: string,
    key: string,
    options: CallOptions | undefined,
    work: (call: StoreCall) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#calls.write(operation, key, options?.timeoutMs, (call) =>
        this.#onSoundDisk(() => work(call)),
      );
    } catch (error) {
      if (error instanceof StoreError && error.outcome === 'unknown') this.#remember(key);
      throw error;
    }
  }

  /** After a failed sync the system may report the next one as done though the bytes are lost: no write is safe then. */
  async #onSoundDisk<T>(work: () => Promise<T>): Promise<T> {
    if (this.#brokenDisk !== null)
      throw new Error('the disk failed to sync before: check it and restart', { cause: this.#brokenDisk });
    try {
      return await work();
    } catch (error) {
      if (errorCode(error) === 'EIO') this.#brokenDisk = error;
      throw error;
    }
  }

  #remember(key: string): void {
    this.#unsettled.add(key);
    for (const oldest of this.#unsettled) {
      if (this.#unsettled.size <= unsettledMax) return;
      this.#unsettled.delete(oldest);
    }
  }

  #path(key: string): string {
    return join(this.#folders.root, key);
  }
}
