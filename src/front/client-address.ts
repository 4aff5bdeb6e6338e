import { BlockList, isIP } from 'node:net';
import { plainAddress } from './http-guards.ts';

/**
 * Finds whose address a request comes from. Behind proxies the connection is the last proxy's, and each of them adds to
 * `X-Forwarded-For` whom it heard from: read from the right, the first address that is not a trusted proxy is the client's.
 * What stands left of it is whatever the client sent, and believed by nobody.
 *
 * This machine's own addresses are trusted without a setting: a proxy on the same machine is the commonest of all, and
 * forgetting the setting would leave every client of the internet uncounted. A local process can name any address so, and
 * could as well connect as often as it likes.
 */
export class ClientAddresses {
  readonly #proxies = new BlockList();

  /** Whether the settings name any proxy. Then clients on this machine are counted by their address like everybody. */
  readonly hasProxies: boolean;

  /** Addresses and CIDR ranges, checked by the settings. */
  constructor(trustedProxies: readonly string[]) {
    this.hasProxies = trustedProxies.length > 0;
    this.#proxies.addSubnet('127.0.0.0', 8, 'ipv4');
    this.#proxies.addAddress('::1', 'ipv6');
    for (const proxy of trustedProxies) {
      const [address = '', bits] = proxy.split('/');
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
      if (bits === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(bits), family);
    }
  }

  /** The client's address as text: `remoteAddress` itself where that is no proxy's. */
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
