import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { peerPackages } from '../peer-packages.ts';
import { temporaryFolder } from '../server.ts';
import { conditionsOf } from './duckdb.ts';
import { NotHere, type Peer, type Question, unasked } from './peer.ts';
import { nearestWanted, vectorAt } from './peer-corpus.ts';

const version = '0.37.1';
const packages = [`@lancedb/lancedb@${version}`, 'apache-arrow@18.1.0'];
const rowsAtOnce = 5_000;

/** The part of its interface that is used. */
interface Lance {
  connect(folder: string): Promise<{
    createTable(name: string, rows: readonly object[]): Promise<LanceTable>;
    close(): void;
  }>;
  readonly Index: { hnswSq(options: { distanceType: string }): unknown; bitmap(): unknown; btree(): unknown };
}
interface LanceTable {
  add(rows: readonly object[]): Promise<unknown>;
  createIndex(column: string, options: { config: unknown }): Promise<void>;
  countRows(filter: string): Promise<number>;
  vectorSearch(query: Float32Array): LanceQuery;
}
interface LanceQuery {
  distanceType(metric: string): LanceQuery;
  select(columns: readonly string[]): LanceQuery;
  limit(count: number): LanceQuery;
  toArray(): Promise<readonly { readonly id: string }[]>;
}

export const lancedb: Peer = {
  name: 'LanceDB',
  about:
    'in this process; bitmaps of level and host, a B-tree of status, HNSW-SQ of vectors, no index of texts',
  async open(corpus) {
    const { connect, Index } = await load();
    const database = await connect(temporaryFolder());
    const { rows } = corpus;
    const part = (from: number) =>
      rows.slice(from, from + rowsAtOnce).map((row, at) => ({
        id: row.id,
        text: row.text,
        level: row.level,
        host: row.host,
        status: row.status,
        vector: vectorAt(corpus, from + at),
      }));
    const table = await database.createTable('docs', part(0));
    for (let from = rowsAtOnce; from < rows.length; from += rowsAtOnce) await table.add(part(from));
    await table.createIndex('status', { config: Index.btree() });
    for (const column of ['level', 'host']) await table.createIndex(column, { config: Index.bitmap() });
    await table.createIndex('vector', { config: Index.hnswSq({ distanceType: 'cosine' }) });
    return {
      version,
      kinds: ['rare', 'word', 'regex', 'filter', 'both', 'nearest'],
      async ask(question: Question) {
        const { vector, kind } = question;
        if (kind === 'groups') unasked(question);
        if (vector !== undefined) {
          const asked = table.vectorSearch(vector).distanceType('cosine').select(['id', '_distance']);
          return (await asked.limit(nearestWanted).toArray()).map(({ id }) => id);
        }
        const filter = conditionsOf(question, {
          contains: (value) => `contains(text, ${value})`,
          matches: (value) => `regexp_like(text, ${value})`,
        });
        return table.countRows(filter);
      },
      close: async () => database.close(),
    };
  },
};

async function load(): Promise<Lance> {
  try {
    const modules = await peerPackages('lancedb', packages);
    return (await import(pathToFileURL(join(modules, '@lancedb/lancedb/dist/index.js')).href)) as Lance;
  } catch (error) {
    throw new NotHere(`LanceDB can't be had: ${String(error).slice(0, 200)}`);
  }
}
