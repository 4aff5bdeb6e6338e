import { createHmac } from 'node:crypto';

/**
 * A secret of the server, and the one that it takes the place of while keys are rotated: what was signed or sealed with the
 * previous one is accepted, and nothing new is made with it.
 */
export interface KeyRing {
  readonly present: Uint8Array;
  /** Null outside a rotation. */
  readonly previous: Uint8Array | null;
}

/** The present one first. */
export function keysOf({ present, previous }: KeyRing): readonly Uint8Array[] {
  return previous === null ? [present] : [present, previous];
}

/** Names a key in what it has sealed: 16 hexadecimal digits, which tell keys apart and nothing about them. */
export function keyName(key: Uint8Array): string {
  return createHmac('sha256', key).update('tidebase key name v1').digest('hex').slice(0, 16);
}
