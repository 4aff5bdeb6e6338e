/**
 * The first thing that each side of a connection says. Its shape holds for all versions: a newer server may add fields, and
 * an older one does not look at them.
 */
import { z } from '../../protocol/validate.ts';
import { packMessage, unpackMessage } from '../base/msgpack.ts';
import { PeerProtocolError } from './frame.ts';

const helloSchema = z.object({
  tidebase: z.literal('peer'),
  /** Versions of the protocol that this server speaks. */
  least: z.int().min(1),
  greatest: z.int().min(1),
  serverId: z.string().max(64),
  /** The log of this very process. */
  logId: z.string().max(64),
  /** The log of the process that the caller means to reach; empty in an answer. */
  wants: z.string().max(64),
  /** What the connection is for. */
  use: z.enum(['calls', 'bulk']),
});
export type Hello = Readonly<z.output<typeof helloSchema>>;
export type PeerUse = Hello['use'];

/** Which process of which server one speaks to. */
export interface PeerIdentity {
  readonly serverId: string;
  readonly logId: string;
}

export interface Versions {
  readonly least: number;
  readonly greatest: number;
}

export function encodeHello(hello: Hello): Uint8Array {
  return packMessage(hello);
}

export function decodeHello(bytes: Uint8Array): Hello {
  let value: unknown = null;
  try {
    value = unpackMessage(bytes.slice());
  } catch (cause) {
    throw new PeerProtocolError('its first frame is no hello', { cause });
  }
  const checked = helloSchema.safeParse(value);
  if (checked.success) return checked.data;
  throw new PeerProtocolError('its first frame is no hello');
}

/** The greatest version that both speak; null where there is none. */
export function sharedVersion(own: Versions, theirs: Versions): number | null {
  const greatest = Math.min(own.greatest, theirs.greatest);
  return greatest >= Math.max(own.least, theirs.least) ? greatest : null;
}

/** The sentence for two servers whose versions do not meet. It names both, so that either's operator knows which to update. */
export function versionsApart(own: Hello, theirs: Hello): string {
  const spoken = ({ serverId, least, greatest }: Hello) =>
    `server ${serverId} speaks ${least === greatest ? `version ${least}` : `versions ${least} to ${greatest}`}`;
  return `${spoken(own)} of the peer protocol and ${spoken(theirs)}: update the older one`;
}
