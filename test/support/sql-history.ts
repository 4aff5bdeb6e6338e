import { rowIndexes } from '../../actors/compute/row-indexes.ts';
import { BlockCache, BlockFetcher } from '../../actors/storage/block-fetch.ts';
import type { Memtable } from '../../actors/storage/memtable.ts';
import { mergeMeta } from '../../actors/storage/meta.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../actors/storage/snapshot.ts';
import { isDeleted, noTombstones, withDeleted } from '../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../actors/text/searchable-memtable.ts';
import type { Chance } from '../simulation/chance.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from './segments.ts';
import {
  insertStatement,
  metaJson,
  randomSqlRow,
  type SqlRow,
  sqlTable,
  temporalKeys,
} from './sql-tables.ts';

type Values = Record<string, SqlRow['values'][string]>;

interface Live {
  readonly row: SqlRow;
  /** As it is stored. */
  readonly meta: string;
}

interface HeldMemtable {
  readonly memtable: Memtable;
  readonly rows: TestRow[];
}

interface HeldSegment {
  segment: OpenSegment;
  readonly rows: readonly TestRow[];
}

/**
 * A namespace that is written to between queries: puts, patches and deletes, some of them flushed and some merged, beside a model of
 * what lives and the statements that do the same to a table elsewhere. Values of wrong types and keys of wrong names come too, and
 * are corrected before anybody asks.
 */
export class SqlHistory {
  readonly #chance: Chance;
  readonly #store = new CountingStore();
  readonly #fetcher = new BlockFetcher({
    store: this.#store,
    warmCache: null,
    cache: new BlockCache(10_000_000),
  });
  /** Oldest first, with their rows. */
  readonly #segments: HeldSegment[] = [];
  /** Oldest first; the last one is written to. */
  readonly #memtables: HeldMemtable[] = [newMemtable()];
  /** In the order in which they were written. */
  readonly #live = new Map<string, Live>();
  #statements: string[] = [];
  #sequence = 0;
  #names = 0;
  #objects = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  get live(): readonly SqlRow[] {
    return Array.from(this.#live.values(), ({ row }) => row);
  }

  /** Statements since it was asked last. */
  statements(): readonly string[] {
    const made = this.#statements;
    this.#statements = [];
    return made;
  }

  snapshot(): Snapshot {
    const memtables = [...this.#memtables].reverse();
    return {
      version: 1,
      sequence: this.#sequence,
      documents: this.#live.size,
      memtables: memtables.map(({ memtable }) => ({ memtable, rowCount: memtable.rowCount })),
      segments: this.#segments.map(({ segment }) => segment).reverse(),
      temporalKeys: new Set(temporalKeys),
    };
  }

  /** Keys of live documents in the order in which they come first. */
  keys(): readonly string[] {
    const keys = new Set<string>();
    for (const { row } of this.#live.values())
      for (const [key, value] of Object.entries(row.values)) if (value !== undefined) keys.add(key);
    return [...keys];
  }

  /** The next few writes, and what the upkeep does meanwhile. */
  async go(writes: number): Promise<void> {
    const chance = this.#chance;
    const wrong: string[] = [];
    for (let write = 0; write < writes; write++) {
      const kind = chance.weighted({ put: 5, replace: 3, patch: 3, delete: 3, wrong: 1, upkeep: 1 });
      if (kind === 'put') this.#put(randomSqlRow(chance, this.#names++));
      else if (kind === 'wrong') wrong.push(this.#putWrong());
      else if (kind === 'upkeep') await this.#upkeep();
      else if (this.#live.size > 0) this.#change(chance.pick([...this.#live.keys()]), kind);
    }
    for (const id of wrong) {
      // Flushed and merged with it, or not.
      if (chance.happens(0.3)) await this.#upkeep();
      if (!this.#live.has(id)) continue;
      if (chance.happens(0.5)) this.#delete(id);
      else this.#put({ ...randomSqlRow(chance, 0), id });
    }
    if (chance.happens(0.05)) await this.#upkeep();
  }

  #change(id: string, kind: 'replace' | 'patch' | 'delete'): void {
    if (kind === 'delete') this.#delete(id);
    else if (kind === 'replace') this.#put({ ...randomSqlRow(this.#chance, 0), id });
    else this.#patch(id);
  }

  #putWrong(): string {
    const chance = this.#chance;
    const row = randomSqlRow(chance, this.#names++);
    const values: Values = { ...row.values };
    for (const key of ['a', 'wide', 'x', 'd', 'w'])
      if (chance.happens(0.5)) values[key] = chance.pick(['oops', 'x', 2.5]);
    values[chance.pick(['typo', 'A', 'zz'])] = 'of no column';
    this.#put({ ...row, values });
    return row.id;
  }

  #put(row: SqlRow): void {
    this.#write(row, metaJson(row));
  }

  /** Nulls remove, and some values are as they were. */
  #patch(id: string): void {
    const chance = this.#chance;
    const { row, meta } = this.#live.get(id) as Live;
    const fresh = Object.entries(randomSqlRow(chance, 0).values).filter(() => chance.happens(0.4));
    const values: Values = { ...row.values };
    const patch: Values = {};
    for (const [key, value] of fresh) {
      if (value === undefined) continue;
      patch[key] = value;
      if (value === null) delete values[key];
      else if (values[key] === undefined) {
        delete values[key];
        values[key] = value;
      } else values[key] = value;
    }
    const merged = mergeMeta(Buffer.from(meta), Buffer.from(metaJson({ ...row, values: patch }))).toString();
    this.#write({ ...row, values }, merged);
  }

  #write(row: SqlRow, meta: string): void {
    this.#bury(row.id);
    const sequence = ++this.#sequence;
    const entry = entryOf({ id: row.id, text: Buffer.from(row.text), meta: Buffer.from(meta), vector: null });
    const writtenAt = 1.7e15 + sequence;
    const newest = this.#memtables.at(-1) as HeldMemtable;
    newest.memtable.add(entry, 0, sequence, writtenAt);
    newest.rows.push({ id: row.id, sequence, writtenAt, entry });
    this.#live.delete(row.id);
    this.#live.set(row.id, { row, meta });
    this.#statements.push(`DELETE FROM docs WHERE id = '${row.id}'`);
    if (!isWrong(row)) this.#statements.push(insertStatement([row]));
  }

  #delete(id: string): void {
    this.#bury(id);
    this.#live.delete(id);
    this.#statements.push(`DELETE FROM docs WHERE id = '${id}'`);
  }

  /** Wherever its row lies. */
  #bury(id: string): void {
    if (!this.#live.has(id)) return;
    this.#sequence++;
    for (const { memtable } of this.#memtables) if (memtable.supersede(id, this.#sequence)) return;
    for (const held of this.#segments) {
      const { tombstones } = held.segment;
      const row = held.rows.findIndex((stored, at) => stored.id === id && !isDeleted(tombstones, at));
      if (row < 0) continue;
      held.segment = { ...held.segment, tombstones: withDeleted(tombstones, [row]) };
      return;
    }
  }

  async #upkeep(): Promise<void> {
    const chance = this.#chance;
    if (chance.happens(0.3)) this.#memtables.push(newMemtable());
    if (chance.happens(0.5)) await this.#flush();
    while (this.#segments.length > 1 && chance.happens(this.#segments.length / 6)) await this.#merge();
  }

  /** The oldest memtable, as it is or without what died in it. */
  async #flush(): Promise<void> {
    const [oldest] = this.#memtables;
    if (oldest === undefined || oldest.rows.length === 0) return;
    this.#memtables.shift();
    if (this.#memtables.length === 0) this.#memtables.push(newMemtable());
    const { memtable, rows } = oldest;
    const dead = rows.flatMap((_, at) => (memtable.isLive(at) ? [] : [at]));
    this.#segments.push(await this.#built(rows, dead));
  }

  async #merge(): Promise<void> {
    const at = this.#chance.integer(0, this.#segments.length - 2);
    const both = this.#segments.slice(at, at + 2);
    const rows = both.flatMap(({ segment, rows: all }) =>
      all.filter((_, row) => !isDeleted(segment.tombstones, row)),
    );
    this.#segments.splice(at, 2, ...(rows.length === 0 ? [] : [await this.#built(rows, [])]));
  }

  async #built(rows: readonly TestRow[], dead: readonly number[]): Promise<HeldSegment> {
    const key = `ns/ab/n/segment/h${this.#objects++}`;
    const { toc, bytes } = await buildSegment(rows, { indexes: rowIndexes(temporalKeys) }, key);
    await this.#store.putIfAbsent(key, [bytes]);
    const reader = new SegmentReader(key, toc, this.#fetcher);
    const tombstones = withDeleted(noTombstones, dead);
    return { rows, segment: { id: key, size: bytes.length, reader, tombstones, graphs: null } };
  }
}

function newMemtable(): HeldMemtable {
  return { memtable: searchableMemtable(), rows: [] };
}

/** Whether some value is none of its column's. */
function isWrong({ values }: SqlRow): boolean {
  return Object.entries(values).some(([key, value]) => {
    const column = sqlTable.find(([name]) => name === key);
    if (column === undefined) return value !== undefined;
    const [, type] = column;
    if (value === null || value === undefined) return false;
    if (type === 'BIGINT') return typeof value !== 'bigint';
    if (type === 'DOUBLE') return typeof value !== 'number';
    if (type === 'VARCHAR') return typeof value !== 'string';
    return typeof value !== 'string' || !value.includes('-');
  });
}
