import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';

/**
 * The door to ipaddr.js: whether an address is one of the public network. Anything else (this machine, networks that are
 * somebody's own, link-local such as a cloud's metadata service, what is reserved, and IPv6 forms that carry an IPv4 address)
 * is nothing that a stranger may have the server call.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === 'unicast';
}

/** Whether a name's addresses are all public: one that is not, beside others, is an attempt. */
export function arePublic(addresses: readonly LookupAddress[]): boolean {
  return addresses.length > 0 && addresses.every(({ address }) => isPublicAddress(address));
}
