import type { PeerAddress } from './peer-address.ts';
import type { PeerTransport } from './transport.ts';

/** Whether another server knows this one's key. `unreachable`: nobody was there to say. */
export type KeyTried = 'known' | 'wrong-key' | 'unreachable';

/**
 * Tries the key of the cluster at addresses of other servers, all at once, before anything else is done with it. One that knows it is
 * enough; the connection is closed again.
 */
export function tryKey(
  transport: Pick<PeerTransport, 'dial'>,
  addresses: readonly PeerAddress[],
): Promise<KeyTried> {
  return new Promise((resolve) => {
    const tried: KeyTried[] = [];
    const hear = (one: KeyTried) => {
      if (tried.includes('known')) return;
      tried.push(one);
      if (one !== 'known' && tried.length < addresses.length) return;
      resolve(one === 'known' || !tried.includes('wrong-key') ? one : 'wrong-key');
    };
    if (addresses.length === 0) resolve('unreachable');
    // Nobody gives up: a connection that ends half-way looks like a stranger's.
    for (const address of addresses)
      transport.dial(address, {
        secured: (link) => {
          link.listen({ received() {}, drained() {}, closed() {} });
          link.end();
          hear('known');
        },
        failed: (failure) => hear(failure === 'wrong-key' ? 'wrong-key' : 'unreachable'),
      });
  });
}
