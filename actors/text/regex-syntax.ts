/**
 * A pattern as a tree: what RE2 understands by it, as far as plans and costs need to know. Non-capturing groups and
 * flags are gone, their effect is in the nodes. RE2 alone decides whether a pattern is valid: what this tree does not
 * understand is `anything`, and whoever reads it promises nothing about that part.
 */
export type RegexNode =
  /** Not understood: it may match any text, an empty one among them. */
  | { readonly kind: 'anything' }
  | { readonly kind: 'empty' }
  /** ^ $ \A \z \b \B: matches between characters. The last two look at their neighbours alone. */
  | {
      readonly kind: 'assertion';
      readonly isWordBoundary: boolean;
      /** `\A`, and `^` where it does not mean lines. */
      readonly isTextBegin?: true;
    }
  | { readonly kind: 'literal'; readonly codePoints: readonly number[]; readonly ignoresCase: boolean }
  /** One character out of these ranges, orbits included where case is ignored; without ranges it matches nothing. */
  | { readonly kind: 'class'; readonly ranges: Ranges }
  /** One character of a class with Unicode groups in it (\pL, \p{Greek}), whose members are not looked up. */
  | { readonly kind: 'unicode-class'; readonly mayTakeLineFeed: boolean }
  /** \C: one byte, perhaps of the middle of a character. */
  | { readonly kind: 'byte' }
  | {
      readonly kind: 'repeat';
      readonly part: RegexNode;
      readonly min: number;
      /** Null where there is no end. */
      readonly max: number | null;
    }
  | { readonly kind: 'capture'; readonly part: RegexNode }
  | { readonly kind: 'concatenation'; readonly parts: readonly RegexNode[] }
  | { readonly kind: 'alternation'; readonly parts: readonly RegexNode[] };

/** First and last code points in turn, both included: ascending, apart, and not touching. */
export type Ranges = readonly number[];

export const anything: RegexNode = { kind: 'anything' };
export const emptyText: RegexNode = { kind: 'empty' };
