import { createHash } from 'node:crypto';
import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { sha256Hex } from '../base/hash.ts';
import { type Random, randomHex } from '../base/random.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ListedObject, ObjectStore } from '../object-store/object-store.ts';
import { patientGet } from '../object-store/patient-get.ts';
import { putOnce, streamOnce } from '../object-store/put-once.ts';
import {
  type BackupEnd,
  type BackupEntry,
  type BackupHead,
  lineOf,
  parseEnd,
  parseEntry,
  parseHead,
} from './backup-format.ts';

/** Bytes that one read of a large object takes. */
export const pieceBytes = 8 * 1024 * 1024;

/** The bytes of an object, a piece after the other, from its beginning; called again where storing it is tried again. */
export type ReadPieces = () => AsyncIterable<Uint8Array>;

/** A backup that is whole. */
export interface FoundBackup {
  /** Its name: the time of its moment, and some digits. */
  readonly name: string;
  readonly head: BackupHead;
  readonly end: BackupEnd;
}

/**
 * Where backups lie: a folder or a bucket, all keys under one prefix.
 *
 *     objects/<key>             bytes of an object that is never replaced, under its own key
 *     content/<2 hex>/<sha256>  bytes of any other
 *     backups/<name>            an index, written last of all: what is without one is no backup
 *     unfinished/<random>       what a backup that is under way, or was ended, has copied under `objects/`
 *
 * Several backups share what is the same in them.
 */
export class BackupSite {
  readonly #store: ObjectStore;
  readonly #reads: Pick<ObjectStore, 'get'>;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #random: Random;

  /** `prefix` is empty or ends with a slash. */
  constructor(
    store: ObjectStore,
    prefix: string,
    components: { readonly clock: Clock; readonly random: Random },
  ) {
    this.#store = store;
    this.#reads = patientGet(store, components.clock);
    this.#prefix = prefix;
    this.#clock = components.clock;
    this.#random = components.random;
  }

  /** Stores bytes by what they are. */
  async putContent(bytes: Uint8Array): Promise<{ readonly at: string; readonly sha256: string }> {
    const sha256 = sha256Hex(bytes);
    const at = `content/${sha256.slice(0, 2)}/${sha256}`;
    await putOnce(this.#store, this.#clock, this.#prefix + at, [bytes]);
    return { at, sha256 };
  }

  /** Stores an object that is never replaced, under its key. Where an ended backup has left it there, its bytes are read instead. */
  async putImmutable(
    key: string,
    read: ReadPieces,
  ): Promise<{ readonly at: string; readonly sha256: string; readonly size: number }> {
    const at = `objects/${key}`;
    const made = await streamOnce(this.#store, this.#clock, this.#prefix + at, async (sink) => {
      const digest = createHash('sha256');
      let size = 0;
      for await (const piece of read()) {
        digest.update(piece);
        size += piece.length;
        await sink(piece);
      }
      return { sha256: digest.digest('hex'), size };
    });
    return { at, ...made };
  }

  /** The bytes of an entry in pieces, checked: what has another digest throws `DataError` in place of the last piece. */
  async *read({ at, size, sha256, key }: BackupEntry): AsyncGenerator<Uint8Array, void, void> {
    const place = this.#prefix + at;
    const digest = createHash('sha256');
    let from = 0;
    for (;;) {
      const piece = await this.#piece(place, from, size);
      if (piece === null) throw new DataError(place, from, `it is missing, and the backup names it (${key})`);
      if (piece.size !== size)
        throw new DataError(place, piece.size, `it should have ${size} bytes (${key})`);
      digest.update(piece.bytes);
      from += piece.bytes.length;
      if (from < size) yield piece.bytes;
      else {
        if (digest.digest('hex') !== sha256)
          throw new DataError(place, 0, `its SHA-256 is another one (${key})`);
        yield piece.bytes;
        return;
      }
    }
  }

  async #piece(place: string, from: number, size: number) {
    if (size <= pieceBytes) return this.#reads.get(place);
    const length = Math.min(pieceBytes, size - from);
    return this.#reads.get(place, { range: { offset: from, length } });
  }

  /** Notes what is copied under `objects/`, so that a backup that is ended can be gone on with. */
  async putJournal(entries: readonly BackupEntry[]): Promise<string> {
    const at = `unfinished/${randomHex(this.#random, 16)}`;
    await putOnce(this.#store, this.#clock, this.#prefix + at, entries.map(lineOf));
    return at;
  }

  /** The keys of all notes, and what they say. What can't be read says nothing: it is copied again. */
  async readJournals(): Promise<{ readonly keys: readonly string[]; readonly entries: BackupEntry[] }> {
    const keys: string[] = [];
    const entries: BackupEntry[] = [];
    for await (const { key } of this.list('unfinished/')) {
      keys.push(key);
      const found = await this.#reads.get(this.#prefix + key);
      if (found === null) continue;
      for (const line of linesIn(found.bytes)) {
        try {
          entries.push(parseEntry(line, key));
        } catch (error) {
          if (!(error instanceof DataError)) throw error;
        }
      }
    }
    return { keys, entries };
  }

  /** Writes the index: from here on there is a backup. Answers its name. */
  async putIndex(head: BackupHead, entries: readonly BackupEntry[]): Promise<FoundBackup> {
    const name = `${head.moment.slice(0, 19).replace(/[-:]/g, '')}Z-${randomHex(this.#random, 2)}`;
    const end = await streamOnce(this.#store, this.#clock, this.#indexKey(name), async (sink) => {
      const digest = createHash('sha256');
      let bytes = 0;
      const write = async (line: Buffer) => {
        digest.update(line);
        await sink(line);
      };
      await write(lineOf(head));
      for (const entry of entries) {
        bytes += entry.size;
        await write(lineOf(entry));
      }
      const last: BackupEnd = { objects: entries.length, bytes, sha256: digest.digest('hex') };
      await sink(lineOf(last));
      return last;
    });
    return { name, head, end };
  }

  /** Names of all backups, oldest first. */
  async backups(): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { key } of this.list('backups/')) names.push(key.slice('backups/'.length));
    return names;
  }

  /** An index, checked from its first line to its last. Throws `DataError`, and null where there is no such backup. */
  async readIndex(name: string, each: (entry: BackupEntry) => void): Promise<FoundBackup | null> {
    const place = this.#indexKey(name);
    const digest = createHash('sha256');
    let head: BackupHead | null = null;
    let before: string | null = null;
    let objects = 0;
    for await (const line of this.#lines(place)) {
      if (before !== null) {
        digest.update(`${before}\n`);
        if (head === null) head = parseHead(before, place);
        else {
          each(parseEntry(before, place));
          objects++;
        }
      }
      before = line;
    }
    if (before === null) return null;
    const end = parseEnd(before, place);
    if (head === null || end.sha256 !== digest.digest('hex') || end.objects !== objects)
      throw new DataError(place, 0, 'its last line does not fit those before it');
    return { name, head, end };
  }

  /** Lists what begins so; keys and answers without the prefix of all. */
  async *list(under: string): AsyncGenerator<ListedObject, void, void> {
    for await (const object of listAll(this.#store, this.#prefix + under))
      yield { ...object, key: object.key.slice(this.#prefix.length) };
  }

  async remove(key: string): Promise<void> {
    await this.#store.delete(this.#prefix + key);
  }

  #indexKey(name: string): string {
    return `${this.#prefix}backups/${name}`;
  }

  async *#lines(place: string): AsyncGenerator<string, void, void> {
    let rest: Uint8Array = Buffer.alloc(0);
    for (let from = 0; ; ) {
      const piece = await this.#reads.get(place, { range: { offset: from, length: pieceBytes } });
      if (piece === null) return;
      from += piece.bytes.length;
      const known = Buffer.concat([rest, piece.bytes]);
      const cut = known.lastIndexOf(10) + 1;
      yield* linesIn(known.subarray(0, cut));
      rest = known.subarray(cut);
      if (from < piece.size) continue;
      if (rest.length > 0) throw new DataError(place, piece.size, 'it ends within a line');
      return;
    }
  }
}

function linesIn(bytes: Uint8Array): string[] {
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split('\n');
  lines.pop();
  return lines;
}
