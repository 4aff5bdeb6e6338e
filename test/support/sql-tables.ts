/** Random documents for SQL, as a namespace's snapshot and as rows of a table. */
import { rowIndexes } from '../../actors/compute/row-indexes.ts';
import { BlockCache, BlockFetcher } from '../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../actors/storage/snapshot.ts';
import { noTombstones, withDeleted } from '../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../actors/text/searchable-memtable.ts';
import type { Chance } from '../simulation/chance.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from './segments.ts';

export interface SqlRow {
  readonly id: string;
  readonly text: string;
  /** By column: integers as bigint, floats as number. Undefined: the key is missing. */
  readonly values: Readonly<Record<string, bigint | number | string | null | undefined>>;
}

/** What DuckDB makes of the columns. */
export const sqlTable = [
  ['a', 'BIGINT'],
  ['b', 'BIGINT'],
  ['wide', 'BIGINT'],
  ['x', 'DOUBLE'],
  ['y', 'DOUBLE'],
  ['s', 'VARCHAR'],
  ['t', 'VARCHAR'],
  ['rare', 'VARCHAR'],
  ['d', 'DATE'],
  ['w', 'TIMESTAMP'],
] as const;

/** As if an import had said so. */
export const temporalKeys = ['d', 'w'];
const two = (number: number) => String(number).padStart(2, '0');

const words = ['', 'a', 'ab', 'A', 'abc%', 'a_c', 'größe', '潮汐', '𝒳y', 'x\ny', "it's", '10', 'zz top'];

export function randomSqlRow(chance: Chance, number: number): SqlRow {
  const maybe = <T>(share: number, value: () => T): T | null | undefined =>
    chance.happens(share) ? value() : chance.happens(0.5) ? null : undefined;
  return {
    id: `d${number}`,
    text: `${chance.pick(['Fence', 'tide', 'harbour', ''])} ${chance.pick(['log', 'Segment', 'a.b'])} ${number % 7}`,
    values: {
      a: maybe(0.9, () => BigInt(chance.integer(-3, 5))),
      b: maybe(0.8, () => BigInt(chance.integer(-100_000, 5_000_000))),
      wide: maybe(0.7, () =>
        chance.happens(0.6)
          ? BigInt(chance.integer(-2, 2))
          : BigInt(chance.integer(-20, 20)) * 1_000_000_000_000_007n,
      ),
      // Sums of quarters are exact in any order.
      x: maybe(0.85, () => chance.integer(-40, 40) / 4 + 0.25 * (chance.happens(0.5) ? 1 : 3)),
      y: maybe(0.5, () => chance.integer(0, 3) + 0.5),
      s: maybe(0.9, () => chance.pick(words)),
      t: maybe(0.8, () => `${chance.pick(words)}${chance.integer(0, 40)}`),
      rare: maybe(0.03, () => 'rare'),
      d: maybe(0.85, () => `${chance.pick([1969, 2000, 2024])}-02-${two(chance.integer(26, 28))}`),
      w: maybe(
        0.85,
        () =>
          `2024-01-${two(chance.integer(1, 3))} ${two(chance.integer(0, 23))}:${two(chance.integer(0, 59))}:07`,
      ),
    },
  };
}

export function metaJson({ values }: SqlRow): string {
  const members = Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [`${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`];
  });
  return `{${members.join(',')}}`;
}

/** In segments and memtables; some rows were replaced or deleted since. */
export async function sqlSnapshot(
  chance: Chance,
  rows: readonly SqlRow[],
): Promise<{ readonly snapshot: Snapshot; readonly live: readonly SqlRow[] }> {
  const live: SqlRow[] = [];
  const store = new CountingStore();
  const segments: OpenSegment[] = [];
  let sequence = 0;
  const rowsOf = (some: readonly SqlRow[]): TestRow[] =>
    some.map((row) => {
      const meta = Buffer.from(metaJson(row));
      sequence++;
      const { id } = row;
      const entry = entryOf({ id, text: Buffer.from(row.text), meta, vector: null });
      return { id, sequence, writtenAt: 1.7e15 + sequence, entry };
    });
  const cut = chance.integer(0, rows.length);
  const segmentCount = chance.integer(1, 3);
  for (let number = 0; number < segmentCount; number++) {
    const from = Math.floor((cut * number) / segmentCount);
    const some = rows.slice(from, Math.floor((cut * (number + 1)) / segmentCount));
    if (some.length === 0) continue;
    const key = `ns/ab/n/segment/s${number}`;
    const { toc, bytes } = await buildSegment(rowsOf(some), { indexes: rowIndexes(temporalKeys) }, key);
    await store.putIfAbsent(key, [bytes]);
    const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(10_000_000) });
    const deleted = some.flatMap((_, at) => (chance.happens(0.1) ? [at] : []));
    live.push(...some.filter((_, at) => !deleted.includes(at)));
    const reader = new SegmentReader(key, toc, fetcher);
    const tombstones = withDeleted(noTombstones, deleted);
    segments.push({ id: `s${number}`, size: bytes.length, reader, tombstones, graphs: null });
  }
  const memtable = searchableMemtable();
  for (const row of rowsOf(rows.slice(cut))) memtable.add(row.entry, 0, row.sequence, row.writtenAt);
  for (const row of rows.slice(cut)) {
    if (chance.happens(0.1)) memtable.supersede(row.id, ++sequence);
    else live.push(row);
  }
  const snapshot = {
    version: 1,
    sequence,
    documents: live.length,
    memtables: [{ memtable, rowCount: memtable.rowCount }],
    segments: segments.reverse(),
    temporalKeys: new Set(temporalKeys),
  };
  return { snapshot, live };
}

const literal = (value: bigint | number | string | null | undefined): string => {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
};

/** Statements that make the same table elsewhere. */
export function tableStatements(rows: readonly SqlRow[]): string[] {
  const columns = sqlTable.map(([name, type]) => `${name} ${type}`).join(', ');
  const create = `CREATE OR REPLACE TABLE docs (id VARCHAR, text VARCHAR, ${columns})`;
  return rows.length === 0 ? [create] : [create, insertStatement(rows)];
}

/** At least one row. */
export function insertStatement(rows: readonly SqlRow[]): string {
  const tuples = rows.map(
    ({ id, text, values }) =>
      `(${[literal(id), literal(text), ...sqlTable.map(([name]) => literal(values[name]))].join(', ')})`,
  );
  return `INSERT INTO docs VALUES ${tuples.join(', ')}`;
}
