/**
 * How long an array becomes that is too short. Each growth copies all of it, and one large copy holds up everybody on the
 * thread: so a large one grows by four, but to no more than can come. The system gives the memory when it is touched; what is
 * held is therefore told by what was counted, not by the length of arrays.
 */
const largeCount = 65_536;
const firstCount = 64;

/** `countMax`: as many as can ever be asked for. */
export function roomFor(length: number, count: number, countMax: number): number {
  if (count <= largeCount) return Math.max(count, Math.min(length * 2, largeCount), firstCount);
  return Math.max(count, Math.min(length * 4, countMax));
}

type Numbers = Int32Array | Float64Array | Uint32Array | Uint8Array;

/** The array, or a longer one with the same beginning and zeros behind it. */
export function withRoom<T extends Numbers>(array: T, count: number, countMax: number): T {
  if (count <= array.length) return array;
  const length = roomFor(array.length, count, countMax);
  const larger = new (array.constructor as new (length: number) => T)(length);
  larger.set(array);
  return larger;
}
