import { limits } from '../../protocol/limits.ts';
import {
  anotherFollows,
  code,
  decodeString,
  nextByte,
  openScan,
  opensEmpty,
  scanKey,
  skipValue,
} from '../../src/base/json-scanner.ts';
import { type ColumnValues, presences } from '../columns/column-block.ts';
import { valueKinds } from '../columns/value-kinds.ts';
import type { SqlType } from '../sql/bound.ts';
import type { Elsewhere } from '../sql/decode-column.ts';
import { documentMeta } from '../storage/document-batch.ts';
import type { SqlChunk, StoredDocument } from './sql-parts.ts';

/** What columns leave to the documents: nested values, very long strings, and numbers that are no doubles. */
export async function valuesElsewhere(
  chunk: SqlChunk,
  key: string,
  { values, type }: { readonly values: ColumnValues; readonly type: SqlType },
): Promise<Elsewhere> {
  const rows = rowsElsewhere(values);
  if (rows.length === 0) return new Map();
  const documents = await chunk.documents(rows.map((row) => chunk.firstRow + row));
  return new Map(rows.map((row, at) => [row, readValue(documents[at] as StoredDocument, key, type)]));
}

/** Whether some of a column's values that stand elsewhere are strings. */
export async function hasTextElsewhere(chunk: SqlChunk, key: string, values: ColumnValues): Promise<boolean> {
  const rows = rowsElsewhere(values).map((row) => chunk.firstRow + row);
  const documents = await chunk.documents(rows);
  return documents.some((document) => member(document, key)?.[0] === code.quote);
}

function rowsElsewhere(values: ColumnValues): number[] {
  const { counts, kinds, uniformKind, presence, rows, bitmap, entryCount } = values;
  if (counts[valueKinds.nested] === 0 && counts[valueKinds.other] === 0) return [];
  const found: number[] = [];
  let row = -1;
  for (let entry = 0; entry < entryCount; entry++) {
    row = presence === presences.rows ? (rows[entry] as number) : row + 1;
    if (presence === presences.bitmap)
      while ((((bitmap[row >>> 5] as number) >>> (row & 31)) & 1) === 0) row++;
    const kind = uniformKind === 0 ? kinds[entry] : uniformKind;
    if (kind === valueKinds.nested || kind === valueKinds.other) found.push(row);
  }
  return found;
}

function readValue(document: StoredDocument, key: string, type: SqlType): number | string {
  const raw = member(document, key);
  if (raw === null) return type === 'text' ? '' : 0;
  if (raw[0] === code.quote) return decodeString(raw, { start: 1, end: raw.length - 1 });
  const text = compact(raw.toString());
  return type === 'text' ? text : Number(text);
}

/** The JSON of the meta's last member of that key. */
function member({ buffer, offset }: StoredDocument, key: string): Buffer | null {
  const meta = documentMeta(buffer, offset);
  if (meta === null) return null;
  const scan = openScan(meta);
  nextByte(scan);
  if (opensEmpty(scan, code.closeBrace)) return null;
  let found: Buffer | null = null;
  do {
    scanKey(scan);
    const isWanted = decodeString(meta, { start: scan.stringStart, end: scan.stringEnd }) === key;
    nextByte(scan);
    const start = scan.position;
    skipValue(scan, limits.jsonDepthMax);
    if (isWanted) found = meta.subarray(start, scan.position);
  } while (anotherFollows(scan, code.closeBrace));
  return found;
}

/** Without the space between tokens; numbers keep their digits. */
function compact(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/gu, (_, string: string | undefined) => string ?? '');
}
