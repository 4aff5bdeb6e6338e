import { rendezvousPick } from './rendezvous-hash.ts';

/** Whether what has the key belongs to a server, given the servers that own something, in the order that all of them know. */
export function isOwn(
  { servers, self }: { readonly servers: readonly string[]; readonly self: string },
  key: string,
): boolean {
  if (servers.length <= 1) return servers[0] === self;
  return servers[rendezvousPick(key, servers)] === self;
}
