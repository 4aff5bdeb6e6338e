import argon2 from 'argon2';

/**
 * The door to argon2. One hash takes 30 to 110 ms of a core and 19 MiB, so it runs on the compute lane for hashes, one
 * at a time, never on a thread that serves requests.
 */
const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** The argon2id hash in PHC format (`$argon2id$v=19$…`), salt and parameters included. */
export function hashPassword(password: string): Promise<string> {
  return argon2.hash(password, { type: argon2.argon2id, ...parameters });
}

export interface PasswordVerdict {
  readonly matches: boolean;
  /** The hash was made with other parameters than today's: replace it while the password is at hand. */
  readonly needsRehash: boolean;
}

/** Rejects where `hash` is not in PHC format. */
export async function verifyPassword(hash: string, password: string): Promise<PasswordVerdict> {
  const matches = await argon2.verify(hash, password);
  const madeOtherwise = !hash.startsWith('$argon2id$') || argon2.needsRehash(hash, parameters);
  return { matches, needsRehash: matches && madeOtherwise };
}
