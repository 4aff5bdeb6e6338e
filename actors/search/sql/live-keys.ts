/**
 * Finds the keys of a part's live documents, and the kinds of their values. Directories count dead rows too, so what they say of a
 * kind is believed where more rows have it than are dead; otherwise the column is read until a live row has it. That row is
 * remembered: it stands for the kind until it is dead itself, and a kind that no live row has never comes back.
 */
import { must } from '../../../src/base/assert.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import { kindBound, valueKinds } from '../../columns/value-kinds.ts';
import { eachEntry } from '../../sql/frame/decode-column.ts';
import { documentMeta } from '../../storage/document-batch.ts';
import { storedMembers } from '../../storage/meta.ts';
import type { SqlChunk, SqlPart } from './sql-parts.ts';
import { noRow } from './witnesses.ts';

interface Asked {
  /** The names of the keys that are asked for, in lower case; null for all keys, in their order. */
  readonly wanted: ReadonlySet<string> | null;
  readonly turn: () => Promise<void>;
}

/**
 * Answers, by key, a number above 0 for each kind of value that some live row has; for keys that nobody asked for, how many entries
 * the directory counts of each kind.
 */
export async function liveKeys(
  part: SqlPart,
  { wanted, turn }: Asked,
): Promise<ReadonlyMap<string, Uint32Array>> {
  if (part.allLive) return part.keys();
  return wanted === null ? allLiveKeys(part, turn) : wantedLiveKeys(part, wanted, turn);
}

async function wantedLiveKeys(
  part: SqlPart,
  wanted: ReadonlySet<string>,
  turn: () => Promise<void>,
): Promise<ReadonlyMap<string, Uint32Array>> {
  const keys = new Map(part.keys());
  for (const key of [...keys.keys()].filter((name) => wanted.has(name.toLowerCase()))) {
    const live = new Uint32Array(kindBound);
    for (const chunk of part.chunks) {
      const counts = chunk.counts(key);
      const kinds = counts && (await liveKinds(new ChunkReader(part, chunk, key, turn), counts));
      if (kinds !== null) add(live, kinds);
    }
    if (live.some((count) => count > 0)) keys.set(key, live);
    else keys.delete(key);
  }
  return keys;
}

async function allLiveKeys(
  part: SqlPart,
  turn: () => Promise<void>,
): Promise<ReadonlyMap<string, Uint32Array>> {
  const keys = new Map<string, Uint32Array>();
  for (const chunk of part.chunks) {
    const found: LiveKey[] = [];
    for (const [key, counts] of chunk.keys()) {
      const reader = new ChunkReader(part, chunk, key, turn);
      const kinds = await liveKinds(reader, counts);
      if (kinds !== null) found.push({ key, kinds, counts, reader });
    }
    await turn();
    for (const { key, kinds } of chunk.deadRows > 0 ? await inOrder(chunk, found) : found) {
      const known = keys.get(key) ?? new Uint32Array(kindBound);
      add(known, kinds);
      keys.set(key, known);
    }
  }
  return keys;
}

function add(sums: Uint32Array, counts: Uint32Array): void {
  for (let kind = 1; kind < kindBound; kind++) sums[kind] = (sums[kind] as number) + (counts[kind] as number);
}

interface LiveKey {
  readonly key: string;
  readonly kinds: Uint32Array;
  readonly counts: Uint32Array;
  readonly reader: ChunkReader;
}

/** Reads a key's column of a chunk, once, when it is asked for. */
class ChunkReader {
  readonly key: string;
  readonly chunk: SqlChunk;
  readonly #part: SqlPart;
  readonly #turn: () => Promise<void>;
  #values: ColumnValues | null = null;

  constructor(part: SqlPart, chunk: SqlChunk, key: string, turn: () => Promise<void>) {
    this.#part = part;
    this.chunk = chunk;
    this.key = key;
    this.#turn = turn;
  }

  async values(): Promise<ColumnValues> {
    if (this.#values === null) {
      await this.#turn();
      const columns = await this.chunk.columns([this.key], this.#turn);
      this.#values = must(columns.get(this.key), 'a column of the directory');
    }
    return this.#values;
  }

  /** Whether a row of the chunk lives. */
  isLive(row: number): boolean {
    return this.#part.isLive(this.chunk.firstRow + row);
  }
}

/** Answers a number above 0 for each kind of value that live rows have of a key; null where no live row has the key. */
async function liveKinds(reader: ChunkReader, counts: Uint32Array): Promise<Uint32Array | null> {
  const { chunk, key } = reader;
  const live = new Uint32Array(kindBound);
  const doubtful: number[] = [];
  let isThere = false;
  for (let kind = 1; kind < kindBound; kind++) {
    const count = counts[kind] as number;
    if (count > chunk.deadRows) {
      live[kind] = count;
      isThere = true;
    } else if (count > 0) doubtful.push(kind);
  }
  if (doubtful.length === 0) return isThere ? live : null;
  const witness = chunk.witnesses.of(key);
  const open: number[] = [];
  for (const kind of doubtful) {
    const row = witness.rows[kind] as number;
    if (row >= 0 && reader.isLive(row)) live[kind] = 1;
    else if (row !== noRow || chunk.age < witness.age) open.push(kind);
  }
  if (open.length > 0) {
    const found = firstLive(reader, await reader.values());
    const isNewer = chunk.age >= witness.age;
    if (isNewer) witness.age = chunk.age;
    for (const kind of open) {
      const row = found[kind] as number;
      if (row >= 0) live[kind] = 1;
      if (isNewer) witness.rows[kind] = row;
    }
    if (isNewer) witness.rows[valueKinds.missing] = found[valueKinds.missing] as number;
  }
  return isThere || live.some((count) => count > 0) ? live : null;
}

/** Finds the first live row of each kind, or `noRow`; at `missing`, the first live row that has the key at all. */
function firstLive(reader: ChunkReader, values: ColumnValues): Int32Array {
  const found = new Int32Array(kindBound).fill(noRow);
  eachEntry(values, (row, kind) => {
    if ((found[kind] as number) >= 0 || !reader.isLive(row)) return;
    found[kind] = row;
    if ((found[valueKinds.missing] as number) < 0) found[valueKinds.missing] = row;
  });
  return found;
}

/** Sorts keys by where they come first in live documents. */
async function inOrder(chunk: SqlChunk, keys: readonly LiveKey[]): Promise<readonly LiveKey[]> {
  const rows = new Map<LiveKey, number>();
  for (const key of keys) rows.set(key, await firstRowOf(key));
  const distinct = [...new Set(rows.values())];
  const documents = await chunk.documents(distinct.map((row) => chunk.firstRow + row));
  const places = new Map<number, ReadonlyMap<string, number>>();
  for (const [at, row] of distinct.entries()) {
    const { buffer, offset } = must(documents[at], 'a document');
    const meta = documentMeta(buffer, offset);
    const names = meta === null ? [] : [...storedMembers(meta).keys()];
    places.set(row, new Map(names.map((name, place) => [name, place])));
  }
  const placeOf = (key: LiveKey) => places.get(rows.get(key) as number)?.get(key.key) ?? 0;
  return [...keys].sort(
    (a, b) => (rows.get(a) as number) - (rows.get(b) as number) || placeOf(a) - placeOf(b),
  );
}

async function firstRowOf({ counts, reader }: LiveKey): Promise<number> {
  const { chunk, key } = reader;
  if (counts[valueKinds.missing] === 0) {
    let row = 0;
    while (!reader.isLive(row)) row++;
    return row;
  }
  const witness = chunk.witnesses.of(key);
  const known = witness.rows[valueKinds.missing] as number;
  if (known >= 0 && chunk.age >= witness.age && reader.isLive(known)) return known;
  const found = firstLive(reader, await reader.values());
  if (chunk.age >= witness.age) {
    witness.age = chunk.age;
    witness.rows.set(found);
  }
  return found[valueKinds.missing] as number;
}
