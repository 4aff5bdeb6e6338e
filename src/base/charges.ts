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

/** Divides what a thread was busy beyond what was charged on it, as the parts that are given: nobody works for nothing. */
export function spreadBusyTime(busyMs: number, charged: ChargedMs, parts: ChargedMs): ChargedMs {
  const rest = Math.max(0, busyMs - charged.tenants - charged.nobody - charged.upkeep);
  const all = parts.tenants + parts.nobody + parts.upkeep;
  const of = (kind: ShareKind) =>
    charged[kind] + (all === 0 ? Number(kind === 'upkeep') : parts[kind] / all) * rest;
  return { tenants: of('tenants'), nobody: of('nobody'), upkeep: of('upkeep') };
}

export const nothingCharged: ChargedMs = { tenants: 0, nobody: 0, upkeep: 0 };
