/**
 * Answers the first slot from `from` on that is not behind, where all that are behind come before all that are not. Some slots are asked
 * of at once: first the next one alone, which mostly is it, then ever farther ones, then those between the last that is behind and the
 * first that is not. Slots may come to be behind meanwhile, and none ceases to be.
 */
export async function firstSlot(
  from: number,
  atOnce: number,
  isBehind: (slot: number) => Promise<boolean>,
): Promise<number> {
  let behind = from - 1;
  let first = (await isBehind(from)) ? Number.POSITIVE_INFINITY : from;
  if (first === Number.POSITIVE_INFINITY) behind = from;
  while (first - behind > 1) {
    const slots =
      first === Number.POSITIVE_INFINITY ? farther(behind, atOnce) : between(behind, first, atOnce);
    const are = await Promise.all(slots.map(isBehind));
    behind = Math.max(behind, ...slots.filter((_, at) => are[at]));
    const others = [first, ...slots.filter((_, at) => !are[at])];
    first = Math.min(...others.filter((slot) => slot > behind), Number.POSITIVE_INFINITY);
  }
  return first;
}

function farther(behind: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => behind + 4 ** at);
}

function between(behind: number, first: number, count: number): number[] {
  const step = Math.max(1, Math.ceil((first - behind) / (count + 1)));
  const slots: number[] = [];
  for (let slot = behind + step; slot < first; slot += step) slots.push(slot);
  return slots;
}
