/**
 * Finds in this thread's part of the local disk what should have been forgotten: of namespaces that were deleted while it was
 * closed, or elsewhere, and of segments whose merge a process did not survive. What is deleted or merged while a thread serves
 * it forgets at once.
 *
 * Each namespace that the cache has something of costs one read of its manifest. A wrong answer costs reads of the store.
 */
import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { repeat } from '../../src/base/repeat.ts';
import { namespaceOfKey, paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Manifest } from '../storage/manifest.ts';
import { cachedManifest } from '../storage/manifest-cache.ts';
import { type Committed, loadCommitted } from '../storage/manifest-store.ts';
import { keyOfObject } from '../storage/object-ref.ts';
import { objectsOfManifest } from '../storage/shared-objects.ts';
import { planRetirement } from './collect-garbage.ts';
import { manifestCodec } from './commit-manifest.ts';

type Components = Pick<ActorComponents, 'store' | 'warmCache' | 'clock' | 'logger'>;

const everyMs = 24 * 3_600_000;
const retryAfterMs = 600_000;

/** Sweeps soon after the start and once a day, until the answer is called. */
export function keepSweepingCache(components: Components): () => void {
  return repeat(components.clock, limits.cacheSweepAfterMs, async () => {
    try {
      await sweepCache(components);
      return everyMs;
    } catch (error) {
      components.logger.error('the local cache was not swept', { error: describeError(error) });
      return retryAfterMs;
    }
  });
}

/** Makes one round. Rejects with StoreError. */
export async function sweepCache(components: Components): Promise<void> {
  const { warmCache, clock } = components;
  let committed: Committed<Manifest> | 'unreadable' | null = null;
  let last: string | null = null;
  for (const key of warmCache?.objectKeys() ?? []) {
    const namespaceId = namespaceOfKey(key);
    if (namespaceId === null) continue;
    if (namespaceId !== last) {
      last = namespaceId;
      committed = await load(components, namespaceId);
      if (committed === null) await warmCache?.forgetNamespace(namespaceId);
    }
    if (committed !== null && committed !== 'unreadable' && !isCurrent(components, key, committed.value))
      await warmCache?.removeObject(key);
    await clock.yieldTurn();
  }
}

/** Null where it is gone: its deletion begins with it. */
async function load(
  { store, logger }: Components,
  namespaceId: string,
): Promise<Committed<Manifest> | 'unreadable' | null> {
  try {
    return await loadCommitted(store, paths.namespaceManifest(namespaceId), manifestCodec);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    logger.error('the cache of a damaged namespace was not swept', { error: describeError(error) });
    return 'unreadable';
  }
}

/** Whether the object of the key may still be asked for. */
function isCurrent({ warmCache }: Components, key: string, manifest: Manifest): boolean {
  const { namespaceId } = manifest;
  if (key !== paths.namespaceManifest(namespaceId))
    return (
      planRetirement(manifest, Number.POSITIVE_INFINITY).due.every(
        (object) => keyOfObject(namespaceId, object) !== key,
      ) && objectsOfManifest(manifest).includes(key)
    );
  const cached = cachedManifest(warmCache, namespaceId);
  return cached !== null && cached.value.version >= manifest.version;
}
