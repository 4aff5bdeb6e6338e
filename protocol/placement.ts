/**
 * What places a namespace or a tenant on a server and on one of its actor threads. By name, not by id: the router
 * knows the name of every request and need not ask the tenant actor for the id first.
 */
export function placementKey(tenantId: number, namespace: string): string {
  return namespace === '' ? String(tenantId) : `${tenantId}/${namespace}`;
}

/** Names of the actor threads of one server, as members of the rendezvous hash. */
export function actorThreadNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `actor-${index}`);
}
