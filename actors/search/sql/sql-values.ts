import { code, decodeString } from '../../../src/base/json-scanner.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import { valueKinds } from '../../columns/value-kinds.ts';
import { type Elsewhere, eachEntry } from '../../sql/frame/decode-column.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { documentMeta } from '../../storage/document-batch.ts';
import { storedMembers } from '../../storage/meta.ts';
import type { EntryPlace, SqlChunk } from './sql-parts.ts';

/** Gives way where the slice of a query is over. */
type TakeTurn = () => Promise<void>;

/**
 * Reads from documents what a column does not hold: nested values, very long strings, and numbers that are no doubles. Answers them by
 * their row of the chunk. `turn` is called between two documents, each of which may have a meta of 16 KB to be read through.
 */
export async function valuesElsewhere(
  chunk: Pick<SqlChunk, 'firstRow' | 'documents'>,
  key: string,
  { values, type, turn }: { readonly values: ColumnValues; readonly type: SqlType; readonly turn: TakeTurn },
): Promise<Elsewhere> {
  const rows = rowsElsewhere(values);
  if (rows.length === 0) return new Map();
  const documents = await chunk.documents(rows.map((row) => chunk.firstRow + row));
  const found = new Map<number, number | string>();
  for (const [at, row] of rows.entries()) {
    found.set(row, readValue(documents[at] as EntryPlace, key, type));
    await turn();
  }
  return found;
}

/** Whether a live row has a string that its column does not hold. */
export async function hasTextElsewhere(
  chunk: SqlChunk,
  key: string,
  {
    values,
    isLive,
    turn,
  }: {
    readonly values: ColumnValues;
    readonly isLive: (row: number) => boolean;
    readonly turn: TakeTurn;
  },
): Promise<boolean> {
  const rows = rowsElsewhere(values)
    .map((row) => chunk.firstRow + row)
    .filter(isLive);
  const documents = await chunk.documents(rows);
  for (const document of documents) {
    if (member(document, key)?.[0] === code.quote) return true;
    await turn();
  }
  return false;
}

function rowsElsewhere(values: ColumnValues): number[] {
  const { counts } = values;
  if (counts[valueKinds.nested] === 0 && counts[valueKinds.other] === 0) return [];
  const found: number[] = [];
  eachEntry(values, (row, kind) => {
    if (kind === valueKinds.nested || kind === valueKinds.other) found.push(row);
  });
  return found;
}

function readValue(document: EntryPlace, key: string, type: SqlType): number | string {
  const raw = member(document, key);
  if (raw === null) return type === 'text' ? '' : 0;
  if (raw[0] === code.quote) return decodeString(raw, { start: 1, end: raw.length - 1 });
  const text = compact(raw.toString());
  return type === 'text' ? text : Number(text);
}

/** Finds the JSON of a key in a document's meta; null where it has none. */
function member({ buffer, offset }: EntryPlace, key: string): Buffer | null {
  const meta = documentMeta(buffer, offset);
  return meta === null ? null : (storedMembers(meta).get(key)?.value ?? null);
}

/** Takes out the space between the tokens of a JSON text; numbers keep their digits. */
function compact(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/gu, (_, string: string | undefined) => string ?? '');
}
