import type { SealedLog } from './stored-log.ts';

/**
 * What places a namespace or a tenant on a server and on one of its actor threads. By name, not by id: the router
 * knows the name of every request and need not ask the tenant actor for the id first.
 */
export function placementKey(tenantId: number, namespace: string): string {
  return namespace === '' ? String(tenantId) : `${tenantId}/${namespace}`;
}

/** Work that one server does for all, whichever owns its key: the same for a server that is alone. */
export type ClusterTask = 'billing' | 'ended-logs' | 'orphans' | 'unused-clients';

/** What places such work on a server, as `placementKey` places names; no name has this form. */
export function taskKey(task: ClusterTask): string {
  return `task ${task}`;
}

/** What places the counting of somebody's attempts on a server. */
export function attemptKey(key: string): string {
  return `attempt ${key}`;
}

/** Which servers own what, as one of them knows it: one immutable snapshot a thread, which the next one replaces as a whole. */
export interface Owners {
  /** Rises with each change of the servers. */
  readonly placement: number;
  /** Those that own something, by their ids; everybody has them in the same order. */
  readonly servers: readonly string[];
  /** Whose knowledge it is: a server that owns nothing where it is not among them. */
  readonly self: string;
}

/** What the threads of a server know of the cluster view: one immutable snapshot, which the next one replaces as a whole. */
export interface Standing {
  /** Version of the view: rises with each of its changes. */
  readonly version: number;
  readonly owners: Owners;
  /** Logs of other members that own something, or did so before: who takes something over waits for these. */
  readonly others: readonly string[];
  /** Sealed logs whose records are not all in manifests yet. */
  readonly removed: readonly SealedLog[];
  /** All logs that the view names; what it does not name any more is in manifests. */
  readonly logs: readonly string[];
}

/** Names of the actor threads of one server, as members of the rendezvous hash. */
export function actorThreadNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `actor-${index}`);
}
