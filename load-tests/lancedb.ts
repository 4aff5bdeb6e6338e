/**
 * The peer of searches by vectors: LanceDB in this process, its HNSW-SQ index with its default settings. Not among the
 * dependencies: it is 100 MB, and its lock file does not install where packages of other platforms are missing. The
 * first run installs it below the temporary folder.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { peerPackages } from './peer-packages.ts';
import { temporaryFolder } from './server.ts';
import { rowOf, type VectorRows } from './vector-set.ts';

const packages = ['@lancedb/lancedb@0.37.1', 'apache-arrow@18.1.0'];

export interface Peer {
  readonly buildSeconds: number;
  /** Numbers of rows, the nearest first. */
  search(query: Float32Array, limit: number): Promise<readonly number[]>;
  close(): void;
}

/** The part of its interface that is used. */
interface Lance {
  connect(folder: string): Promise<LanceDatabase>;
  readonly Index: { hnswSq(options: { distanceType: string }): unknown };
}
interface LanceDatabase {
  createTable(name: string, rows: readonly object[]): Promise<LanceTable>;
  close(): void;
}
interface LanceTable {
  add(rows: readonly object[]): Promise<unknown>;
  createIndex(column: string, options: { config: unknown }): Promise<void>;
  vectorSearch(query: Float32Array): LanceQuery;
}
interface LanceQuery {
  distanceType(metric: string): LanceQuery;
  select(columns: readonly string[]): LanceQuery;
  limit(count: number): LanceQuery;
  toArray(): Promise<readonly { readonly id: number }[]>;
}

const rowsAtOnce = 10_000;

/** Fills a new LanceDB table with the first `count` rows, and indexes it. */
export async function lanceOf(vectors: VectorRows, count: number): Promise<Peer> {
  const { connect, Index } = await load();
  const database = await connect(temporaryFolder());
  const rows = (from: number) =>
    Array.from({ length: Math.min(rowsAtOnce, count - from) }, (_, i) => ({
      id: from + i,
      vector: [...rowOf(vectors, from + i)],
    }));
  const table = await database.createTable('vectors', rows(0));
  for (let from = rowsAtOnce; from < count; from += rowsAtOnce) await table.add(rows(from));
  const began = performance.now();
  await table.createIndex('vector', { config: Index.hnswSq({ distanceType: 'cosine' }) });
  return {
    buildSeconds: (performance.now() - began) / 1_000,
    async search(query, limit) {
      const asked = table.vectorSearch(query).distanceType('cosine').select(['id', '_distance']).limit(limit);
      return (await asked.toArray()).map(({ id }) => id);
    },
    close: () => database.close(),
  };
}

async function load(): Promise<Lance> {
  const modules = await peerPackages('lancedb', packages);
  return (await import(pathToFileURL(join(modules, '@lancedb/lancedb/dist/index.js')).href)) as Lance;
}
