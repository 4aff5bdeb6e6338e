/**
 * What a text must have, in trigrams of its folded bytes, to come into question: three bytes as b0 << 16 | b1 << 8 | b2.
 * The index may answer too many candidates by it, never too few; RE2 judges them.
 */
export type TrigramQuery =
  /** No condition. */
  | { readonly kind: 'all' }
  /** No text can match. */
  | { readonly kind: 'none' }
  | { readonly kind: 'trigram'; readonly trigram: number }
  /** One or two folded bytes: some trigram of the text contains them, side by side. */
  | { readonly kind: 'part'; readonly bytes: readonly number[] }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly TrigramQuery[] };

/** What an index is asked for: texts that may have a match. */
export interface TextCondition {
  readonly query: TrigramQuery;
  readonly matchLength: MatchLength;
}

/**
 * How long a match may be: for `short` ones and those within a `line`, a part of a large text must meet the query alone
 * (text-parts.ts), for others the whole text.
 */
export type MatchLength = 'short' | 'line' | 'text';

/** Every text meets it. */
export const noCondition: TextCondition = { query: { kind: 'all' }, matchLength: 'short' };
