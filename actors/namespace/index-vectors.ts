import { rm } from 'node:fs/promises';
import type { VectorStatistics } from '../../protocol/worker-tasks.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { BuiltGraph } from '../compute/lanes.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { tombstonesToWire } from '../storage/tombstones.ts';
import { paysForGraphs } from '../vector/plan-graphs.ts';
import { vectorsOf } from '../vector/vector-index-reader.ts';
import { chooseMerge } from './choose-merge.ts';
import { commitManifest, segmentInManifest } from './commit-manifest.ts';
import type { NamespaceState } from './namespace-state.ts';
import { overdueSegments } from './overdue-segments.ts';

/** One step of the upkeep of segments as upkeep.ts starts it. */
export interface UpkeepStep {
  /** Runs a commit of the manifest after those that were asked for before. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
  /** No flush came for a while: small segments are worth the work too. */
  readonly isQuiet: boolean;
}

/**
 * Builds graphs for a segment that has none, beside everything else, for a segment is searched without them meanwhile.
 *
 * The largest first, which is the slowest to search. Segments that will be merged wait for what they become, and while flushes
 * follow each other those as small as a flush's wait too, for they will be; what is made of segments with graphs gets its
 * own before it takes their place (compact.ts), so that no search becomes slower.
 */
export async function indexVectorsOnce(
  components: ActorComponents,
  state: NamespaceState,
  { inTurn, isQuiet }: UpkeepStep,
): Promise<boolean> {
  // While flushes follow each other, only what is of several of them.
  const bytesMin = isQuiet ? 0 : 2 * components.limits.memtableBytesMax;
  const overdue = overdueSegments(components, state);
  const segment = chooseForGraphs(state.segments, { bytesMin, isQuiet, overdue });
  if (segment === null || state.vector === null) return false;
  const built = await buildGraphsOf(components, state, segment);
  const commit = async () => {
    const withGraphs = (): OpenSegment[] =>
      state.segments.map((other) =>
        other.id === segment.id ? withOwnGraphs(other, graphsOf(built)) : other,
      );
    // Merged or dropped meanwhile: no manifest will name them, and what is in the store is found by the sweep.
    if (!state.segments.some(({ id }) => id === segment.id)) return;
    await commitManifest(components, state, { segments: withGraphs().map(segmentInManifest) });
    state.segments = withGraphs();
    await keepGraphs(components, state, built);
  };
  await inTurn(commit).finally(() => removeFiles(built));
  return true;
}

/** Pure. */
export function vectorStatistics(segments: readonly OpenSegment[]): VectorStatistics {
  let [indexed, waiting] = [0, 0];
  for (const { graphs, reader } of segments) {
    const vectors = vectorsOf(reader.toc);
    if (graphs !== null) indexed += vectors.count;
    else if (paysForGraphs(vectors)) waiting += vectors.count;
  }
  return { indexed, waiting };
}

/** The next one to index, of so many bytes; null where all that should be are. Pure. */
function chooseForGraphs(
  segments: readonly OpenSegment[],
  { bytesMin, ...when }: { readonly bytesMin: number } & Parameters<typeof chooseMerge>[1],
): OpenSegment | null {
  const merging = chooseMerge(segments, when);
  let chosen: OpenSegment | null = null;
  for (const [at, segment] of segments.entries()) {
    if (merging !== null && at >= merging.first && at <= merging.last) continue;
    const { graphs, reader } = segment;
    if (graphs !== null || segment.size < bytesMin || !paysForGraphs(vectorsOf(reader.toc))) continue;
    if (chosen === null || vectorsOf(reader.toc).count > vectorsOf(chosen.reader.toc).count) chosen = segment;
  }
  return chosen;
}

function withOwnGraphs(
  { graphsHome: _, ...segment }: OpenSegment,
  graphs: OpenSegment['graphs'],
): OpenSegment {
  return { ...segment, graphs };
}

/** Stored, and named by no manifest yet. */
export async function buildGraphsOf(
  { lanes, random, shares }: ActorComponents,
  { identity, vector }: NamespaceState,
  { reader, tombstones }: Pick<OpenSegment, 'reader' | 'tombstones'>,
): Promise<readonly BuiltGraph[]> {
  if (vector === null) return [];
  return lanes.buildGraphs(
    {
      task: 'build-graphs',
      segmentKey: reader.objectKey,
      toc: reader.toc,
      tombstones: tombstonesToWire(tombstones),
      metric: vector.metric,
      id: randomHex(random, 16),
      keyPrefix: paths.namespaceGraph(identity.namespaceId, ''),
    },
    shares.claim(identity.tenantId),
  );
}

export function graphsOf(built: readonly BuiltGraph[]): OpenSegment['graphs'] {
  return built.map(({ graph }) => graph);
}

/** Those that were not kept: the commit failed, or did not happen any more. Never rejects. */
export async function removeFiles(built: readonly BuiltGraph[]): Promise<void> {
  await Promise.allSettled(built.map(({ path }) => rm(path, { force: true })));
}

/** Brings the files of built graphs into the local cache: who searches next needs not fetch what was just made here. */
export async function keepGraphs(
  { graphFiles }: ActorComponents,
  { identity }: NamespaceState,
  built: readonly BuiltGraph[],
): Promise<void> {
  for (const { graph, path } of built)
    await graphFiles.keep(paths.namespaceGraph(identity.namespaceId, graph.id), graph, path);
}
