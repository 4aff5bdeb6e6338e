/**
 * Between which counts the truth lies with a likelihood of 95 %, from a sample of groups of rows that was judged whole.
 *
 * 1. Groups are what was drawn, so it is their differences that tell how far the estimate may be off: the ratio estimator's variance
 *    over groups, with Student's factor for their number. Neighbouring documents are often alike, and then they differ much.
 * 2. Differences that chance made small are not believed: the interval is never narrower than Wilson's for as many rows drawn one by
 *    one.
 * 3. Where few groups have a match, matches may stand together in groups that were not drawn: then as large a share of all groups may
 *    have them as so few of so many allow, each as full of them as the fullest that was seen, or all full where none was.
 *
 * Groups are spread evenly over all, which is better than drawing them, unless something repeats with just that distance.
 */
export interface JudgedGroup {
  readonly rows: number;
  readonly matching: number;
}

export interface LikelyBounds {
  readonly low: number;
  readonly high: number;
}

/** The normal quantile of a two-sided 95 %. */
const z = 1.96;
/** The number of groups with a match below which their differences say little. */
const matchingGroupsMin = 10;

/**
 * Answers between which counts the truth lies with a likelihood of 95 %. `rows` counts those of all groups, judged or not; where all were
 * judged the bounds are one certain number.
 */
export function likelyBounds(groups: readonly JudgedGroup[], rows: number): LikelyBounds {
  const judged = sum(groups, (group) => group.rows);
  const matching = sum(groups, (group) => group.matching);
  if (judged >= rows) return { low: matching, high: matching };
  if (judged === 0) return { low: 0, high: rows };
  const most = matching + rows - judged;
  const within = (low: number, high: number): LikelyBounds => ({
    low: Math.max(matching, Math.floor(low)),
    high: Math.min(most, Math.ceil(high)),
  });
  const left = 1 - judged / rows;
  const byRows = wilson(matching, judged, left);
  const withMatch = groups.filter((group) => group.matching > 0);
  if (withMatch.length < matchingGroupsMin) {
    const fullest = withMatch.reduce((most, group) => Math.max(most, group.matching / group.rows), 0);
    const share = wilson(withMatch.length, groups.length, left).high * (fullest === 0 ? 1 : fullest);
    return within(0, rows * Math.max(byRows.high, share));
  }
  const ratio = matching / judged;
  const mean = judged / groups.length;
  const squares = sum(groups, (group) => (group.matching - ratio * group.rows) ** 2);
  const deviation = Math.sqrt((left * squares) / (groups.length - 1) / groups.length) / mean;
  const half = studentFactor(groups.length - 1) * deviation;
  return within(rows * Math.min(byRows.low, ratio - half), rows * Math.max(byRows.high, ratio + half));
}

/** Wilson's interval for a share; `left` is the part of all that was not drawn, which alone is in doubt. */
function wilson(matching: number, drawn: number, left: number): LikelyBounds {
  const doubt = (z * z * left) / drawn;
  const share = matching / drawn;
  const middle = (share + doubt / 2) / (1 + doubt);
  const half = Math.sqrt(doubt * (share * (1 - share) + doubt / 4)) / (1 + doubt);
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/** The two-sided 95 % quantile of Student's distribution, for eight degrees of freedom and more: within 0.3 % of the tables. */
function studentFactor(degrees: number): number {
  return z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2);
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
