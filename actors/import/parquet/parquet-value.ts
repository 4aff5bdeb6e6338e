import type { RenderedValues } from '../rendered-values.ts';
import type { ColumnKind } from '../value-kind.ts';
import type { PageValues } from './page-values.ts';

/**
 * What the values of a Parquet column are to us. Numbers stay what they are, decimals by their digits; a fraction of a second is cut
 * off, because times have none; numbers that JSON does not know (NaN, infinities) are null.
 */
export type ValueKind = ColumnKind;

/** Hot: a call for each value of a file. */
export interface ParquetValue {
  readonly kind: ValueKind;
  /** Bytes that one value takes as JSON at most; null for texts and bytes of any length. */
  readonly jsonBytesMax: number | null;
  /** Whether a value that comes once is copied from its page, and not rendered. */
  readonly isRaw: boolean;
  /** Whether a value that is no text ends the pass, for its column is then one of bytes: NotText. */
  readonly expectsText: boolean;
  /** Renders the value at `place` as number `at` of the rendered ones. */
  render(values: PageValues, place: number, into: RenderedValues, at: number): void;
  /** How many bytes before and behind its JSON an id or an indexed text does not have. */
  readonly quoteBytes: number;
  /** Whether a whole number has a fraction in JSON, and none as an id or a text. */
  readonly dropsFraction: boolean;
}
