import type { Vector } from './vector.ts';

/** What expressions are evaluated over: the rows of a chunk, or groups. */
export interface Frame {
  readonly rowCount: number;
  /** Those that matter: what is costly is done for these alone. Null: all. */
  readonly rows: Int32Array | null;
  column(index: number): Vector;
  slot(index: number): Vector;
  /** 1 for each row whose text matches, 0 for each other. */
  textMatch(index: number): Uint8Array;
}

/** Replaces every match of a regex in UTF-8. Throws `Error` with a sentence where the pattern is none. */
export type Replacer = (text: Buffer) => Buffer;
export type NewReplacer = (pattern: string, replacement: string) => Replacer;
