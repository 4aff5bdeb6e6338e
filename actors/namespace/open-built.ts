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
 * Keeps the bytes of a small segment in memory after it was built, so that its namespace does not turn cold. Call it only after a
 * manifest names the segment: nobody closes the reader of one that was given up, so its bytes would stay.
 */
export function keepFresh({ blocks }: SegmentReader, { stored }: BuiltSegment): void {
  if (stored !== null) blocks.keepFresh(stored);
}

/** Forgets what memory holds of the segments' objects. A commit that ends after its actor was closed calls it again, for what it installed. */
export function closeReaders({ segments }: NamespaceState): void {
  for (const { reader } of segments) reader.close();
}
