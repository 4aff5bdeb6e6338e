import { assertListing } from '../../src/object-store/keys.ts';
import type {
  ListedObject,
  ListOptions,
  ListPage,
  PutResult,
  Upload,
} from '../../src/object-store/object-store.ts';

/** The moment from which the world's clocks count. */
export const epochMs = 1_700_000_000_000;

export interface StoredVersion {
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** When its key came to be, in virtual milliseconds. */
  readonly createdMs: number;
  /** When this version of it came. */
  readonly modifiedMs: number;
}

/** The truth behind every process's view of the store, without promises. Remembers what a stale listing would show. */
export class StoredObjects {
  readonly #nowMs: () => number;
  readonly #versions = new Map<string, StoredVersion>();
  readonly #deleted = new Map<string, { readonly createdMs: number; readonly deletedMs: number }>();
  readonly #uploads = new Map<string, Upload>();
  #versionsMade = 0;
  #uploadsMade = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get keys(): readonly string[] {
    return [...this.#versions.keys()].sort();
  }

  find(key: string): StoredVersion | undefined {
    return this.#versions.get(key);
  }

  store(key: string, bytes: Uint8Array): PutResult {
    const etag = `"${++this.#versionsMade}"`;
    const createdMs = this.#versions.get(key)?.createdMs ?? this.#nowMs();
    this.#versions.set(key, { bytes, etag, createdMs, modifiedMs: this.#nowMs() });
    return { kind: 'stored', etag };
  }

  /** Objects on their way, whoever sends them and whether he lives. */
  get uploads(): readonly Upload[] {
    return [...this.#uploads.values()];
  }

  beginUpload(key: string): string {
    const uploadId = String(++this.#uploadsMade).padStart(12, '0');
    this.#uploads.set(uploadId, { key, uploadId, startedAtMs: epochMs + this.#nowMs() });
    return uploadId;
  }

  /** Whether there was such an upload. */
  endUpload(uploadId: string): boolean {
    return this.#uploads.delete(uploadId);
  }

  delete(key: string): void {
    const version = this.#versions.get(key);
    if (version === undefined) return;
    this.#versions.delete(key);
    this.#deleted.set(key, { createdMs: version.createdMs, deletedMs: this.#nowMs() });
  }

  /** As of a moment that may lie in the past. */
  list(prefix: string, options: ListOptions, asOfMs: number): ListPage {
    assertListing(prefix, options);
    const after = options.after ?? '';
    const found: string[] = [];
    const isWanted = (key: string) => key.startsWith(prefix) && key > after;
    for (const [key, { createdMs }] of this.#versions)
      if (isWanted(key) && createdMs <= asOfMs) found.push(key);
    for (const [key, { createdMs, deletedMs }] of this.#deleted) {
      if (isWanted(key) && createdMs <= asOfMs && deletedMs > asOfMs && !this.#versions.has(key))
        found.push(key);
    }
    const page = found.sort().slice(0, options.limit);
    return {
      objects: page.map((key) => this.#listed(key)),
      more: found.length > page.length,
    };
  }

  #listed(key: string): ListedObject {
    const version = this.#versions.get(key);
    const size = version?.bytes.length ?? 0;
    return { key, size, modifiedAtMs: epochMs + (version?.modifiedMs ?? 0) };
  }
}
