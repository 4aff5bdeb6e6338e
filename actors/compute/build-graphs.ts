import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../src/base/assert.ts';
import { runningXxh64 } from '../../src/base/hash.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../storage/block-fetch.ts';
import { checksumText } from '../storage/segment-graph.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import { isDeleted, type Tombstones, tombstonesFromWire } from '../storage/tombstones.ts';
import { squaredLength } from '../vector/distance.ts';
import { GraphSample } from '../vector/graph-sample.ts';
import { fitsShape, type GraphShape, inShape, precisions, scaleOf } from '../vector/graph-shape.ts';
import { expansions, type GraphBuilder, graphBuilder, viewGraph } from '../vector/hnsw.ts';
import { type GraphPart, planGraphs } from '../vector/plan-graphs.ts';
import type { VectorBlock } from '../vector/vector-block.ts';
import { openVectors, type VectorIndexReader } from '../vector/vector-index-reader.ts';
import type { BuildGraphsComponents, BuildGraphsTask, BuiltGraph, GraphComponents } from './lanes.ts';

const cacheBytes = 4 * 1024 * 1024;
const filePieceBytes = 1024 * 1024;

/**
 * Graphs over the vectors of one segment, stored as objects of their own.
 *
 * 1. The segment's vectors are planned into parts that fit into memory.
 * 2. Those of a part that live are read in order and put into a graph, but for a sample, spread over all, that is asked for its
 *    neighbours before it is added, as queries will be, and compared with what is true. A graph of 8-bit numbers that does not
 *    find them is built again with 16 and with 32, and where that finds no more, as among vectors that are nearly all the same,
 *    there is none. The same sample says how far a search has to look.
 * 3. usearch writes files only: the graph goes into one beside the local cache, and from there into the store. The file
 *    stays for the thread that asked, which searches it.
 *
 * Memory: one graph, and of the segment what waits on its way.
 */
export async function buildGraphs(
  components: BuildGraphsComponents,
  task: BuildGraphsTask,
): Promise<BuiltGraph[]> {
  const { store, scratchFolder } = components;
  await mkdir(scratchFolder, { recursive: true });
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const reader = new SegmentReader(task.segmentKey, task.toc, fetcher);
  const index = await openVectors(reader, emptyReadTally());
  if (index === 'none') return [];
  const { metric } = task;
  const { isEnding } = components;
  const source = { reader, index, tombstones: tombstonesFromWire(task.tombstones), metric, isEnding };
  const graphs: BuiltGraph[] = [];
  const parts = planGraphs(index.blocks, { dims: index.dims, rowCount: reader.rowCount });
  const paths = parts.map((_, at) => join(scratchFolder, `${task.id}-${at}`));
  try {
    for (const [at, part] of parts.entries()) {
      const id = `${task.id}-${at}`;
      const built = await buildPart(source, part, paths[at] as string);
      if (built !== null)
        graphs.push(await storeGraph(components, { id, key: `${task.keyPrefix}${id}`, part, built }));
    }
  } catch (error) {
    for (const path of paths) await rm(path, { force: true });
    throw error;
  } finally {
    reader.close();
  }
  return graphs;
}

interface GraphSource {
  readonly reader: SegmentReader;
  readonly index: VectorIndexReader;
  readonly tombstones: Tombstones;
  readonly metric: GraphShape['metric'];
  readonly isEnding: () => boolean;
}

/** A graph that is saved, and found what it should. */
interface BuiltPart {
  readonly path: string;
  readonly shape: GraphShape;
  readonly expansion: number;
  readonly count: number;
  readonly leftOut: number;
}

/** A search is as quick as finds nearly all; a graph that does not find most, however long it looks, is none. */
const recallWanted = 0.99;
const recallMin = 0.95;

/** Null where no graph finds what it should. */
async function buildPart(source: GraphSource, part: GraphPart, path: string): Promise<BuiltPart | null> {
  const { rows, vectors } = await sampleOf(source, part);
  if (rows.length === 0) return null;
  const { dims } = source.index;
  const { metric } = source;
  for (const precision of precisions) {
    const scale = scaleOf(vectors, { dims, metric, precision });
    const shape = { dims, metric, precision, scale };
    const sample = new GraphSample(vectors, metric, dims);
    const added = await buildWith(source, part, { shape, sample, heldBack: new Set(rows) });
    if (added === null) continue;
    const { builder, leftOut } = added;
    builder.save(path);
    const expansion = expansionOf(path, shape, sample);
    // What is mapped must not change, so what comes next is another file.
    await rm(path);
    if (expansion === null) continue;
    builder.add(rows, inShape(vectors, shape));
    builder.save(path);
    return { path, shape, expansion, count: builder.count, leftOut };
  }
  return null;
}

/** The least that finds nearly all of what the sample should; null where even the most does not find enough. */
function expansionOf(path: string, shape: GraphShape, sample: GraphSample): number | null {
  let most: number | null = null;
  for (const expansion of expansions) {
    const recall = sample.recallOf(viewGraph(path, shape, expansion));
    if (recall >= recallWanted) return expansion;
    most = recall >= recallMin ? expansion : null;
  }
  return most;
}

/** Blocks that the sample is taken from, and of each of them as many vectors. */
const sampleBlocks = 8;
const perSampleBlock = 4;

/** Live vectors with a direction, one after the other, from blocks that are spread over the part. */
async function sampleOf(
  source: GraphSource,
  part: GraphPart,
): Promise<{ readonly rows: readonly number[]; readonly vectors: Float32Array }> {
  const { reader, index } = source;
  const count = Math.min(sampleBlocks, part.endBlock - part.firstBlock);
  const step = (part.endBlock - part.firstBlock) / count;
  const places = Array.from({ length: count }, (_, at) =>
    must(index.blocks[part.firstBlock + Math.floor(at * step)], 'a block of the part'),
  );
  const blocks = await reader.blocks.fetch(places, emptyReadTally());
  const sampled: { row: number; vector: Float32Array }[] = [];
  for (const [at, block] of blocks.entries()) {
    const { rows, values } = index.vectorsOf(block, must(places[at], 'its place'));
    const each = Math.max(1, Math.floor(rows.length / perSampleBlock));
    for (let i = 0; i < Math.min(perSampleBlock, rows.length); i++) {
      const kind = kindOf(source, { rows, values }, i * each);
      if (kind !== 'indexed') continue;
      const row = rows[i * each] as number;
      sampled.push({ row, vector: values.subarray(i * each * index.dims, (i * each + 1) * index.dims) });
    }
  }
  const vectors = new Float32Array(sampled.length * index.dims);
  for (const [at, { vector }] of sampled.entries()) vectors.set(vector, at * index.dims);
  return { rows: sampled.map(({ row }) => row), vectors };
}

/** Whether the vector at a place of its block comes into a graph. */
function kindOf(
  { tombstones, metric, index: { dims } }: GraphSource,
  { rows, values }: VectorBlock,
  at: number,
): 'indexed' | 'deleted' | 'undirected' {
  if (isDeleted(tombstones, rows[at] as number)) return 'deleted';
  const isUndirected = metric === 'cosine' && squaredLength(values, at * dims, dims) === 0;
  return isUndirected ? 'undirected' : 'indexed';
}

interface BuildPlan {
  readonly shape: GraphShape;
  readonly sample: GraphSample;
  /** Rows of the sample, which are queries first. */
  readonly heldBack: ReadonlySet<number>;
}

/** Null where there is nothing to build, or the graph's numbers do not hold the vectors. */
async function buildWith(
  source: GraphSource,
  part: GraphPart,
  { shape, sample, heldBack }: BuildPlan,
): Promise<{ readonly builder: GraphBuilder; readonly leftOut: number } | null> {
  const { reader, index } = source;
  const builder = graphBuilder(shape);
  const places = index.blocks.slice(part.firstBlock, part.endBlock);
  const { dims } = index;
  let leftOut = 0;
  let at = 0;
  for await (const raw of reader.blocks.stream(places, emptyReadTally())) {
    if (source.isEnding()) throw new Error('the server ends: its next start builds this graph');
    const block = index.vectorsOf(raw, must(places[at++], 'its place'));
    const { rows, values } = block;
    const kept: number[] = [];
    const numbers = new Float32Array(values.length);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const kind = kindOf(source, block, i);
      if (kind === 'undirected') leftOut++;
      if (kind !== 'indexed' || heldBack.has(row)) continue;
      numbers.set(values.subarray(i * dims, (i + 1) * dims), kept.length * dims);
      kept.push(row);
    }
    const vectors = numbers.subarray(0, kept.length * dims);
    const shaped = inShape(vectors, shape);
    if (!fitsShape(shaped, shape)) return null;
    builder.add(kept, shaped);
    sample.see(kept, vectors);
  }
  return builder.count === 0 ? null : { builder, leftOut };
}

async function storeGraph(
  { store, clock }: GraphComponents,
  graph: { readonly id: string; readonly key: string; readonly part: GraphPart; readonly built: BuiltPart },
): Promise<BuiltGraph> {
  const { id, key, part, built } = graph;
  const { path, shape, expansion, count, leftOut } = built;
  const { size } = await stat(path);
  const checksum = checksumText(await streamOnce(store, clock, key, (sink) => sendFile(path, sink)));
  const { firstRow, endRow } = part;
  const { precision, scale } = shape;
  return {
    graph: { id, size, checksum, firstRow, endRow, count, leftOut, precision, scale, expansion },
    path,
  };
}

/** Answers the checksum of what was sent. */
async function sendFile(path: string, sink: ByteSink): Promise<bigint> {
  const file = await open(path, 'r');
  try {
    const hash = runningXxh64();
    for (;;) {
      const piece = Buffer.allocUnsafeSlow(filePieceBytes);
      const { bytesRead } = await file.read(piece, 0, filePieceBytes);
      if (bytesRead === 0) return hash.digest();
      hash.update(piece.subarray(0, bytesRead));
      await sink(piece.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}
