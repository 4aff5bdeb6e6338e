import type { Share } from './share.ts';

/** Whose time it was, as metrics tell it: of single tenants there are too many. */
export type ShareKind = 'tenants' | 'nobody' | 'upkeep';

export type ChargedMs = Readonly<Record<ShareKind, number>>;

export interface LongestTurn {
  readonly ms: number;
  /** The operation, or the piece of upkeep, that did not give way for so long. */
  readonly cause: string;
}

/** Adds up what was charged on one thread, in milliseconds, and remembers the longest stretch without a yield. */
export class Charges {
  readonly #ms: Record<ShareKind, number> = { tenants: 0, nobody: 0, upkeep: 0 };
  #longest: LongestTurn = noTurn;

  charge(share: Share, ms: number): void {
    this.#ms[shareKindOf(share)] += ms;
  }

  /** A stretch has ended; charge it apart. */
  ran(cause: string, ms: number): void {
    if (ms > this.#longest.ms) this.#longest = { ms, cause };
  }

  get ms(): ChargedMs {
    return { ...this.#ms };
  }

  /** The longest stretch since this was last asked. */
  takeLongest(): LongestTurn {
    const longest = this.#longest;
    this.#longest = noTurn;
    return longest;
  }
}

const noTurn: LongestTurn = { ms: 0, cause: 'none' };

/** Owners below the reserved ones are tenants whose owner is not known yet. */
export function shareKindOf({ owner, tenant }: Share): ShareKind {
  if (owner === 0) return 'nobody';
  return owner === -1 && tenant === 0 ? 'upkeep' : 'tenants';
}

export const nothingCharged: ChargedMs = { tenants: 0, nobody: 0, upkeep: 0 };

/** What a thread has done since its start, in milliseconds. */
export interface ThreadTime {
  readonly cpuMs: number;
  /** The time in which it waited for nothing but a core. */
  readonly busyMs: number;
  /** What of it was charged, stretch by stretch. */
  readonly charged: ChargedMs;
  /** The proportion in which the rest is divided: how many requests it had of each. */
  readonly parts: ChargedMs;
}

/**
 * Divides the CPU time of a thread by whose it was, all of it, so that nobody works for nothing. A stretch of work lasts longer than
 * the CPU time that it takes where threads wait for a core, so charges are only the proportion. Each look divides what has
 * come since the look before, and the sums never fall, even where the CPU time that is told does.
 */
export class CpuShares {
  #before: ThreadTime = { cpuMs: 0, busyMs: 0, charged: nothingCharged, parts: nothingCharged };
  #sums: ChargedMs = nothingCharged;

  divide(now: ThreadTime): ChargedMs {
    const before = this.#before;
    this.#before = { ...now, cpuMs: Math.max(before.cpuMs, now.cpuMs) };
    const lasted = spreadBusyTime(
      now.busyMs - before.busyMs,
      kindsOf((kind) => now.charged[kind] - before.charged[kind]),
      kindsOf((kind) => now.parts[kind] - before.parts[kind]),
    );
    const all = lasted.tenants + lasted.nobody + lasted.upkeep;
    const cpuMs = Math.max(0, now.cpuMs - before.cpuMs);
    const sums = this.#sums;
    this.#sums = kindsOf(
      (kind) => sums[kind] + (all === 0 ? Number(kind === 'upkeep') : lasted[kind] / all) * cpuMs,
    );
    return this.#sums;
  }
}

/** Divides what a thread was busy beyond what was charged on it, as the parts that are given. */
export function spreadBusyTime(busyMs: number, charged: ChargedMs, parts: ChargedMs): ChargedMs {
  const rest = Math.max(0, busyMs - charged.tenants - charged.nobody - charged.upkeep);
  const all = parts.tenants + parts.nobody + parts.upkeep;
  return kindsOf(
    (kind) => charged[kind] + (all === 0 ? Number(kind === 'upkeep') : parts[kind] / all) * rest,
  );
}

function kindsOf(value: (kind: ShareKind) => number): ChargedMs {
  return { tenants: value('tenants'), nobody: value('nobody'), upkeep: value('upkeep') };
}
