import { BlockList, isIP } from 'node:net';
import { plainAddress } from './http-guards.ts';

/**
 * Whose address a request comes from. Behind proxies the connection is the last proxy's, and each of them adds to
 * `X-Forwarded-For` whom it heard from: read from the right, the first address that is not a trusted proxy is the client's.
 * What stands left of it is whatever the client sent, and believed by nobody.
 */
export class ClientAddresses {
  readonly #proxies = new BlockList();

  /** Whether any stand before the server at all. */
  readonly hasProxies: boolean;

  /** Addresses and CIDR ranges, checked by the settings. */
  constructor(trustedProxies: readonly string[]) {
    this.hasProxies = trustedProxies.length > 0;
    for (const proxy of trustedProxies) {
      const [address = '', bits] = proxy.split('/');
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
      if (bits === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(bits), family);
    }
  }

  of(remoteAddress: string, forwardedFor: string | undefined): string {
    let client = remoteAddress;
    for (const hop of hopsFromTheRight(forwardedFor)) {
      if (!this.#isProxy(client)) break;
      const address = addressOfHop(hop);
      // A proxy that hides the address says "unknown": then its own is the nearest that is known.
      if (address === null) break;
      client = address;
    }
    return client;
  }

  #isProxy(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#proxies.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }
}

function hopsFromTheRight(forwardedFor: string | undefined): readonly string[] {
  return forwardedFor === undefined ? [] : forwardedFor.split(',').reverse();
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressOfHop(hop: string): string | null {
  const text = hop.trim();
  const bracketed = /^\[([^\]]+)\](?::[0-9]+)?$/.exec(text)?.[1];
  const withPort = /^([0-9.]+):[0-9]+$/.exec(text)?.[1];
  const address = plainAddress(bracketed ?? withPort ?? text);
  return isIP(address) === 0 ? null : address;
}
