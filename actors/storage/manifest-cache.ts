/**
 * The last manifest of a namespace on the local disk, so that opening it again costs no read of the store. Whether it
 * is the current one is the reader's to judge, by its owner and by the life of the thread that cached it: what a thread
 * cached last is lost where it dies.
 */
import { storedBytes, storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { DataError } from '../../src/base/assert.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeManifest, encodeManifest, type Manifest } from './manifest.ts';
import type { Committed } from './manifest-store.ts';
import type { WarmCache } from './warm-cache.ts';

const format = {
  magic: 'TBMC',
  versions: [2],
  check: storedCheck(
    z.strictObject({
      etag: z.string(),
      /** The manifest as the object store has it. */
      bytes: storedBytes,
      threadLife: z.string(),
    }),
  ),
} as const;

export interface CachedManifest extends Committed<Manifest> {
  /** The life of the thread that cached it. */
  readonly threadLife: string;
}

export function cacheManifest(
  { warmCache, threadLife }: { readonly warmCache: WarmCache | null; readonly threadLife: string },
  { value, etag }: Committed<Manifest>,
): void {
  const bytes = encodeManifest(value);
  warmCache?.put(
    paths.namespaceManifest(value.namespaceId),
    encodeRecord(format, { etag, bytes, threadLife }),
  );
}

export function cachedManifest(cache: WarmCache | null, namespaceId: string): CachedManifest | null {
  const name = paths.namespaceManifest(namespaceId);
  const found = cache?.get(name);
  if (found === undefined || found === null) return null;
  try {
    const { etag, bytes, threadLife } = decodeRecord(found, name, format);
    const manifest = decodeManifest(bytes, paths.namespaceManifest(namespaceId));
    return { value: manifest, etag, size: bytes.byteLength, threadLife };
  } catch (error) {
    // A damaged cache is an empty cache.
    if (error instanceof DataError) return null;
    throw error;
  }
}

/**
 * After a crash an older manifest may be in the cache than in the store. So a thread that has flushed everything leaves
 * its log's id and its own life's as the last thing that it puts; only manifests that it cached itself, under that log,
 * are taken for current. What a thread cached that died before it may be older than what it committed.
 */
export interface OrderlyEnd {
  readonly logId: string;
  readonly threadLife: string;
}

const orderlyEnd = 'meta/orderly-end';

export function noteOrderlyEnd(cache: WarmCache, { logId, threadLife }: OrderlyEnd): void {
  cache.put(orderlyEnd, Buffer.from(`${logId} ${threadLife}`));
}

/** How the thread of one of the predecessors ended; null where none of them ended in order. Asked once: it forgets. */
export function takeOrderlyEnd(cache: WarmCache, predecessors: readonly string[]): OrderlyEnd | null {
  const noted = cache.get(orderlyEnd);
  cache.remove(orderlyEnd);
  const [logId = '', threadLife = ''] = Buffer.from(noted ?? [])
    .toString()
    .split(' ');
  return predecessors.includes(logId) ? { logId, threadLife } : null;
}
