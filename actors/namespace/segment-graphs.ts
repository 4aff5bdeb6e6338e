import type { VectorConfig } from '../../protocol/namespace.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { OpenedOnce } from '../../src/base/single-flight.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { GraphSource, OpenGraph } from '../search/graph-source.ts';
import { MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import type { SegmentGraph } from '../storage/segment-graph.ts';
import type { OpenSegment } from '../storage/snapshot.ts';

/** They go with the list of a segment's graphs, which a segment keeps for as long as it has them. */
const opened = new OpenedOnce<readonly SegmentGraph[], readonly OpenGraph[] | 'unusable'>();

/**
 * The graphs of a namespace's segments, opened with the first search that asks for them. One that is damaged or gone is
 * logged once and done without; one that can't be fetched at this moment is tried again by the next search.
 */
export class SegmentGraphs implements GraphSource {
  readonly #components: ActorComponents;
  readonly #namespaceId: string;
  readonly #vector: VectorConfig;

  constructor(components: ActorComponents, namespaceId: string, vector: VectorConfig) {
    this.#components = components;
    this.#namespaceId = namespaceId;
    this.#vector = vector;
  }

  async open({ graphs, graphsHome }: OpenSegment, tally: ReadTally): Promise<readonly OpenGraph[] | null> {
    if (graphs === null || graphs.length === 0) return null;
    const known = opened.atHand(graphs);
    if (known !== null) return known === 'unusable' ? null : known;
    try {
      const found = await opened.open(graphs, () =>
        this.#openAll(graphs, graphsHome ?? this.#namespaceId, tally),
      );
      return found === 'unusable' ? null : found;
    } catch (error) {
      this.#log('graphs are not to be had; vectors are searched without them', error);
      return null;
    }
  }

  async #openAll(
    graphs: readonly SegmentGraph[],
    home: string,
    tally: ReadTally,
  ): Promise<readonly OpenGraph[] | 'unusable'> {
    try {
      return await Promise.all(graphs.map((graph) => this.#openOne(graph, home, tally)));
    } catch (error) {
      if (!(error instanceof DataError || error instanceof MissingObjectError)) throw error;
      this.#log('a graph is damaged or gone; vectors are searched without it', error);
      return 'unusable';
    }
  }

  async #openOne(of: SegmentGraph, home: string, tally: ReadTally): Promise<OpenGraph> {
    const key = paths.namespaceGraph(home, of.id);
    const { dims, metric } = this.#vector;
    const shape = { dims, metric, precision: of.precision, scale: of.scale };
    return { graph: await this.#components.graphFiles.open(key, of, shape, tally), of };
  }

  #log(message: string, error: unknown): void {
    this.#components.logger.error(message, { namespaceId: this.#namespaceId, error: describeError(error) });
  }
}
