/** A double holds every whole number of so many decimal digits exactly. */
export const exactDigitsMax = 15;

/** Powers up to 10^22 are exact doubles. */
const powersOfTen = Array.from({ length: exactDigitsMax + 1 }, (_, exponent) => 10 ** exponent);

/**
 * Makes a number of its decimal digits, the last `fraction` of which stand behind the point. It is the double that
 * `JSON.parse` makes of the same text: both sides of the quotient are exact, so that the quotient is the nearest double.
 * Callers see to it that there are at most `exactDigitsMax` digits.
 */
export function numberOfDigits(digits: number, fraction: number): number {
  return digits / (powersOfTen[fraction] as number);
}
