import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import type { PlannedView } from './plan-view.ts';
import { type ClusterView, decodeView, encodeView, type LoadedView, loadView } from './view.ts';

export interface ViewComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}

/** A change that others kept overtaking this often is given up: something is wrong with this store. */
const attemptsMax = 20;
/** Changes of one call whose outcome was not known; a store that goes on so is left to whoever calls next. */
const unknownMax = 5;
/** After a change whose outcome is not known; a store that is throttled wants rest. */
const unknownPauseMs = 200;

/**
 * Changes the cluster view: asks for the view that follows the present one, and again after every change that was overtaken.
 * Null where nothing is to be changed. Throws where the outcome stays unknown: the change may have been made, or come to be.
 */
export async function changeView(
  components: ViewComponents,
  plan: (view: ClusterView) => PlannedView | null | Promise<PlannedView | null>,
): Promise<ClusterView | null> {
  let unknown = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const loaded = await loadView(components.store);
    const planned = await plan(loaded.view);
    if (planned === null) return null;
    const { version, placement, members, removed } = planned;
    const next = { version, placement, nonce: randomHex(components.random, 16), members, removed };
    const onUnknown = (error: StoreError) => {
      if (++unknown === unknownMax) throw error;
    };
    if (await replaceView(components, { next, etag: loaded.etag }, onUnknown)) return next;
  }
  throw new Error('the cluster view could not be changed: other processes kept changing it');
}

/** True where the view is now `next`; also where that is learned only from the object itself. */
async function replaceView(
  { store, clock }: Pick<ViewComponents, 'store' | 'clock'>,
  { next, etag }: { readonly next: ClusterView; readonly etag: LoadedView['etag'] },
  onUnknown: (error: StoreError) => void,
): Promise<boolean> {
  const bytes = [encodeView(next)];
  try {
    const put =
      etag === null
        ? await store.putIfAbsent(paths.view, bytes)
        : await store.putIfMatch(paths.view, bytes, etag);
    if (put.kind === 'stored') return true;
  } catch (error) {
    if (!(error instanceof StoreError) || error.outcome === 'not-applied') throw error;
    onUnknown(error);
    await clock.sleep(unknownPauseMs);
  }
  const found = await store.get(paths.view);
  return found !== null && decodeView(found.bytes).nonce === next.nonce;
}
