import type { KeyRing } from './accounts/key-ring.ts';
import { parsePeerAddress } from './peers/peer-address.ts';
import {
  baseUrl,
  host,
  type Read,
  readPrevious,
  SettingsError,
  secret,
  wholeNumber,
} from './settings-values.ts';

/** How this server and the others of its cluster reach each other. */
export interface PeerSettings {
  /** The port that other servers connect to, on `TIDEBASE_HOST`. */
  readonly port: number;
  /** The address at which other servers find that port, `host:port`. */
  readonly address: string;
  /** What servers of one cluster know each other by. */
  readonly clusterKeys: KeyRing;
}

/** What several servers must agree on, and so cannot each make for themselves. */
const agreed = [
  ['TIDEBASE_BASE_URL', baseUrl],
  ['TIDEBASE_LOGIN_TOKEN_KEY', secret],
  ['TIDEBASE_KEY_ENCRYPTION_KEY', secret],
] as const;

/** Names that mean something only with a peer port. */
const beside = ['TIDEBASE_PEER_ADDRESS', 'TIDEBASE_CLUSTER_KEY'] as const;

/** Null where no peer port is set. Throws `SettingsError` where something that belongs to it is missing, or stands alone. */
export function readPeers(read: Read): PeerSettings | null {
  const port = read('TIDEBASE_PEER_PORT', wholeNumber(1, 65_535));
  const address = read('TIDEBASE_PEER_ADDRESS', peerAddress);
  const present = read('TIDEBASE_CLUSTER_KEY', secret);
  const previous = readPrevious(read, 'TIDEBASE_CLUSTER_KEY');
  if (port === null) {
    const alone = beside[address === null ? 1 : 0];
    if (address === null && present === null) return null;
    throw new SettingsError(
      `${alone} is set and TIDEBASE_PEER_PORT is not: set the port that other servers connect to, or remove ${alone}`,
    );
  }
  if (present === null) {
    throw new SettingsError(
      'TIDEBASE_CLUSTER_KEY must be set with TIDEBASE_PEER_PORT, to the same 32 random bytes in base64 on every server',
    );
  }
  const missing = agreed.filter(([name, parse]) => read<unknown>(name, parse) === null).map(([name]) => name);
  if (missing.length > 0) {
    throw new SettingsError(
      `${missing.join(' and ')} must be set with TIDEBASE_PEER_PORT, to the same on every server: clients may ask any of them`,
    );
  }
  return { port, address: address ?? ownAddress(read, port), clusterKeys: { present, previous } };
}

/**
 * Answers where other servers find this one: at the address that it listens on. Throws where it listens on all of its addresses,
 * because then somebody has to say which.
 */
function ownAddress(read: Read, port: number): string {
  const listens = read('TIDEBASE_HOST', host) ?? '127.0.0.1';
  if (listens !== '0.0.0.0' && listens !== '::')
    return listens.includes(':') ? `[${listens}]:${port}` : `${listens}:${port}`;
  throw new SettingsError(
    `TIDEBASE_PEER_ADDRESS must be set where TIDEBASE_HOST is ${listens}: the host and port at which other servers find this one`,
  );
}

function peerAddress(value: string): string {
  if (parsePeerAddress(value) !== null) return value;
  throw new SettingsError(`must be a host and a port like 10.0.0.5:7400 or [fd00::5]:7400, not "${value}"`);
}
