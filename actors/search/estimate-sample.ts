import { must } from '../../src/base/assert.ts';
import { type LikelyBounds, likelyBounds } from './likely-bounds.ts';

/** How many rows match, as far as a sample tells. */
export interface Bounds {
  /** The likeliest number. */
  readonly count: number;
  /** The least that can match, for certain. */
  readonly low: number;
  /** The most that can match, for certain. */
  readonly high: number;
  /** Two numbers between which the count lies with a likelihood of 95 %. */
  readonly likely: LikelyBounds;
}

/** Some groups of rows, spread evenly over all of their kind, and what is known of those that were judged. */
export class EstimateSample<T> {
  readonly items: readonly T[];
  /** Whether the items are all that there are. */
  readonly isWhole: boolean;
  /** Rows of all groups, those that are no items too. */
  readonly rows: number;
  readonly #groups: { rows: number; matching: number }[] = [];

  constructor(items: readonly T[], { rows, isWhole }: { readonly rows: number; readonly isWhole: boolean }) {
    this.items = items;
    this.isWhole = isWhole;
    this.rows = rows;
  }

  /** Answers a sample of the same rows with at most `itemsMax` of the items, as evenly spread; called before anything is judged. */
  thinned(itemsMax: number): EstimateSample<T> {
    const step = Math.ceil(this.items.length / itemsMax);
    if (step <= 1) return this;
    const items = this.items.filter((_, at) => at % step === 0);
    return new EstimateSample(items, { rows: this.rows, isWhole: false });
  }

  get matching(): number {
    return this.#groups.reduce((total, group) => total + group.matching, 0);
  }

  /** Begins a group: rows that are noted from here on are its own. */
  beginGroup(): void {
    this.#groups.push({ rows: 0, matching: 0 });
  }

  /** Notes rows of the group that were judged, and how many of them match. */
  note(rows: number, matching: number): void {
    const group = must(this.#groups.at(-1), 'a group');
    group.rows += rows;
    group.matching += matching;
  }

  /** Bounds of how many of all rows match: those that were not judged are taken to match as often as those that were. */
  get bounds(): Bounds {
    const { matching } = this;
    const judged = this.#groups.reduce((total, group) => total + group.rows, 0);
    const unknown = this.rows - judged;
    const guessed = judged === 0 ? unknown : (unknown * matching) / judged;
    return {
      count: matching + Math.round(guessed),
      low: matching,
      high: matching + unknown,
      likely: likelyBounds(this.#groups, this.rows),
    };
  }
}

/** Bounds of a sum: both parts are hardly ever as far off as they may be, so likely ones are rather too wide. */
export function sumOf(one: Bounds, other: Bounds): Bounds {
  return {
    count: one.count + other.count,
    low: one.low + other.low,
    high: one.high + other.high,
    likely: { low: one.likely.low + other.likely.low, high: one.likely.high + other.likely.high },
  };
}
