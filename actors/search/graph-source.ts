import type { ReadTally } from '../storage/block-fetch.ts';
import type { SegmentGraph } from '../storage/segment-graph.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { Graph } from '../vector/hnsw.ts';

/** Gives a search the graphs of a segment. */
export interface GraphSource {
  /** Null where there are none, or they can't be had: the segment's vectors can be looked at without. Never rejects. */
  open(segment: OpenSegment, tally: ReadTally): Promise<readonly OpenGraph[] | null>;
}

export interface OpenGraph {
  readonly graph: Graph;
  readonly of: SegmentGraph;
}

export const noGraphs: GraphSource = { open: async () => null };
