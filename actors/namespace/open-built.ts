import type { ActorComponents } from '../actor/components.ts';
import type { BuiltSegment } from '../compute/lanes.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { NamespaceState } from './namespace-state.ts';

/** Opens a segment that was built a moment ago. A small one is read from memory for a while, so that its namespace does not turn cold. */
export function openBuilt(
  { fetcher, shares }: Pick<ActorComponents, 'fetcher' | 'shares'>,
  state: NamespaceState,
  key: string,
  { toc, stored }: BuiltSegment,
): SegmentReader {
  const { owner } = shares.of(state.identity.tenantId);
  if (stored !== null) fetcher.options.fresh?.add(key, owner, stored);
  return new SegmentReader(key, toc, fetcher, owner);
}
