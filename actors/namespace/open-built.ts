import type { ActorComponents } from '../actor/components.ts';
import type { BuiltSegment } from '../compute/lanes.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { NamespaceState } from './namespace-state.ts';

type Parts = Pick<ActorComponents, 'fetcher' | 'shares'>;

/** Opens a segment that was built a moment ago. */
export function openBuilt(
  { fetcher, shares }: Parts,
  state: NamespaceState,
  key: string,
  { toc }: BuiltSegment,
): SegmentReader {
  return new SegmentReader(key, toc, fetcher, shares.of(state.identity.tenantId).owner);
}

/**
 * Has a small segment read from memory for a while, so that its namespace does not turn cold. Call once a manifest names it: of one that
 * is given up nobody would remove the bytes.
 */
export function keepFresh({ blocks }: SegmentReader, { stored }: BuiltSegment): void {
  if (stored !== null) blocks.keepFresh(stored);
}
