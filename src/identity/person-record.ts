import { ApiError } from '../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { decodeRecord, encodeRecord, type RecordFormat } from '../base/record.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

const personLinkSchema = z.strictObject({
  kind: z.enum(['verify', 'reset']),
  /** SHA-256 of the token, in hexadecimal: what reads the store can use no link. */
  digest: z.string(),
  /** Milliseconds since 1970. */
  madeAt: z.number(),
});
export type PersonLink = Readonly<z.output<typeof personLinkSchema>>;

const personSchema = z.strictObject({
  id: storedId<PersonId>(),
  /** As typed, trimmed; unique by its lower-cased form. */
  email: z.string(),
  name: z.string(),
  /** PHC format. */
  passwordHash: z.string(),
  /** Rises when every login token made before must stop working: password change and reset. */
  generation: z.int(),
  verified: z.boolean(),
  /** Mailed links that may still work; what they do is links.ts. */
  links: z.array(personLinkSchema).readonly(),
  /** When the verification mail was last asked for again, in milliseconds since 1970; null: never. */
  resentAt: z.number().nullable(),
  /** When the verification mails of a day were sent, that of the sign-up among them, in milliseconds since 1970. */
  verificationMailsAt: z.array(z.number()).readonly(),
  /** Whether keys that were made before the address was verified are still to be ended; see end-keys.ts. */
  keysEnding: z.boolean(),
  tenants: z
    .array(z.strictObject({ tenantId: storedId<TenantId>(), role: z.enum(['owner', 'member']) }).readonly())
    .readonly(),
  defaultTenantId: storedId<TenantId>(),
  /** How many tenants were made in the month of the last of them, UTC, besides the first; deleted ones count. */
  tenantsMade: z.strictObject({ month: z.string(), count: z.int() }).readonly(),
  /** Milliseconds since 1970. */
  createdAt: z.number(),
  /** New for every stored version: tells one's own write after an unknown outcome, and no two etags are equal. */
  nonce: z.string(),
});
/** A person as stored at `account/person/<id>`, changed only by compare-and-set. */
export type Person = Readonly<z.output<typeof personSchema>>;

const checkPerson = storedCheck(personSchema);
/** What version 4 did not have. */
const newFields = { verificationMailsAt: [], keysEnding: false } satisfies Partial<Person>;
const olderVersion = 4;
const checkOlderPerson = storedCheck(personSchema.omit({ verificationMailsAt: true, keysEnding: true }));

const personFormat: RecordFormat<Person> = {
  magic: 'TBPN',
  versions: [formats.person.version, olderVersion],
  check: (value, version) =>
    version === olderVersion ? { ...checkOlderPerson(value), ...newFields } : checkPerson(value),
};
const nonceBytes = 16;

/** Tries of one compare-and-set; people are touched rarely, so more than a few losses mean something is wrong. */
export const updateAttemptsMax = 8;
/** Pauses double from the first to the longest: two seconds in all. */
const firstPauseMs = 20;
const longestPauseMs = 640;

export interface PersonStore {
  readonly objectStore: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}

export function newNonce(random: Random): string {
  return randomHex(random, nonceBytes);
}

export function encodePerson(person: Person): Uint8Array {
  return encodeRecord(personFormat, person, paths.person(person.id));
}

/** Null where there is no such person. Throws `StoreError` and `DataError`. */
export async function readPerson(store: ObjectStore, personId: number): Promise<Person | null> {
  const stored = await readVersion(store, personId);
  return stored?.person ?? null;
}

/**
 * Replaces a person by what `change` makes of it; `change` may be called several times and may throw to give up, and
 * returns the same object where there is nothing to write. Answers the stored person, or null where there is none.
 * Throws `StoreError` where surely nothing was stored, 503 `write_unknown` where nobody knows, and 503 `unavailable` when
 * others changed the person at every try.
 */
export async function updatePerson(
  { objectStore, clock, random }: PersonStore,
  personId: number,
  change: (person: Person) => Person,
): Promise<Person | null> {
  const triedNonces = new Set<string>();
  let failure: StoreError | null = null;
  /** Of a put that may have been applied, and then be overwritten so that its nonce is not seen any more. */
  let unknown: StoreError | null = null;
  for (let attempt = 0; attempt <= updateAttemptsMax; attempt++) {
    if (attempt > 0) await clock.sleep(pauseMs(attempt, random));
    try {
      const stored = await readVersion(objectStore, personId);
      if (stored === null) return null;
      // An earlier try whose outcome was unknown, or which the store applied and then refused, has won.
      if (triedNonces.has(stored.person.nonce)) return stored.person;
      // After the last try only whether that one has won.
      if (attempt === updateAttemptsMax) break;
      const changed = change(stored.person);
      if (changed === stored.person) return changed;
      const next = { ...changed, nonce: newNonce(random) };
      triedNonces.add(next.nonce);
      const put = await objectStore.putIfMatch(paths.person(personId), [encodePerson(next)], stored.etag);
      if (put.kind === 'stored') return next;
      failure = null;
    } catch (error) {
      // What `change` refuses after a lost put may be refused because of it.
      if (!(error instanceof StoreError)) throw unknown === null ? error : changeUnknown(error);
      failure = error;
      if (error.outcome === 'unknown') unknown = error;
    }
  }
  if (unknown !== null) throw changeUnknown(unknown);
  if (failure !== null) throw failure;
  const sentence = 'The account is being changed elsewhere; nothing was done: try again.';
  throw new ApiError('unavailable', sentence, { retryAfter: 1 });
}

/** By chance between half and the whole of it: who lost together would meet again. */
function pauseMs(attempt: number, random: Random): number {
  const wholeMs = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
  return (wholeMs * (1 + (random.bytes(1)[0] ?? 0) / 256)) / 2;
}

function changeUnknown(cause: unknown): ApiError {
  const sentence = 'Object storage failed; the account may have been changed: look before you try again.';
  return new ApiError('write_unknown', sentence, { cause, retryAfter: 1 });
}

async function readVersion(
  store: ObjectStore,
  personId: number,
): Promise<{ person: Person; etag: string } | null> {
  const path = paths.person(personId);
  return readIntact(store, path, ({ bytes, etag }) => ({
    person: decodeRecord(bytes, path, personFormat),
    etag,
  }));
}
