import { z } from '../../protocol/validate.ts';

/**
 * A graph over vectors of one segment, as the manifest names it: an immutable object beside the segment's, for a segment is
 * searched before its graphs are built, and they are built anew when it is merged.
 */
export interface SegmentGraph {
  readonly id: string;
  /** How long the whole object is, in bytes. */
  readonly size: number;
  /** xxh64 of all its bytes, in hexadecimal: a damaged one must not be opened. */
  readonly checksum: string;
  /** The rows whose vectors the graph has: from the first to before the end. */
  readonly firstRow: number;
  readonly endRow: number;
  /** Vectors in it. */
  readonly count: number;
  /** Live vectors of its rows that it leaves out, because they have no direction. */
  readonly leftOut: number;
  /** How exact the graph's numbers are: see actors/vector/graph-shape.ts. */
  readonly precision: GraphPrecision;
  readonly scale: number;
  /** Candidates that a search keeps: as many as found the neighbours of a sample when it was built. */
  readonly expansion: number;
}

const graphPrecisions = ['i8', 'f16', 'f32'] as const;
export type GraphPrecision = (typeof graphPrecisions)[number];

export function checksumText(checksum: bigint): string {
  return checksum.toString(16).padStart(16, '0');
}

/** A graph as manifests have it, in the order of `SegmentGraph`. */
export const graphWireSchema = z.tuple([
  z.string(),
  z.int(),
  z.string(),
  z.int(),
  z.int(),
  z.int(),
  z.int(),
  z.enum(graphPrecisions),
  z.number(),
  z.number(),
]);
export type GraphWire = z.output<typeof graphWireSchema>;

export function graphToWire(graph: SegmentGraph): GraphWire {
  const { id, size, checksum, firstRow, endRow, count, leftOut, precision, scale, expansion } = graph;
  return [id, size, checksum, firstRow, endRow, count, leftOut, precision, scale, expansion];
}

export function graphFromWire(wire: GraphWire): SegmentGraph {
  const [id, size, checksum, firstRow, endRow, count, leftOut, precision, scale, expansion] = wire;
  return { id, size, checksum, firstRow, endRow, count, leftOut, precision, scale, expansion };
}
