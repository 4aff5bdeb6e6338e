/**
 * The nearest rows as graphs tell, their distances as the vectors do.
 *
 * 1. Each graph names the nearest of its vectors, as many as should have enough rows among them that are looked at; four
 *    times as many where it named too few.
 * 2. Of what all graphs named, the nearest are compared by their own vectors, and then those that are hardly farther: the
 *    numbers of graphs are rounded, and the first comparisons tell by how much.
 */
import { must } from '../../src/base/assert.ts';
import type { Block } from '../storage/block-fetch.ts';
import type { DistanceFrom } from '../vector/distance.ts';
import type { Nearest } from '../vector/nearest.ts';
import { startOfRow } from '../vector/vector-block.ts';
import type { VectorBlockPlace } from '../vector/vector-index-reader.ts';
import type { OpenGraph } from './graph-source.ts';
import type { NearRow, SearchedSegment } from './near-row.ts';
import { askMax, withSpare } from './plan-nearest.ts';
import type { QueryContext } from './query.ts';

export interface GraphSearch extends SearchedSegment {
  readonly graphs: readonly OpenGraph[];
  /** How many of its nearest each graph names first. */
  readonly ask: number;
}

interface Named {
  readonly searched: GraphSearch;
  readonly row: number;
  readonly distance: number;
}

interface Wanted {
  readonly distances: DistanceFrom;
  readonly count: number;
  readonly nearest: Nearest<NearRow>;
}

/** Answers the segments whose every vector has to be looked at, because their graphs could not tell. */
export async function nearestByGraphs(
  context: QueryContext,
  searches: readonly GraphSearch[],
  wanted: Wanted,
): Promise<readonly SearchedSegment[]> {
  const unanswered: SearchedSegment[] = [];
  const named: Named[] = [];
  for (const searched of searches) {
    const found = await namedBy(context, searched, wanted);
    if (found === null) unanswered.push(searched);
    else named.push(...found);
  }
  named.sort((a, b) => a.distance - b.distance);
  const most = named.slice(0, withSpare(wanted.count));
  const error = await compare(context, most.slice(0, wanted.count), wanted);
  // What is farther by more than graphs err here is not among the nearest.
  const farthest = (most[wanted.count - 1]?.distance ?? 0) + 2 * error;
  const compared = most.filter(({ distance }, at) => at < wanted.count || distance <= farthest);
  await compare(context, compared.slice(wanted.count), wanted);
  for (const searched of searches)
    if (mayHaveLeftOut(searched, wanted) && !unanswered.includes(searched))
      unanswered.push(without(searched, compared));
  return unanswered;
}

/** Rows that were compared are not offered a second time. */
function without(searched: GraphSearch, compared: readonly Named[]): SearchedSegment {
  const rows = new Set(compared.filter((named) => named.searched === searched).map(({ row }) => row));
  const { segment, index, selected } = searched;
  const has = (row: number) => selected.has(row) && !rows.has(row);
  const list = () => selected.list().filter((row) => !rows.has(row));
  return { segment, index, selected: { count: selected.count, has, list } };
}

/** Null where a graph does not name enough rows that are looked at. */
async function namedBy(
  { slice }: QueryContext,
  searched: GraphSearch,
  { distances, count }: Wanted,
): Promise<Named[] | null> {
  const { selected } = searched;
  const named: Named[] = [];
  for (const { graph, of } of searched.graphs) {
    for (let ask = searched.ask; ; ask = Math.min(askMax, ask * 4)) {
      const { rows, distances: rough } = graph.nearest(distances.query, Math.min(ask, of.count));
      const found: Named[] = [];
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at] as number;
        if (selected.has(row)) found.push({ searched, row, distance: rough[at] as number });
      }
      if (slice.due()) await slice.giveWay();
      if (found.length >= count || slice.timedOut) {
        named.push(...found);
        break;
      }
      // It has no more of them, or they are too far down.
      if (ask >= Math.min(askMax, of.count)) return null;
    }
  }
  return named;
}

/** Compares the rows that graphs named by their own vectors. Answers by how much a graph was wrong at most. */
async function compare(context: QueryContext, named: readonly Named[], wanted: Wanted): Promise<number> {
  let error = 0;
  for (const searched of new Set(named.map((candidate) => candidate.searched))) {
    const { segment, index } = searched;
    const candidates = named.filter((candidate) => candidate.searched === searched);
    const { reader } = segment;
    const places = candidates.map(({ row }) => must(index.blocks[index.blockOfRow(row)], 'a block'));
    const blocks = await blocksAt(context, reader.blocks, places);
    for (const [at, { row, distance: rough }] of candidates.entries()) {
      const place = places[at] as VectorBlockPlace;
      const block = index.vectorsOf(blocks[at] as Block, place);
      const start = startOfRow(block, row);
      if (start < 0) continue;
      const candidate = {
        distance: wanted.distances.to(block.values, start),
        sequence: reader.toc.minSequence + row,
      };
      error = Math.max(error, Math.abs(candidate.distance - rough));
      if (wanted.nearest.wants(candidate)) wanted.nearest.add({ ...candidate, row, memtable: null, segment });
    }
    if (context.slice.due()) await context.slice.giveWay();
  }
  return error;
}

/** Hot: mostly all of them are in memory, and then nothing is waited for. */
function blocksAt(
  { slice, tally }: QueryContext,
  blocks: SearchedSegment['segment']['reader']['blocks'],
  places: readonly VectorBlockPlace[],
): Block[] | Promise<Block[]> {
  const found: Block[] = [];
  for (const { offset } of places) {
    const block = blocks.cached(offset);
    if (block === undefined) return slice.waitFor(blocks.fetch(places, tally));
    found.push(block);
  }
  return found;
}

/** Vectors without a direction are in no graph; they are nearer than those of the opposite one. */
function mayHaveLeftOut({ graphs }: GraphSearch, { nearest }: Wanted): boolean {
  return (
    graphs.some(({ of }) => of.leftOut > 0) &&
    nearest.wants({ distance: 1, sequence: Number.MAX_SAFE_INTEGER })
  );
}
