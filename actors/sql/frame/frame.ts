import type { Column } from './column.ts';

/** What expressions are evaluated over: some rows of a chunk, or groups. Its columns all have `rowCount` rows. */
export interface Frame {
  readonly rowCount: number;
  /** The rows that matter, ascending: what is costly is done for these alone. Null where all do. */
  readonly rows: Int32Array | null;
  /** The column of that index in the plan's list. */
  column(index: number): Column;
  /** The key of groups of that index, or, behind the keys, their aggregate. */
  slot(index: number): Column;
  /** 1 for each row whose text matches, 0 for each other. */
  textMatch(index: number): Uint8Array;
}

/** Which rows of a frame matter, of how many. */
export type FrameRows = Pick<Frame, 'rows' | 'rowCount'>;

let numbers = new Int32Array(0);

/**
 * The rows 0, 1, 2 … of a frame, all of them. Shared, not to be changed. Rows are given ascending and each once, so where there are as
 * many as the frame has they are these, and loops need not look them up.
 */
export function allRows(count: number): Int32Array {
  if (numbers.length < count) {
    numbers = new Int32Array(Math.max(count, numbers.length * 2, 65_536));
    for (let i = 0; i < numbers.length; i++) numbers[i] = i;
  }
  return numbers.subarray(0, count);
}
