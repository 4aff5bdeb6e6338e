import { DataError } from '../../src/base/assert.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { decodeManifest, encodeManifest, type Manifest } from './manifest.ts';
import type { Committed } from './manifest-store.ts';
import type { WarmCache } from './warm-cache.ts';

/**
 * The last manifest of a namespace on the local disk, so that opening it again costs no read of the store. Whether it
 * is the current one is the reader's to judge, by its owner.
 */
const magic = 'TBMC';
const format = 1;
const nameOf = (namespaceId: string) => `meta/manifest/${namespaceId}`;

export function cacheManifest(cache: WarmCache | null, committed: Committed<Manifest>): void {
  const bytes = encodeManifest(committed.value);
  cache?.put(nameOf(committed.value.namespaceId), encodeRecord(magic, format, { etag: committed.etag, bytes }));
}

export function cachedManifest(cache: WarmCache | null, namespaceId: string): Committed<Manifest> | null {
  const name = nameOf(namespaceId);
  const found = cache?.get(name);
  if (found === undefined || found === null) return null;
  try {
    const { etag, bytes } = decodeRecord(found, name, magic, format) as { etag: string; bytes: Uint8Array };
    return { value: decodeManifest(bytes, name), etag, size: bytes.byteLength };
  } catch (error) {
    // A damaged cache is an empty cache.
    if (error instanceof DataError) return null;
    throw error;
  }
}
