import { allRows } from '../../sql/frame/frame.ts';
import type { SqlChunk, SqlPart } from './sql-parts.ts';

/** Picks the rows of a chunk from ascending rows of its part. */
export function within(rows: Int32Array, { firstRow, rowCount }: SqlChunk): Int32Array {
  return rows.filter((row) => row >= firstRow && row < firstRow + rowCount);
}

/** Picks the rows of a frame that live from `rows` of its part; the frame's rows count from 0. */
export function wantedRows(
  part: SqlPart,
  rows: Int32Array,
  { first, from, end }: { readonly first: number; readonly from: number; readonly end: number },
): Int32Array {
  const some = rows.filter((row) => row >= first + from && row < first + end && part.isLive(row));
  return some.map((row) => row - first - from);
}

/** Lists the live rows of a frame, which has the rows from `first` to before `end` of its part; its own rows count from 0. */
export function liveRows(part: SqlPart, first: number, end: number): Int32Array {
  if (part.allLive) return allRows(end - first);
  const rows = new Int32Array(end - first);
  let count = 0;
  for (let row = first; row < end; row++) if (part.isLive(row)) rows[count++] = row - first;
  return rows.subarray(0, count);
}
