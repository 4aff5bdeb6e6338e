import { assertListing } from '../../src/object-store/keys.ts';
import type { ListOptions, ListPage, PutResult } from '../../src/object-store/object-store.ts';

export interface StoredVersion {
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** When its key came to be, in virtual milliseconds. */
  readonly createdMs: number;
}

/** The truth behind every process's view of the store, without promises. Remembers what a stale listing would show. */
export class StoredObjects {
  readonly #nowMs: () => number;
  readonly #versions = new Map<string, StoredVersion>();
  readonly #deleted = new Map<string, { readonly createdMs: number; readonly deletedMs: number }>();
  #versionsMade = 0;

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
    this.#versions.set(key, { bytes, etag, createdMs });
    return { kind: 'stored', etag };
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
      objects: page.map((key) => ({ key, size: this.#versions.get(key)?.bytes.length ?? 0 })),
      more: found.length > page.length,
    };
  }
}
