import type { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { wrongRow } from './import-error.ts';

/**
 * What a row's meta leaves out where it would not fit: columns that are its text, for the text has them, the longest first.
 */
export interface LongRow {
  /** The row's number in the file, from 1. */
  readonly row: number;
  /** What each column takes in the meta as JSON, with its key and a comma; 0 where the row has none. */
  readonly bytes: readonly number[];
  /** Columns that may be left out. */
  readonly text: readonly number[];
}

/** Columns that are left out; none where all fit. Throws ApiError 422 where the others are too large. */
export function leftOutOf({ row, bytes, text }: LongRow): readonly number[] {
  let total = 1 + bytes.reduce((sum, each) => sum + each, 0);
  if (total <= limits.documentMetaBytesMax) return [];
  const left: number[] = [];
  for (const column of text.toSorted((a, b) => (bytes[b] as number) - (bytes[a] as number))) {
    total -= bytes[column] as number;
    left.push(column);
    if (total <= limits.documentMetaBytesMax) return left;
  }
  throw metaTooLong(row, total);
}

/** `bytes`: of all columns that must stay in the meta. */
export function metaTooLong(row: number, bytes: number): ApiError {
  return wrongRow(
    row,
    `its values take ${bytes} bytes as JSON, and a document's meta has at most ${limits.documentMetaBytesMax}: name long columns in "text"`,
  );
}
