import type { LaneClaim } from '../../protocol/worker-tasks.ts';
import type { Clock } from '../../src/base/clock.ts';
import { LruMap } from '../../src/base/lru.ts';
import type { Share } from '../../src/base/share.ts';

/** Tenants whose shares a thread remembers, at about 100 bytes each. */
const tenantsMax = 100_000;

/**
 * Knows whose share a tenant's work is, also work that nobody waits for any more: flushes, merges and graphs are paid for by
 * the owner of the data. Learned from requests; of a tenant that none came from since the start it is not known, so it is one
 * of its own then, with the least weight.
 */
export class KnownShares {
  readonly #clock: Clock;
  readonly #shares = new LruMap<number, Share>(tenantsMax);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Answers the share as one object for each tenant, so that it can be compared and kept. */
  learn(tenant: number, owner: number, weight: number): Share {
    const known = this.#shares.get(tenant);
    if (known !== undefined && known.owner === owner && known.weight === weight) return known;
    const share = { owner, tenant, weight };
    this.#shares.set(tenant, share);
    return share;
  }

  of(tenant: number): Share {
    return this.#shares.get(tenant) ?? { owner: ownerOfUnknown(tenant), tenant, weight: 1 };
  }

  /** Makes the claim of a lane's task. `deadlineMs` counts from now; null where the task is worth doing however late. */
  claim(tenant: number, deadlineMs: number | null = null): LaneClaim {
    const deadlineAt = deadlineMs === null ? null : this.#clock.now() + deadlineMs;
    return { share: this.of(tenant), deadlineAt };
  }
}

/** Below the reserved owners, so that it is nobody else's. */
function ownerOfUnknown(tenant: number): number {
  return -2 - tenant;
}
