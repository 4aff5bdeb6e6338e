import { must } from '../../../src/base/assert.ts';
import { type DecodedColumn, decodeColumn } from '../../sql/frame/decode-column.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { documentColumns } from '../memtable-columns.ts';
import type { EntryPlace, SqlChunk } from './sql-parts.ts';
import { valuesElsewhere } from './sql-values.ts';

/** How many rows columns are made for at most; with more the columns themselves are read. */
export const fewRowsMax = 512;
/** How many times the bytes of documents columns must take, before documents are read: these are scanned each time, columns are kept. */
const worthwhile = 4;
/** What part of its bytes a block of documents takes when it is packed, about. */
const packedPart = 1 / 4;

/**
 * Whether reading the documents of some rows of a chunk, ascending, is less than reading columns of some names. One block of a wide
 * table's documents is far smaller than its columns.
 */
export function isWorthReading(chunk: SqlChunk, rows: Int32Array, names: readonly string[]): boolean {
  const { documentBytes } = chunk;
  if (documentBytes === null || rows.length > fewRowsMax || names.length === 0) return false;
  const span = must(rows.at(-1), 'a row') - must(rows[0], 'a row') + 1;
  const blocks = Math.min(rows.length, 1 + Math.ceil((span * documentBytes.perRow) / documentBytes.ofBlock));
  return chunk.columnBytes(names) > blocks * documentBytes.ofBlock * packedPart * worthwhile;
}

interface Asked {
  readonly names: readonly string[];
  readonly typeOf: (name: string) => SqlType;
  readonly temporalKeys: ReadonlySet<string>;
  /** Gives way where the slice of the query is over. */
  readonly turn: () => Promise<void>;
}

/** Makes columns of documents of a chunk's rows, one row for each; null where they have more keys than columns are made of. */
export async function columnsOfDocuments(
  chunk: SqlChunk,
  documents: readonly EntryPlace[],
  { names, typeOf, temporalKeys, turn }: Asked,
): Promise<ReadonlyMap<string, DecodedColumn> | null> {
  const built = documentColumns(documents, temporalKeys);
  if (built === null) return null;
  const own = {
    firstRow: 0,
    documents: async (rows: readonly number[]) => rows.map((row) => must(documents[row], 'a document')),
  };
  const columns = new Map<string, DecodedColumn>();
  for (const name of names) {
    // The chunk's other keys have no columns: SQL does not see them.
    const values = chunk.counts(name) === null ? undefined : built.get(name);
    const type = typeOf(name);
    columns.set(
      name,
      values === undefined
        ? { kind: 'constant', value: null }
        : decodeColumn(values, type, await valuesElsewhere(own, name, { values, type, turn })),
    );
  }
  return columns;
}
