import type { Column } from './column.ts';

/** What expressions are evaluated over: the rows of a chunk, or groups. */
export interface Frame {
  readonly rowCount: number;
  /** Those that matter: what is costly is done for these alone. Null: all. */
  readonly rows: Int32Array | null;
  column(index: number): Column;
  slot(index: number): Column;
  /** 1 for each row whose text matches, 0 for each other. */
  textMatch(index: number): Uint8Array;
}

/** Replaces every match of a regex in UTF-8. */
export interface Replacer {
  /** Null for a text that may take longer than a turn, or become too large. */
  quickly(text: Buffer): Buffer | null;
  /** Any text, in turns. `late` where the time of the query is over, `too-large` where there is no room for what it becomes. */
  slowly(text: Buffer): Promise<Buffer | 'late' | 'too-large'>;
}

/** Throws `SqlError` where the pattern or the replacement is wrong. `at`: where the pattern stands. */
export type NewReplacer = (replaces: {
  readonly pattern: string;
  readonly replacement: string;
  readonly at: number;
}) => Replacer;

let numbers = new Int32Array(0);

/**
 * 0, 1, 2 …: shared, not to be changed. Rows of a frame are given ascending and each once, so as many of them as the frame has are
 * these, and loops need not look them up.
 */
export function allRows(count: number): Int32Array {
  if (numbers.length < count) {
    numbers = new Int32Array(Math.max(count, numbers.length * 2, 65_536));
    for (let i = 0; i < numbers.length; i++) numbers[i] = i;
  }
  return numbers.subarray(0, count);
}
