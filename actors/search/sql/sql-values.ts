import { code, decodeString } from '../../../src/base/json-scanner.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import { valueKinds } from '../../columns/value-kinds.ts';
import { type Elsewhere, eachEntry } from '../../sql/frame/decode-column.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { documentMeta } from '../../storage/document-batch.ts';
import { storedMembers } from '../../storage/meta.ts';
import type { EntryPlace, SqlChunk } from './sql-parts.ts';

/** Reads from documents what a column does not hold: nested values, very long strings, and numbers that are no doubles. By row of the chunk. */
export async function valuesElsewhere(
  chunk: Pick<SqlChunk, 'firstRow' | 'documents'>,
  key: string,
  { values, type }: { readonly values: ColumnValues; readonly type: SqlType },
): Promise<Elsewhere> {
  const rows = rowsElsewhere(values);
  if (rows.length === 0) return new Map();
  const documents = await chunk.documents(rows.map((row) => chunk.firstRow + row));
  return new Map(rows.map((row, at) => [row, readValue(documents[at] as EntryPlace, key, type)]));
}

/** Whether a live row has a string that its column does not hold. */
export async function hasTextElsewhere(
  chunk: SqlChunk,
  key: string,
  { values, isLive }: { readonly values: ColumnValues; readonly isLive: (row: number) => boolean },
): Promise<boolean> {
  const rows = rowsElsewhere(values)
    .map((row) => chunk.firstRow + row)
    .filter(isLive);
  const documents = await chunk.documents(rows);
  return documents.some((document) => member(document, key)?.[0] === code.quote);
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
