import { DataError } from '../../src/base/assert.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { paths } from '../../src/object-store/paths.ts';
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
  cache?.put(
    nameOf(committed.value.namespaceId),
    encodeRecord(magic, format, { etag: committed.etag, bytes }),
  );
}

export function cachedManifest(cache: WarmCache | null, namespaceId: string): Committed<Manifest> | null {
  const name = nameOf(namespaceId);
  const found = cache?.get(name);
  if (found === undefined || found === null) return null;
  try {
    const { etag, bytes } = decodeRecord(found, name, magic, format) as { etag: string; bytes: Uint8Array };
    const manifest = decodeManifest(bytes, paths.namespaceManifest(namespaceId));
    return { value: manifest, etag, size: bytes.byteLength };
  } catch (error) {
    // A damaged cache is an empty cache.
    if (error instanceof DataError) return null;
    throw error;
  }
}

/**
 * After a crash an older manifest may be in the cache than in the store. So a process that has flushed everything leaves
 * its log's id as the last thing that it puts; only manifests of a process that did are taken for current.
 */
const orderlyEnd = 'meta/orderly-end';

export function noteOrderlyEnd(cache: WarmCache, logId: string): void {
  cache.put(orderlyEnd, Buffer.from(logId));
}

/** The predecessors whose cached manifests are surely the last ones. Asked once: it forgets the note. */
export function takeOrderlyEnd(cache: WarmCache, predecessors: readonly string[]): ReadonlySet<string> {
  const noted = cache.get(orderlyEnd);
  cache.remove(orderlyEnd);
  const logId = noted === undefined ? '' : Buffer.from(noted).toString();
  return new Set(predecessors.filter((predecessor) => predecessor === logId));
}
