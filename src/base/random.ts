import { randomBytes } from 'node:crypto';

/** Chance as a component, so that a seed replays a run. */
export interface Random {
  /** `length` unpredictable bytes. */
  bytes(length: number): Uint8Array;
}

export const systemRandom: Random = {
  bytes: (length) => randomBytes(length),
};

/** Lower-case hexadecimal of `length` random bytes. */
export function randomHex(random: Random, length: number): string {
  return Buffer.from(random.bytes(length)).toString('hex');
}

/** A positive integer under 2^48, safe as a JavaScript number: ids of people, tenants and keys. */
export function randomId48(random: Random): number {
  for (;;) {
    const id = Buffer.from(random.bytes(6)).readUIntBE(0, 6);
    if (id > 0) return id;
  }
}
