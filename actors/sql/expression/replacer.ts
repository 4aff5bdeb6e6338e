/** Replaces every match of a regex in a text of UTF-8. */
export interface Replacer {
  /** Answers what a text becomes; null where that may take longer than a turn, or become too large. */
  quickly(text: Buffer): Buffer | null;
  /** Answers what any text becomes, in turns: `late` where the time of the query is over, `too-large` where there is no room for it. */
  slowly(text: Buffer): Promise<Buffer | 'late' | 'too-large'>;
}

/** Makes a replacer. Throws `SqlError` where the pattern or the replacement is wrong. `at`: where the pattern stands. */
export type NewReplacer = (replaces: {
  readonly pattern: string;
  readonly replacement: string;
  readonly at: number;
}) => Replacer;
