import { isIP, isIPv6 } from 'node:net';

/** Where a server listens for others. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, where the host is a name or an address, one of IPv6 in brackets. Null for anything else. */
export function parsePeerAddress(text: string): PeerAddress | null {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]*)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (port < 1 || port > 65_535) return null;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : null;
  if (plain === undefined) return null;
  const isHost = isIP(plain) === 4 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(plain);
  return isHost ? { host: plain, port } : null;
}
