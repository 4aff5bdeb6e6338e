import type { Clock } from '../base/clock.ts';
import type { ListedObject, ObjectStore, StoredObject } from '../object-store/object-store.ts';
import { patientGet, readPatience } from '../object-store/patient-get.ts';
import { patiently } from '../object-store/patiently.ts';
import type { BackupEntry } from './backup-format.ts';
import { type BackupSite, pieceBytes } from './backup-site.ts';

/** How many copied objects one note names at most, and how many bytes of them: what has no note is copied again after an end. */
const journalEntries = 500;
const journalBytes = 32 * 1024 * 1024;
/** Milliseconds after which a note is made, however few objects it names. */
const journalEveryMs = 10_000;

/** How far a backup or restoration is. */
export interface CopyProgress {
  objects: number;
  bytes: number;
}

/** What became of copying an object: it is `gone` where somebody deleted it after it was listed. */
export type CopyOutcome = 'copied' | 'gone';

/**
 * Copies objects of the store to where backups lie, and knows what is there already: each entry under its key. Objects that are
 * never replaced are copied once and for all backups; the others are asked for again, by their etag.
 */
export class ObjectCopies {
  readonly #store: ObjectStore;
  readonly #reads: Pick<ObjectStore, 'get'>;
  readonly #site: BackupSite;
  readonly #clock: Clock;
  /** What earlier backups and attempts have, by key. */
  readonly #known: Map<string, BackupEntry>;
  readonly #entries = new Map<string, BackupEntry>();
  #unnoted: BackupEntry[] = [];
  #unnotedBytes = 0;
  #notedAt: number;
  readonly #notes: string[] = [];
  readonly progress: CopyProgress = { objects: 0, bytes: 0 };
  /** What was copied now, because no earlier backup had it. */
  readonly added: CopyProgress = { objects: 0, bytes: 0 };

  constructor(
    store: ObjectStore,
    site: BackupSite,
    components: { readonly clock: Clock; readonly known: Map<string, BackupEntry> },
  ) {
    this.#store = store;
    this.#reads = patientGet(store, components.clock);
    this.#site = site;
    this.#clock = components.clock;
    this.#known = components.known;
    this.#notedAt = components.clock.monotonic();
  }

  get entries(): ReadonlyMap<string, BackupEntry> {
    return this.#entries;
  }

  /** Keys of the notes that were made, which the index makes needless. */
  get notes(): readonly string[] {
    return this.#notes;
  }

  /** Copies an object that is never replaced, unless it is there. */
  async copyImmutable({ key, size }: Pick<ListedObject, 'key' | 'size'>): Promise<CopyOutcome> {
    if (this.#entries.has(key)) return 'copied';
    const known = this.#known.get(key);
    if (known !== undefined && known.size === size && known.at === `objects/${key}`) {
      this.#enter(known, false);
      return 'copied';
    }
    try {
      const copied = await this.#site.putImmutable(key, () => this.#pieces(key, size));
      const entry = { key, ...copied };
      this.#enter(entry, true);
      await this.#note(entry);
      return 'copied';
    } catch (error) {
      if (error instanceof Gone) return 'gone';
      throw error;
    }
  }

  /** Copies an object as it is now, and takes it out of the backup where it is gone. */
  async copyPresent(key: string): Promise<CopyOutcome> {
    const known = this.#knownOf(key);
    const found = await this.#get(key, known?.etag);
    if (found === null) {
      this.#entries.delete(key);
      return 'gone';
    }
    if (found !== 'unchanged') await this.#keep(key, found);
    else if (known !== undefined) this.#enter(known, false);
    return 'copied';
  }

  /** Copies an object that was not there before, and answers its bytes; null where it is gone. */
  async copyNew(key: string): Promise<Uint8Array | null> {
    const found = await this.#reads.get(key);
    if (found === null) return null;
    await this.#keep(key, found);
    return found.bytes;
  }

  async #keep(key: string, { bytes, etag }: StoredObject): Promise<void> {
    const { at, sha256 } = await this.#site.putContent(bytes);
    this.#enter({ key, size: bytes.length, sha256, at, etag }, this.#knownOf(key)?.at !== at);
  }

  #knownOf(key: string): BackupEntry | undefined {
    return this.#entries.get(key) ?? this.#known.get(key);
  }

  /** Takes keys out of the backup that a new attempt must meet again; their copies stay known. */
  forget(isForgotten: (key: string) => boolean): void {
    for (const [key, entry] of this.#entries) {
      if (!isForgotten(key)) continue;
      this.#entries.delete(key);
      this.#known.set(key, entry);
    }
  }

  async #get(key: string, etag: string | undefined): Promise<StoredObject | 'unchanged' | null> {
    if (etag === undefined) return this.#reads.get(key);
    return patiently(this.#clock, readPatience, () => this.#store.getIfChanged(key, etag));
  }

  async *#pieces(key: string, size: number): AsyncGenerator<Uint8Array, void, void> {
    for (let from = 0; ; ) {
      const isOne = size <= pieceBytes;
      const range = { offset: from, length: Math.min(pieceBytes, Math.max(1, size - from)) };
      const found = await this.#reads.get(key, isOne ? {} : { range });
      if (found === null) throw new Gone();
      yield found.bytes;
      from += found.bytes.length;
      if (from >= found.size) return;
    }
  }

  #enter(entry: BackupEntry, isNew: boolean): void {
    const isFirst = !this.#entries.has(entry.key);
    this.#entries.set(entry.key, entry);
    for (const [counts, counted] of [
      [this.progress, isFirst],
      [this.added, isNew],
    ] as const) {
      if (!counted) continue;
      counts.objects++;
      counts.bytes += entry.size;
    }
  }

  async #note(entry: BackupEntry): Promise<void> {
    this.#unnoted.push(entry);
    this.#unnotedBytes += entry.size;
    const isFull = this.#unnoted.length >= journalEntries || this.#unnotedBytes >= journalBytes;
    const isDue = this.#clock.monotonic() - this.#notedAt >= journalEveryMs;
    if (!isFull && !isDue) return;
    const entries = this.#unnoted;
    this.#unnoted = [];
    this.#unnotedBytes = 0;
    this.#notedAt = this.#clock.monotonic();
    this.#notes.push(await this.#site.putJournal(entries));
  }
}

/** The object that is being copied was deleted. */
class Gone extends Error {
  override name = 'Gone';
}
