/**
 * The door to argon2. One hash takes 20 to 110 ms of a core and 19 MiB. It is done synchronously on the calling thread, which
 * is the hash lane's: so it has that thread's priority and takes none of the threads that wait for the disk.
 */
import { type Algorithm, hashSync, verifySync } from '@node-rs/argon2';

const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
/** A constant enum of the library's declarations, which have no values at run time: argon2id, version 19. */
const algorithm = 2 as Algorithm.Argon2id;

/** The argon2id hash in PHC format (`$argon2id$v=19$…`), salt and parameters included. */
export function hashPassword(password: string): string {
  return hashSync(password, { algorithm, ...parameters });
}

export interface PasswordVerdict {
  readonly matches: boolean;
  /** The hash was made with other parameters than today's: replace it while the password is at hand. */
  readonly needsRehash: boolean;
}

/** Throws where `hash` is not in PHC format. */
export function verifyPassword(hash: string, password: string): PasswordVerdict {
  const matches = verifySync(hash, password);
  return { matches, needsRehash: matches && !isOfToday(hash) };
}

const { memoryCost, timeCost, parallelism } = parameters;
const today = [`m=${memoryCost}`, `p=${parallelism}`, `t=${timeCost}`].join();

/** Libraries write the parameters in different orders. */
function isOfToday(hash: string): boolean {
  const [, kind, version, written = ''] = hash.split('$');
  return kind === 'argon2id' && version === 'v=19' && written.split(',').sort().join() === today;
}
