import RE2 from 're2';

/**
 * The size of RE2's program for a pattern, which its binding does not tell: RE2 refuses a program of too many
 * instructions, a character of ASCII is one, so it is measured by how many more characters fit behind the pattern.
 */
export function fits(pattern: string, moreInstructions: number): boolean {
  try {
    new RE2(`(?:${pattern})${'a'.repeat(moreInstructions)}`, 'u');
    return true;
  } catch {
    return false;
  }
}

/** Behind the empty pattern, in the RE2 that was current when this was written: two tries tell whether it still is. */
const likelyRoom = 698_991;

/** How many instructions fit behind the pattern. */
export function roomBehind(pattern: string): number {
  if (pattern === '' && fits('', likelyRoom) && !fits('', likelyRoom + 1)) return likelyRoom;
  let [fitting, tooMany] = [0, 1 << 20];
  while (tooMany - fitting > 1) {
    const middle = (fitting + tooMany) >> 1;
    if (fits(pattern, middle)) fitting = middle;
    else tooMany = middle;
  }
  return fitting;
}
