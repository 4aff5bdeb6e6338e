import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../src/base/assert.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import { LruMap } from '../../src/base/lru.ts';
import { type Random, systemRandom } from '../../src/base/random.ts';
import { namespaceOfKey, paths } from '../../src/object-store/paths.ts';
import { viewOf } from './segment-format.ts';
import {
  bytesOfContent,
  chargeOf,
  checksumBytes,
  contentParts,
  diskPageBytes,
  encodeEntry,
  encodeFileEntry,
  entryHeadBytes,
  fileIn,
  isEntry,
  isNamed,
  keyIn,
  lengthIn,
} from './warm-entry.ts';
import { type Databases, openDatabases, readState, settled } from './warm-environment.ts';
import {
  type FreeSpace,
  markClosedInOrder,
  markDamaged,
  prepareFolder,
  type WarmFolder,
  warmFolder,
} from './warm-folder.ts';
import { WarmKeys } from './warm-keys.ts';
import { WarmRoom } from './warm-room.ts';

export interface WarmCacheOptions {
  readonly folder: string;
  /** What the cache may take of the disk, all in all. */
  readonly bytesMax: number;
  readonly log: Logger;
  /** What keys of the cache are made with. */
  readonly random?: Random;
  readonly freeSpace?: (folder: string) => FreeSpace;
  /** Larger values become files. */
  readonly inlineBytesMax?: number;
}

export interface WarmCacheStats {
  readonly bytes: number;
  readonly pendingBytes: number;
  readonly serving: boolean;
}

/** LMDB keeps keys up to 1,978 bytes; our longest name is an object key of 900 and a number. */
const nameBytesMax = 1_024;
/** The largest block of a segment and its header. */
const valueBytesMax = 17 * 1024 * 1024;
/** A file that is taken over: its length is a u32 in its entry. */
const fileBytesMax = 2 ** 32 - 1;
const inlineBytesMaxDefault = 64 * 1024;
/** Values on their way to disk; more are dropped, because the disk is slower than the object store then. */
const pendingBytesMax = 64 * 1024 * 1024;
/** Names read since the clock's hand passed them. */
const usedNamesMax = 100_000;
/** Entries that one put may evict or pass over. */
const evictionStepsMax = 256;
/** Reads that were under way when their namespace or object was forgotten end long before so many others were. */
const goneNamesMax = 100_000;
/** Names of which the next is removed when the disk has those before. */
const forgottenAtOnce = 256;
/** A cache that breaks more often than this in one process stays off. */
const wipesMax = 3;

interface Pending {
  /** Null while a removal is on its way. */
  readonly value: Buffer | null;
  /** Null where the entry keeps the age that it has on disk. */
  readonly age: number | null;
}

/** Opens the folder, emptied where it can't be trusted. Never throws: without a disk the cache keeps nothing. */
export function openWarmCache(options: WarmCacheOptions): WarmCache {
  return new WarmCache(options);
}

/**
 * Bytes under names on the local disk, one LMDB environment per thread. It may forget anything at any
 * time and never gives wrong bytes: whatever is read carries our own checksum of name and bytes, checked on a copy.
 *
 * - What was removed, replaced or evicted is gone from the disk when the call returns, though its bytes may lie in the
 *   environment for long: they are sealed with a key that is overwritten (warm-keys.ts). Files are unlinked instead.
 * - Immutable names (blocks of segments) are never stale. Manifests and names under `meta/` are replaced, and after a crash
 *   nothing or an older value may be there: their readers compare with the object store.
 * - `put` never waits and never fails: what can't be kept is not kept.
 * - Values above `inlineBytesMax` are files beside the environment, because LMDB needs neighbouring pages for them.
 * - Full means: the oldest go first, those read since they were last looked at once more round.
 */
export class WarmCache {
  readonly #paths: WarmFolder;
  readonly #bytesMax: number;
  readonly #room: WarmRoom;
  readonly #inlineBytesMax: number;
  readonly #log: Logger;
  /** Null while broken, wiped or closed: reads find nothing, puts keep nothing. */
  #databases: Databases | null = null;
  readonly #random: Random;
  /** Null with the databases. */
  #keys: WarmKeys | null = null;
  /** Namespaces and objects that were forgotten, of which reads that are under way may still bring something. */
  readonly #gone = new LruMap<string, true>(goneNamesMax);
  readonly #pending = new Map<string, Pending>();
  #pendingBytes = 0;
  readonly #writing = new Set<Promise<void>>();
  #bytes = 0;
  /** How many of these bytes lie in files. */
  #fileBytes = 0;
  #fileBytesSaved = 0;
  #bytesSaveQueued = false;
  #lastNumber = 0;
  /** The clock's hand: ages up to here have been passed. */
  #hand = 0;
  readonly #used = new Set<string>();
  #wipes = 0;
  #closed = false;

  constructor(options: WarmCacheOptions) {
    this.#paths = warmFolder(options.folder);
    this.#bytesMax = options.bytesMax;
    this.#inlineBytesMax = options.inlineBytesMax ?? inlineBytesMaxDefault;
    this.#log = options.log;
    this.#random = options.random ?? systemRandom;
    this.#room = new WarmRoom(this.#paths, options.bytesMax, options.log, options.freeSpace);
    this.#open();
  }

  stats(): WarmCacheStats {
    return { bytes: this.#bytes, pendingBytes: this.#pendingBytes, serving: this.#databases !== null };
  }

  /** The bytes last put under the name, the caller's to keep and not to change; undefined where there are none. */
  get(name: string): Uint8Array | undefined {
    const pending = this.#pending.get(name);
    if (pending?.value === null) return undefined;
    if (this.#databases === null) return undefined;
    const value = pending?.value ?? this.#read(this.#databases, name);
    if (value === undefined) return undefined;
    const bytes = this.#check(name, value);
    if (bytes === undefined) this.remove(name);
    else if (this.#used.size < usedNamesMax) this.#used.add(name);
    return bytes;
  }

  /** Whether `get` would find something, as far as can be said without reading it: it may be damaged. */
  has(name: string): boolean {
    return this.#databases !== null && this.#headOf(this.#databases, name) !== undefined;
  }

  /** Keeps a copy of the bytes if there is room; in any case what was there before is not found any more. */
  put(name: string, bytes: Uint8Array): void {
    const databases = this.#databases;
    if (databases === null || name.length > nameBytesMax || this.#isGone(name)) return;
    if (this.#keep(databases, name, bytes)) return;
    if (this.#headOf(databases, name) !== undefined) this.remove(name);
  }

  /**
   * Takes over a file under the name: moved from its place on the same disk, or left there where there is no room. `checksum`:
   * xxh64 of its bytes.
   */
  async adopt(
    name: string,
    file: { readonly path: string; readonly length: number; readonly checksum: bigint },
  ): Promise<boolean> {
    const databases = this.#databases;
    if (databases === null || name.length > nameBytesMax || file.length > fileBytesMax) return false;
    if (this.#isGone(name)) return false;
    if (this.#headOf(databases, name) !== undefined) this.remove(name);
    if (!this.#makeRoom(databases, chargeOf(file.length))) return false;
    const number = ++this.#lastNumber;
    // Charged before it is there, so that what comes meanwhile finds the room taken.
    this.#fileBytes += chargeOf(file.length);
    this.#charge(chargeOf(file.length));
    const age = ++this.#lastNumber;
    try {
      await rename(file.path, join(this.#paths.files, String(number)));
    } catch (error) {
      this.#log.info('the warm cache could not take a file', { reason: describeError(error) });
      this.#fileBytes = Math.max(0, this.#fileBytes - chargeOf(file.length));
      this.#charge(-chargeOf(file.length));
      return false;
    }
    // Wiped meanwhile: the file is gone, or goes with the next opening.
    if (this.#databases !== databases) return false;
    if (this.#isGone(name)) {
      const value = encodeFileEntry(name, { ...file, number });
      this.#charge(-chargeOf(file.length));
      this.#unlinkFileOf(databases, value);
      return false;
    }
    const entry = this.#putEntry(databases, name, encodeFileEntry(name, { ...file, number }), age);
    this.#trackUnnamed(() => [entry, databases.files.put(number, name)]);
    await entry;
    return true;
  }

  /**
   * Where the file under the name lies, its bytes unchecked; null where there is none. It may be deleted at any time: who has
   * opened or mapped it keeps what it was.
   */
  pathOf(name: string): string | null {
    if (this.#databases === null) return null;
    const head = this.#headOf(this.#databases, name);
    if (head === undefined || fileIn(head) === 0 || !isNamed(head, name)) return null;
    if (this.#used.size < usedNamesMax) this.#used.add(name);
    return join(this.#paths.files, String(fileIn(head)));
  }

  /** Forgets the name: nobody can read from the disk what was under it. */
  remove(name: string): void {
    const databases = this.#databases;
    if (databases === null) return;
    const head = this.#headOf(databases, name);
    if (head !== undefined) {
      this.#charge(-chargeOf(lengthIn(head)));
      this.#erase(databases, head);
    }
    this.#setPending(name, null, null);
    this.#track(
      name,
      null,
      settled(() => [databases.entries.remove(name)]),
    );
  }

  /** Forgets all that was put of a deleted namespace, for good: a read that is under way brings nothing back. */
  async forgetNamespace(namespaceId: string): Promise<void> {
    const folder = paths.namespaceFolder(namespaceId);
    this.#gone.set(folder, true);
    await this.#removeAll(folder);
  }

  /** Forgets an object that no manifest names any more, and all of its blocks, for good. */
  async forgetObject(key: string): Promise<void> {
    this.#gone.set(key, true);
    await this.removeObject(key);
  }

  /** Forgets an object as `forgetObject` does, but what is put of it later is kept again. */
  async removeObject(key: string): Promise<void> {
    this.remove(key);
    await this.#removeAll(`${key}@`);
  }

  /** Keys of all objects of namespaces that something was put of, in order; one that is put meanwhile may be left out. */
  *objectKeys(): Generator<string, void, void> {
    for (let after = 'ns/'; ; ) {
      const name = this.#nameAfter(after);
      if (name === null || namespaceOfKey(name) === null) return;
      const key = objectOf(name);
      yield key;
      // Past all its blocks: `@` is followed by `A`.
      after = `${key}A`;
    }
  }

  #nameAfter(start: string): string | null {
    if (this.#databases === null) return null;
    try {
      for (const name of this.#databases.entries.getKeys({ start, limit: 1 })) return name;
    } catch (error) {
      this.#fail(error);
    }
    return null;
  }

  #isGone(name: string): boolean {
    if (this.#gone.size === 0) return false;
    const namespaceId = namespaceOfKey(name);
    if (namespaceId === null) return false;
    return (
      this.#gone.get(paths.namespaceFolder(namespaceId)) === true || this.#gone.get(objectOf(name)) === true
    );
  }

  /** Removes all names that begin so, some at a time. */
  async #removeAll(prefix: string): Promise<void> {
    for (const name of [...this.#pending.keys()]) if (name.startsWith(prefix)) this.remove(name);
    for (let after: string | null = prefix; after !== null; ) {
      const names = this.#namesFrom(after, prefix);
      for (const name of names) this.remove(name);
      // No name has such a character, so nothing lies between.
      after = names.length < forgottenAtOnce ? null : `${names.at(-1)}\u0001`;
      await this.drained();
    }
  }

  #namesFrom(start: string, prefix: string): string[] {
    const found: string[] = [];
    try {
      for (const name of this.#databases?.entries.getKeys({ start, limit: forgottenAtOnce }) ?? []) {
        if (!name.startsWith(prefix)) break;
        found.push(name);
      }
    } catch (error) {
      this.#fail(error);
    }
    return found;
  }

  /** Resolves once everything put so far can be read by the next opening, or was dropped. */
  async drained(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }

  /** Forgets everything and starts empty. */
  async wipe(): Promise<void> {
    await this.#shut();
    markDamaged(this.#paths);
    if (!this.#closed) this.#open();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.drained();
    const wasServing = this.#databases !== null;
    await this.#shut();
    if (!wasServing) return;
    try {
      await markClosedInOrder(this.#paths);
    } catch (error) {
      this.#log.info('the warm cache will start empty', { reason: describeError(error) });
    }
  }

  /** Ends all use of the folder, which another process may have taken over: nothing is said of how it was left. */
  async leave(): Promise<void> {
    this.#closed = true;
    await this.#shut();
  }

  #keep(databases: Databases, name: string, bytes: Uint8Array): boolean {
    if (bytes.length > valueBytesMax || this.#pendingBytes + bytes.length > pendingBytesMax) return false;
    const replaced = this.#headOf(databases, name);
    const isFile = bytes.length > this.#inlineBytesMax;
    const charge = chargeOf(bytes.length) - (replaced === undefined ? 0 : chargeOf(lengthIn(replaced)));
    if (!this.#makeRoom(databases, charge)) return false;
    if (replaced !== undefined) this.#erase(databases, replaced);
    const value = this.#seal(name, bytes, isFile ? ++this.#lastNumber : 0);
    if (value === null) return false;
    if (isFile) this.#fileBytes += chargeOf(bytes.length);
    this.#charge(charge);
    const age = replaced === undefined ? ++this.#lastNumber : (this.#pending.get(name)?.age ?? null);
    this.#setPending(name, value, age);
    const written = isFile
      ? this.#putFile(databases, name, value, age)
      : this.#putEntry(databases, name, value, age);
    this.#track(name, value, written);
    return true;
  }

  /** Null where the disk does not take the key: then nothing may be kept under it, and what was there before is gone. */
  #seal(name: string, bytes: Uint8Array, file: number): Buffer | null {
    try {
      const { number, sealed } = must(this.#keys, 'keys of an open cache').seal(contentParts(bytes));
      return encodeEntry(name, { length: bytes.length, file, key: number }, sealed);
    } catch (error) {
      this.#fail(error);
      return null;
    }
  }

  /** Forgets an entry whose bytes can't be read from the disk any more. */
  #erase(databases: Databases, head: Buffer): void {
    try {
      if (keyIn(head) !== 0) this.#keys?.forget(keyIn(head));
    } catch (error) {
      // A key that can't be overwritten must not stay: an empty cache takes the place of this one.
      this.#fail(error);
    }
    this.#unlinkFileOf(databases, head);
  }

  #open(): void {
    try {
      this.#databases = this.#openDatabases();
    } catch (error) {
      this.#log.info('the warm cache is damaged and starts empty', { reason: describeError(error) });
      try {
        markDamaged(this.#paths);
        this.#databases = this.#openDatabases();
      } catch (again) {
        this.#log.error('no warm cache: its folder cannot be used', { reason: describeError(again) });
      }
    }
  }

  #openDatabases(): Databases {
    prepareFolder(this.#paths);
    const databases = openDatabases(this.#paths.environment, this.#bytesMax);
    let keys: WarmKeys | null = null;
    try {
      keys = new WarmKeys(this.#paths.keys, this.#random);
      // Each value has at least a page; what is more was left by crashes.
      if (keys.count > this.#bytesMax / diskPageBytes) throw new Error('it has more keys than values');
      const found = readState(databases);
      this.#bytes = found.bytes;
      this.#fileBytes = found.fileBytes;
      this.#fileBytesSaved = found.fileBytes;
      this.#lastNumber = found.lastNumber;
      this.#hand = 0;
      this.#removeStrayFiles(databases);
      this.#room.look();
      const reason = this.#room.whyStartOver(this.#fileBytes);
      if (reason !== null) throw new Error(reason);
    } catch (error) {
      // Nothing was queued yet, so it closes at once; its path is needed for the next one.
      databases.root.close().catch(() => {});
      keys?.close();
      throw error;
    }
    this.#keys = keys;
    return databases;
  }

  /** Files whose entry was never committed, and half-written ones. */
  #removeStrayFiles(databases: Databases): void {
    for (const file of readdirSync(this.#paths.files)) {
      const number = Number(file);
      if (!Number.isSafeInteger(number) || databases.files.get(number) === undefined) {
        rmSync(join(this.#paths.files, file), { force: true });
      }
    }
  }

  async #shut(): Promise<void> {
    const databases = this.#databases;
    this.#databases = null;
    await this.drained();
    this.#keys?.close();
    this.#keys = null;
    this.#pending.clear();
    this.#pendingBytes = 0;
    this.#used.clear();
    this.#bytes = 0;
    this.#fileBytes = 0;
    if (databases === null) return;
    try {
      await databases.root.close();
    } catch (error) {
      this.#log.info('the warm cache did not close in order', { reason: describeError(error) });
    }
  }

  /** LMDB itself failed: nothing of it is touched any more, and an empty environment takes its place. */
  #fail(error: unknown): void {
    if (this.#databases === null) return;
    this.#log.error('the warm cache failed', { reason: describeError(error) });
    const broken = this.#databases;
    this.#databases = null;
    markDamaged(this.#paths);
    if (++this.#wipes > wipesMax) return;
    this.#databases = broken;
    this.wipe().catch((cause: unknown) => {
      this.#log.error('the warm cache stays off', { reason: describeError(cause) });
    });
  }

  /** A view that the next read changes, and a later transaction: what is opened of it is a copy, and is checked after. */
  #read(databases: Databases, name: string): Buffer | undefined {
    try {
      const mapped = databases.entries.getBinaryFast(name);
      if (mapped === undefined) return undefined;
      // With bounds, because lmdb sets `length` on a longer buffer of its own.
      return viewOf(mapped.subarray(0, mapped.length));
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** The bytes, or undefined where value, file and name do not belong together. */
  #check(name: string, value: Buffer): Uint8Array | undefined {
    if (!isEntry(value) || !isNamed(value, name)) return undefined;
    const behind = value.subarray(entryHeadBytes);
    // Of a file that is being written the content is here as well.
    const isHere = fileIn(value) === 0 || behind.length === checksumBytes + lengthIn(value);
    const content = isHere ? behind : this.#readFile(fileIn(value));
    if (content === undefined) return undefined;
    if (keyIn(value) === 0) return bytesOfContent(Buffer.concat([behind, content]), lengthIn(value));
    const opened = this.#unseal(keyIn(value), content);
    return opened && bytesOfContent(opened, lengthIn(value));
  }

  #unseal(key: number, content: Buffer): Buffer | undefined {
    try {
      return this.#keys?.open(key, content);
    } catch {
      return undefined; // Unreadable: the entry is dropped and fetched again.
    }
  }

  #readFile(number: number): Buffer | undefined {
    try {
      return readFileSync(join(this.#paths.files, String(number)));
    } catch {
      return undefined; // Gone or unreadable: the entry is dropped and fetched again.
    }
  }

  /** The head of the entry as the queued writes will leave it; undefined for none and for a damaged one. */
  #headOf(databases: Databases, name: string): Buffer | undefined {
    const pending = this.#pending.get(name);
    if (pending !== undefined) return pending.value?.subarray(0, entryHeadBytes);
    try {
      const mapped = databases.entries.getBinaryFast(name);
      if (mapped === undefined || !isEntry(mapped)) return undefined;
      const head = Buffer.from(mapped.subarray(0, entryHeadBytes));
      return lengthIn(head) <= (fileIn(head) === 0 ? valueBytesMax : fileBytesMax) ? head : undefined;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #putEntry(databases: Databases, name: string, value: Buffer, age: number | null): Promise<void> {
    return settled(() => [
      databases.entries.put(name, value),
      ...(age === null ? [] : [databases.ages.put(age, name)]),
    ]);
  }

  /** The file first, under its final name, then the entry that promises it. */
  async #putFile(databases: Databases, name: string, value: Buffer, age: number | null): Promise<void> {
    const number = fileIn(value);
    const path = join(this.#paths.files, String(number));
    try {
      await writeFile(`${path}.part`, value.subarray(entryHeadBytes));
      await rename(`${path}.part`, path);
    } catch (error) {
      this.#log.info('the warm cache could not write a file', { reason: describeError(error) });
      if (this.#pending.get(name)?.value === value) this.remove(name);
      return;
    }
    // Replaced, removed or wiped while the file was written: nothing will ever name it.
    if (this.#databases !== databases || this.#pending.get(name)?.value !== value) {
      await unlink(path).catch(() => {}); // What can't be unlinked now goes with the next opening.
      return;
    }
    const entry = this.#putEntry(databases, name, value.subarray(0, entryHeadBytes), age);
    await settled(() => [entry, databases.files.put(number, name)]);
  }

  #unlinkFileOf(databases: Databases, head: Buffer): void {
    const number = fileIn(head);
    if (number === 0) return;
    this.#fileBytes = Math.max(0, this.#fileBytes - chargeOf(lengthIn(head)));
    // Already gone, or not written yet: what is left over goes with the next opening.
    const unlinked = unlink(join(this.#paths.files, String(number))).catch(() => {});
    this.#trackUnnamed(() => [databases.files.remove(number), unlinked]);
  }

  #setPending(name: string, value: Buffer | null, age: number | null): void {
    this.#pendingBytes += (value?.length ?? 0) - (this.#pending.get(name)?.value?.length ?? 0);
    this.#pending.set(name, { value, age });
  }

  /** Until `written` settles readers get the pending value. Failures end here. */
  #track(name: string, value: Buffer | null, written: Promise<void>): void {
    this.#await(written, () => {
      if (this.#pending.get(name)?.value !== value) return;
      this.#pendingBytes -= value?.length ?? 0;
      this.#pending.delete(name);
    });
  }

  #trackUnnamed(write: () => readonly Promise<unknown>[]): void {
    this.#await(settled(write), () => {});
  }

  #await(written: Promise<void>, then: () => void): void {
    const done = written
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        this.#writing.delete(done);
        then();
      });
    this.#writing.add(done);
  }

  /** Evicts until `bytes` more fit. False where they don't, or must not because the disk is nearly full. */
  #makeRoom(databases: Databases, bytes: number): boolean {
    this.#room.grows(bytes);
    const reason = this.#room.whyStartOver(this.#fileBytes);
    if (reason !== null) return this.#startOver(reason);
    const bytesMax = this.#room.entryBytesMax(this.#bytes);
    if (bytes > bytesMax) return false;
    for (let steps = 0; this.#bytes + bytes > bytesMax; steps++) {
      if (steps === evictionStepsMax || !this.#evictNext(databases)) return false;
    }
    return true;
  }

  #startOver(reason: string): boolean {
    this.#log.info('the warm cache starts empty', { reason });
    this.wipe().catch((cause: unknown) => {
      this.#log.error('the warm cache stays off', { reason: describeError(cause) });
    });
    return false;
  }

  /** Moves the clock's hand by one entry, which goes unless it was used. False where there is none left. */
  #evictNext(databases: Databases): boolean {
    const next = this.#nextOldest(databases);
    if (next === null) return false;
    this.#hand = next.age;
    const again = this.#used.delete(next.name);
    if (!again) this.remove(next.name);
    this.#trackUnnamed(() => [
      databases.ages.remove(next.age),
      ...(again ? [databases.ages.put(++this.#lastNumber, next.name)] : []),
    ]);
    return true;
  }

  #nextOldest(databases: Databases): { age: number; name: string } | null {
    try {
      for (const { key, value } of databases.ages.getRange({ start: this.#hand + 1, limit: 1 })) {
        return { age: key, name: value };
      }
    } catch (error) {
      this.#fail(error);
    }
    return null;
  }

  /** The sum goes to disk beside the writes that changed it; a crash between them leaves it wrong by one entry. */
  #charge(bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes + bytes);
    if (this.#bytesSaveQueued) return;
    this.#bytesSaveQueued = true;
    queueMicrotask(() => {
      this.#bytesSaveQueued = false;
      const databases = this.#databases;
      if (databases === null) return;
      const { state } = databases;
      this.#trackUnnamed(() => [state.put('bytes', this.#bytes)]);
      if (this.#fileBytes === this.#fileBytesSaved) return;
      this.#fileBytesSaved = this.#fileBytes;
      this.#trackUnnamed(() => [state.put('fileBytes', this.#fileBytesSaved)]);
    });
  }
}

/** The key of the object that a block's name is of. */
function objectOf(name: string): string {
  const at = name.indexOf('@');
  return at < 0 ? name : name.slice(0, at);
}
