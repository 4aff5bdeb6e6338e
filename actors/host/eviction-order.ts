/**
 * Says in which order what is open is put away, where memory or the number of open things is used up:
 *
 * 1. what nobody has used for a while, whoever's it is, the least recently used first;
 * 2. of the rest, always the least recently used one of the owner who has most, its weight considered: so whoever opens much
 *    puts away its own, and what others are using stays.
 */
export interface Evictee {
  readonly owner: number;
  readonly weight: number;
  readonly lastUsedMs: number;
  /** What it takes, in bytes or as one of so many. */
  readonly cost: number;
}

/** How long something counts as used: who asks once a minute is still using it. */
const usedWithinMs = 60_000;

interface Line<E extends Evictee> {
  /** Least recently used last, so that the next one is taken from the end. */
  readonly evictees: E[];
  cost: number;
}

export function* evictionOrder<E extends Evictee>(evictees: Iterable<E>, nowMs: number): Generator<E> {
  const idle: E[] = [];
  const lines = new Map<number, Line<E>>();
  for (const evictee of evictees) {
    const { owner, weight, lastUsedMs, cost } = evictee;
    const line = lines.get(owner) ?? { evictees: [], cost: 0 };
    lines.set(owner, line);
    line.cost += cost / weight;
    if (nowMs - lastUsedMs >= usedWithinMs) idle.push(evictee);
    else line.evictees.push(evictee);
  }
  for (const evictee of idle.sort((a, b) => a.lastUsedMs - b.lastUsedMs)) {
    const line = lines.get(evictee.owner);
    if (line !== undefined) line.cost -= evictee.cost / evictee.weight;
    yield evictee;
  }
  for (const line of lines.values()) line.evictees.sort((a, b) => b.lastUsedMs - a.lastUsedMs);
  for (let line = dearest(lines); line !== null; line = dearest(lines)) {
    const evictee = line.evictees.pop();
    if (evictee === undefined) return;
    line.cost -= evictee.cost / evictee.weight;
    yield evictee;
  }
}

function dearest<E extends Evictee>(lines: ReadonlyMap<number, Line<E>>): Line<E> | null {
  let most: Line<E> | null = null;
  for (const line of lines.values()) {
    if (line.evictees.length > 0 && (most === null || line.cost > most.cost)) most = line;
  }
  return most;
}
