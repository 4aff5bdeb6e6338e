import type { TextMaker } from '../plan/bound-parts.ts';

/** Makes a text of a text of UTF-8: REGEXP_REPLACE's replaces every match of a regex. */
export interface Replacer {
  /** Answers what a text becomes; null where that may take longer than a turn, or become too large. */
  quickly(text: Buffer): Buffer | null;
  /** Answers how many nanoseconds `quickly` takes at most for a text of so many bytes, beside what any call takes. */
  nanosecondsFor(length: number): number;
  /** Answers what any text becomes, in turns: `late` where the time of the query is over, `too-large` where there is no room for it. */
  slowly(text: Buffer): Promise<Buffer | 'late' | 'too-large'>;
}

/** Makes the replacer of an expression. Throws `SqlError` where what is constant in it is wrong, such as a pattern. */
export type NewReplacer = (bound: TextMaker) => Replacer;
