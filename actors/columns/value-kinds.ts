/**
 * What a row has under a key of its meta. The numbers are part of the disk format.
 *
 * `integer`: written without fraction or exponent, within int64. `float`: every other number, and integers outside of
 * int64 whose double is their exact value. `nested`: an array or object. `other`: a scalar that no column holds, such as
 * a very long string. Of the last two a column knows nothing but where they are: the document answers. `date` and `time`:
 * strings of such a form (temporal.ts) under a key of which an import said that it holds dates or times.
 */
export const valueKinds = {
  missing: 0,
  null: 1,
  false: 2,
  true: 3,
  integer: 4,
  float: 5,
  string: 6,
  nested: 7,
  other: 8,
  date: 9,
  time: 10,
} as const;

/** Kinds are below it. */
export const kindBound = 11;

/** Whether a kind's values are whole numbers, which stand in one list. */
export function isWholeKind(kind: number): boolean {
  return kind === valueKinds.integer || kind === valueKinds.date || kind === valueKinds.time;
}

/** Values in that list. */
export function wholeCount(counts: Uint32Array): number {
  const { integer, date, time } = valueKinds;
  return (counts[integer] as number) + (counts[date] as number) + (counts[time] as number);
}

/** Rows of a chunk, at most: their numbers in it fit 16 bits, and so do the codes of their strings. */
export const chunkRowsMax = 65_536;
