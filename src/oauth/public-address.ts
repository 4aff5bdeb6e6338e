import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';

/**
 * The door to ipaddr.js: whether an address is one of the public network. Anything else (this machine, networks that are
 * somebody's own, link-local such as a cloud's metadata service, what is reserved, and IPv6 forms that carry an IPv4 address)
 * is nothing that a stranger may have the server call.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // All else of IPv6 is nobody's yet, but for old forms that carry an IPv4 address (`::7f00:1`).
  if (parsed.kind() === 'ipv6' && !parsed.match(globalUnicast)) return false;
  return parsed.range() === 'unicast';
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** Whether a name's addresses are all public: one that is not, beside others, is an attempt. */
export function arePublic(addresses: readonly LookupAddress[]): boolean {
  return addresses.length > 0 && addresses.every(({ address }) => isPublicAddress(address));
}
