import { limits } from '../../protocol/limits.ts';
import { linkBytesPerVector } from './hnsw.ts';
import type { VectorBlockPlace } from './vector-index-reader.ts';

/** Consecutive blocks of vectors that become one graph. */
export interface GraphPart {
  readonly firstBlock: number;
  readonly endBlock: number;
  readonly firstRow: number;
  /** Where the next part begins, or the segment ends. */
  readonly endRow: number;
  readonly vectors: number;
}

/** Whether graphs over so many vectors pay. Pure, as all here. */
export function paysForGraphs(vectors: { readonly count: number; readonly dims: number }): boolean {
  const { count, dims } = vectors;
  return count >= limits.graphVectorsMin && count * dims >= limits.graphNumbersMin;
}

/** Parts of about the same size, as few as fit into memory one at a time. */
export function planGraphs(
  blocks: readonly VectorBlockPlace[],
  { dims, rowCount, bytesMax = limits.graphBytesMax }: { dims: number; rowCount: number; bytesMax?: number },
): GraphPart[] {
  const vectors = blocks.reduce((sum, { count }) => sum + count, 0);
  const vectorsMax = Math.max(1, Math.floor(bytesMax / (dims * 2 + linkBytesPerVector)));
  const parts = Math.min(blocks.length, Math.ceil(vectors / vectorsMax));
  const perPart = Math.ceil(blocks.length / Math.max(1, parts));
  return Array.from({ length: Math.ceil(blocks.length / Math.max(1, perPart)) }, (_, part) => {
    const firstBlock = part * perPart;
    const endBlock = Math.min(blocks.length, firstBlock + perPart);
    return {
      firstBlock,
      endBlock,
      firstRow: blocks[firstBlock]?.firstRow ?? 0,
      endRow: blocks[endBlock]?.firstRow ?? rowCount,
      vectors: blocks.slice(firstBlock, endBlock).reduce((sum, { count }) => sum + count, 0),
    };
  });
}
