/**
 * Names who is charged for what the server holds and does: the unit in which tenants share it. All tenants of one person
 * are one owner's, so that nobody gains by having many. Plain data, so that it crosses threads and hangs on whatever is cached.
 */
export interface Share {
  /** The person whose account the tenant is, or one of the reserved owners below. */
  readonly owner: number;
  readonly tenant: number;
  /** An owner of weight 8 has eight times what one of weight 1 has where both want more than there is. At least 1. */
  readonly weight: number;
}

/** Ids of people are positive, so that these are nobody's. */
const nobodysOwner = 0;
const upkeepsOwner = -1;

/** What the server does for itself, for no tenant: listings, collections, its own requests. */
export const upkeepShare: Share = { owner: upkeepsOwner, tenant: 0, weight: 1 };

/** The share of requests without credentials; `network` is a number for the client's network, at which they share. */
export function nobodysShare(network: number): Share {
  return { owner: nobodysOwner, tenant: network, weight: 1 };
}
