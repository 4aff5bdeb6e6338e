import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../src/base/assert.ts';
import { runningXxh64 } from '../../src/base/hash.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { BlockCache, BlockFetcher, emptyReadReport } from '../storage/block-fetch.ts';
import { checksumText, type SegmentGraph } from '../storage/segment-graph.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import { isDeleted, type Tombstones, tombstonesFromWire } from '../storage/tombstones.ts';
import { squaredLength } from '../vector/distance.ts';
import { GraphSample } from '../vector/graph-sample.ts';
import { fitsShape, type GraphShape, inShape, precisionsOf, scaleOf } from '../vector/graph-shape.ts';
import { type GraphBuilder, graphBuilder } from '../vector/hnsw.ts';
import { type GraphPart, planGraphs } from '../vector/plan-graphs.ts';
import { openVectors, type VectorIndexReader } from '../vector/vector-index-reader.ts';
import type { BuildGraphsTask, BuiltGraph, GraphComponents } from './lanes.ts';

/**
 * Graphs over the vectors of one segment, stored as objects of their own.
 *
 * 1. The segment's vectors are planned into parts that fit into memory.
 * 2. Those of a part that live are read in order and put into a graph. A few of them, spread over all, are asked for their
 *    neighbours afterwards and compared with what is true: a graph of 8-bit numbers that does not find them is built again
 *    with 16 and with 32, and where that finds no more, as among vectors that are nearly all the same, there is none.
 * 3. usearch writes files only: the graph goes into one beside the local cache, and from there into the store. The file
 *    stays for the thread that asked, which searches it.
 *
 * Memory: one graph, and of the segment what waits on its way.
 */
const cacheBytes = 4 * 1024 * 1024;
const filePieceBytes = 1024 * 1024;

export async function buildGraphs(components: GraphComponents, task: BuildGraphsTask): Promise<BuiltGraph[]> {
  const { store } = components;
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const reader = new SegmentReader(task.segmentKey, task.toc, fetcher);
  const index = await openVectors(reader, emptyReadReport());
  if (index === 'none') return [];
  const source = { reader, index, tombstones: tombstonesFromWire(task.tombstones), metric: task.metric };
  const graphs: BuiltGraph[] = [];
  const parts = planGraphs(index.blocks, { dims: index.dims, rowCount: reader.rowCount });
  try {
    for (const [at, part] of parts.entries()) {
      const built = await buildPart(source, part);
      if (built === null) continue;
      const id = `${task.id}-${at}`;
      graphs.push(await storeGraph(components, { id, key: `${task.keyPrefix}${id}`, part, built }));
    }
  } catch (error) {
    for (const { path } of graphs) await rm(path, { force: true });
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
}

interface BuiltPart {
  readonly builder: GraphBuilder;
  readonly shape: GraphShape;
  readonly leftOut: number;
}

async function buildPart(source: GraphSource, part: GraphPart): Promise<BuiltPart | null> {
  const queries = await sampleOf(source, part);
  if (queries.length === 0) return null;
  const { dims } = source.index;
  const scale = source.metric === 'cosine' ? 1 : scaleOf(queries);
  for (const precision of precisionsOf(source.metric)) {
    const built = await buildWith(source, part, { dims, metric: source.metric, precision, scale }, queries);
    if (built !== null) return built;
  }
  return null;
}

/** Blocks that the sample is taken from, and of each of them as many vectors. */
const sampleBlocks = 8;
const perSampleBlock = 4;

/** Vectors of the part, one after the other, from blocks that are spread over it. */
async function sampleOf({ reader, index }: GraphSource, part: GraphPart): Promise<Float32Array> {
  const count = Math.min(sampleBlocks, part.endBlock - part.firstBlock);
  const step = (part.endBlock - part.firstBlock) / count;
  const places = Array.from({ length: count }, (_, at) =>
    must(index.blocks[part.firstBlock + Math.floor(at * step)], 'a block of the part'),
  );
  const blocks = await reader.blocks.fetch(places, emptyReadReport());
  const { dims } = index;
  const samples = blocks.flatMap((block, at) => {
    const { rows, values } = index.vectorsOf(block, must(places[at], 'its place'));
    const each = Math.max(1, Math.floor(rows.length / perSampleBlock));
    return Array.from({ length: Math.min(perSampleBlock, rows.length) }, (_, i) =>
      values.slice(i * each * dims, (i * each + 1) * dims),
    );
  });
  const directed = samples.filter((vector) => squaredLength(vector) > 0);
  const queries = new Float32Array(directed.length * dims);
  for (const [at, vector] of directed.entries()) queries.set(vector, at * dims);
  return queries;
}

/** Null where the graph does not find what it should, or its numbers do not hold the vectors. */
async function buildWith(
  { reader, index, tombstones, metric }: GraphSource,
  part: GraphPart,
  shape: GraphShape,
  queries: Float32Array,
): Promise<BuiltPart | null> {
  const builder = graphBuilder(shape);
  const sample = new GraphSample(queries, metric, shape.dims);
  const places = index.blocks.slice(part.firstBlock, part.endBlock);
  const { dims } = index;
  let leftOut = 0;
  let at = 0;
  for await (const block of reader.blocks.stream(places, emptyReadReport())) {
    const { rows, values } = index.vectorsOf(block, must(places[at++], 'its place'));
    const kept: number[] = [];
    const numbers = new Float32Array(values.length);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (isDeleted(tombstones, row)) continue;
      if (metric === 'cosine' && squaredLength(values, i * dims, dims) === 0) {
        leftOut++;
        continue;
      }
      numbers.set(values.subarray(i * dims, (i + 1) * dims), kept.length * dims);
      kept.push(row);
    }
    const vectors = numbers.subarray(0, kept.length * dims);
    const shaped = inShape(vectors, shape);
    if (!fitsShape(shaped, shape)) return null;
    builder.add(kept, shaped);
    sample.see(kept, vectors);
  }
  if (builder.count === 0) return null;
  const finds = sample.isFoundBy((query, count) => builder.nearest(query, count));
  return finds ? { builder, shape, leftOut } : null;
}

async function storeGraph(
  { store, clock, scratchFolder }: GraphComponents,
  graph: { readonly id: string; readonly key: string; readonly part: GraphPart; readonly built: BuiltPart },
): Promise<BuiltGraph> {
  const { id, key, part, built } = graph;
  const { builder, shape, leftOut } = built;
  await mkdir(scratchFolder, { recursive: true });
  const path = join(scratchFolder, id);
  try {
    builder.save(path);
    const { size } = await stat(path);
    const checksum = await streamOnce(store, clock, key, (sink) => sendFile(path, sink));
    const { firstRow, endRow } = part;
    const { precision, scale } = shape;
    const stored: SegmentGraph = {
      id,
      size,
      checksum: checksumText(checksum),
      firstRow,
      endRow,
      count: builder.count,
      leftOut,
      precision,
      scale,
    };
    return { graph: stored, path };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
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
