import type { Column } from '../frame/column.ts';

/**
 * One aggregate of all groups, such as SUM(x), kept by the groups' numbers. What each of them does:
 *
 * 1. `add` takes the rows of one frame, with the group of each.
 * 2. `finish`, where there is one, does what is left when all rows are in.
 * 3. `values` answers a stretch of groups; it may be asked again for others.
 */
export interface Aggregate {
  /** Bytes that it holds, about. */
  readonly bytes: number;
  /** Adds rows; keeps none of the arrays. */
  add(grouped: GroupedRows): void;
  /** Does the rest of the work in steps between which other requests have their turn. */
  finish?(): Generator<undefined, void, void>;
  /** Makes the aggregate's column of the groups from `from` to before `end`. */
  values(from: number, end: number): Column;
}

/** Rows of one frame with their groups, and what an aggregate is asked of them. */
export interface GroupedRows {
  /** The aggregate's argument in every row of the frame; null where rows themselves are counted. */
  readonly column: Column | null;
  /** The rows to add, ascending, by their numbers in the frame. */
  readonly rows: Int32Array;
  /** How many rows the frame has, those among them that are not added. */
  readonly rowCount: number;
  /** `groups[i]` is the group of row `rows[i]`. */
  readonly groups: Int32Array;
  /** How many groups there are so far, those of these rows among them. */
  readonly groupCount: number;
}
