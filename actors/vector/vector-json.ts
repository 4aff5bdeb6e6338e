/** A vector as JSON, each number with the fewest digits that float32 tells apart: 0.1, not 0.10000000149011612. */
export function vectorJson(vector: Float32Array): string {
  return `[${Array.from(vector, shortest).join(',')}]`;
}

/** Enough for every float32. */
const digitsMax = 9;
const digitsMin = 6;

function shortest(value: number): string {
  for (let digits = digitsMin; digits < digitsMax; digits++) {
    const rounded = Number(value.toPrecision(digits));
    if (Math.fround(rounded) === value) return String(rounded);
  }
  return String(Number(value.toPrecision(digitsMax)));
}
