/** Segments with graphs over their vectors, and what searches of them should answer. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraphs } from '../../actors/compute/build-graphs.ts';
import type { BuiltGraph } from '../../actors/compute/lanes.ts';
import type { GraphSource, OpenGraph } from '../../actors/search/graph-source.ts';
import { BlockCache, BlockFetcher } from '../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import type { OpenSegment } from '../../actors/storage/snapshot.ts';
import { noTombstones, tombstonesToWire, withDeleted } from '../../actors/storage/tombstones.ts';
import type { Metric } from '../../actors/vector/distance.ts';
import { viewGraph } from '../../actors/vector/hnsw.ts';
import { systemClock } from '../../src/base/clock.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from './segments.ts';

const segmentKey = 'ns/ab/n/segment/s';
const graphPrefix = 'ns/ab/n/graph/';

/** The number of the last file; files are mapped until the process ends: none may take another's place. */
let lastNumber = 0;

/** A folder of this process, for files of graphs. */
export const scratchFolder = mkdtempSync(join(tmpdir(), 'tidebase-graph-tests-'));
process.on('exit', () => rmSync(scratchFolder, { recursive: true, force: true }));

export const filesIn = (folder: string): string[] => readdirSync(folder);

/** As those of embeddings: near each other in a few directions, of many that they could have. */
export function vectorsLike(random: () => number, count: number, dims: number): Float32Array[] {
  const directions = Array.from({ length: 12 }, () =>
    Float32Array.from({ length: dims }, () => random() - 0.5),
  );
  return Array.from({ length: count }, () => {
    const vector = new Float32Array(dims);
    for (const direction of directions) {
      const part = random() + random() - 1;
      for (let i = 0; i < dims; i++) vector[i] = (vector[i] as number) + part * (direction[i] as number);
    }
    return vector;
  });
}

/** Document d1 of sequence 1, and so on. */
export function vectorRow(sequence: number, vector: Float32Array | null, meta: object = {}): TestRow {
  const id = `d${sequence}`;
  return {
    id,
    sequence,
    writtenAt: 1.7e15 + sequence,
    entry: entryOf({ id, text: null, meta: Buffer.from(JSON.stringify(meta)), vector }),
  };
}

export interface GraphedSegment {
  readonly store: CountingStore;
  readonly segment: OpenSegment;
  readonly built: readonly BuiltGraph[];
}

export async function graphedSegment(
  rows: readonly TestRow[],
  { metric, deleted = [] }: { readonly metric: Metric; readonly deleted?: readonly number[] },
): Promise<GraphedSegment> {
  const { toc, bytes } = await buildSegment(rows, {}, segmentKey);
  const store = new CountingStore();
  await store.putIfAbsent(segmentKey, [bytes]);
  const tombstones = withDeleted(noTombstones, [...deleted]);
  const built = await buildGraphs(
    { store, clock: systemClock, scratchFolder, isEnding: () => false },
    {
      task: 'build-graphs',
      segmentKey,
      toc,
      tombstones: tombstonesToWire(tombstones),
      metric,
      id: `g${++lastNumber}`,
      keyPrefix: graphPrefix,
    },
  );
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(100_000_000) });
  const reader = new SegmentReader(segmentKey, toc, fetcher);
  const graphs = built.map(({ graph }) => graph);
  return { store, segment: { id: 's', size: bytes.length, reader, tombstones, graphs }, built };
}

/** Opens what was built, and counts how often its graphs are asked. */
export class CountingGraphs implements GraphSource {
  asked = 0;
  readonly #opened: readonly OpenGraph[];

  constructor(
    { built }: Pick<GraphedSegment, 'built'>,
    shape: { readonly dims: number; readonly metric: Metric },
  ) {
    this.#opened = built.map(({ graph: of, path }) => {
      const { precision, scale, expansion } = of;
      const graph = viewGraph(path, { ...shape, precision, scale }, expansion);
      const nearest = (query: Float32Array, wanted: number) => {
        this.asked++;
        return graph.nearest(query, wanted);
      };
      return { graph: { nearest }, of };
    });
  }

  async open(): Promise<readonly OpenGraph[]> {
    return this.#opened;
  }
}

export interface NaiveVector {
  readonly sequence: number;
  readonly vector: Float32Array;
}

/** Every vector sorted by its distance, the newer of two that are equally near first. */
export function naiveNearest(
  vectors: readonly NaiveVector[],
  query: readonly number[],
  { metric, limit }: { readonly metric: Metric; readonly limit: number },
): { readonly sequence: number; readonly distance: number }[] {
  const from = Float32Array.from(query);
  return vectors
    .map(({ sequence, vector }) => ({ sequence, distance: naiveDistance(from, vector, metric) }))
    .sort((a, b) => a.distance - b.distance || b.sequence - a.sequence)
    .slice(0, limit);
}

function naiveDistance(a: Float32Array, b: Float32Array, metric: Metric): number {
  let [dot, ofA, ofB, difference] = [0, 0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as number, b[i] as number];
    dot += x * y;
    ofA += x * x;
    ofB += y * y;
    difference += (x - y) * (x - y);
  }
  if (metric === 'euclidean') return Math.sqrt(difference);
  const lengths = Math.sqrt(ofA * ofB);
  return lengths === 0 ? 1 : 1 - Math.max(-1, Math.min(1, dot / lengths));
}
