import type { ByteLink } from './byte-link.ts';
import type { PeerAddress } from './peer-address.ts';

/** Why nobody could be reached. `refused`: the host is there, and nothing listens. */
export type DialFailure = 'refused' | 'wrong-key' | 'unreachable';

export interface DialEvents {
  /** The other side has shown the key of the cluster. */
  secured(link: ByteLink): void;
  failed(failure: DialFailure, reason: string): void;
}

export interface PortEvents {
  /** Somebody who has shown the key of the cluster. */
  accepted(link: ByteLink, remote: string): void;
  /** Somebody who has not. `wrong-key`: who tried with another one. */
  stranger(kind: 'wrong-key' | 'no-peer' | 'too-many', remote: string): void;
}

export interface PeerPort {
  readonly port: number;
  /** No more connections are taken; those that are there stay. */
  close(): void;
}

/** What carries connections between servers: TLS, or a simulation. */
export interface PeerTransport {
  /** One of the events, once; the answered function gives up, and then none comes. */
  dial(address: PeerAddress, events: DialEvents): () => void;
  listen(address: { readonly host: string; readonly port: number }, events: PortEvents): Promise<PeerPort>;
}
