/**
 * What a row has under a key of its meta. The numbers are part of the disk format.
 *
 * `integer`: written without fraction or exponent, within int64. `float`: every other number, and integers outside of
 * int64 whose double is their exact value. `nested`: an array or object. `other`: a scalar that no column holds, such as
 * a very long string. Of the last two a column knows nothing but where they are: the document answers.
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
} as const;

/** Kinds are below it. */
export const kindBound = 9;

/** Rows of a chunk, at most: their numbers in it fit 16 bits, and so do the codes of their strings. */
export const chunkRowsMax = 65_536;
