import { ApiError } from '../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import type { Role } from '../accounts/scopes.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { decodeRecord, encodeRecord, recordVersion } from '../base/record.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

/** A person as stored at `account/person/<id>`, changed only by compare-and-set. */
export interface Person {
  readonly id: PersonId;
  /** As typed, trimmed; unique by its lower-cased form. */
  readonly email: string;
  readonly name: string;
  /** PHC format. */
  readonly passwordHash: string;
  /** Rises when every login token made before must stop working: password change and reset. */
  readonly generation: number;
  readonly verified: boolean;
  /** Mailed links that may still work; what they do is links.ts. */
  readonly links: readonly PersonLink[];
  /** When the verification mail was last asked for again, in milliseconds since 1970; null: never. */
  readonly resentAt: number | null;
  /** When verification mails were sent, that of the sign-up among them: those of a day, in milliseconds since 1970. */
  readonly verificationMailsAt: readonly number[];
  /** Whether keys that were made before the address was verified are still to be ended; see end-keys.ts. */
  readonly keysEnding: boolean;
  readonly tenants: readonly { readonly tenantId: TenantId; readonly role: Role }[];
  readonly defaultTenantId: TenantId;
  /** How many tenants were made in the month of the last of them, UTC, besides the first: also those that are deleted. */
  readonly tenantsMade: { readonly month: string; readonly count: number };
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** New for every stored version: tells one's own write after an unknown outcome, and no two etags are equal. */
  readonly nonce: string;
}

export interface PersonLink {
  readonly kind: 'verify' | 'reset';
  /** SHA-256 of the token, in hexadecimal: what reads the store can use no link. */
  readonly digest: string;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
}

const magic = 'TBPN';
const formatVersion = 5;
/** The one before had no `verificationMailsAt` and no `keysEnding`. */
const olderFormatVersion = 4;
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
  return encodeRecord(magic, formatVersion, person, paths.person(person.id));
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
  return readIntact(store, path, ({ bytes, etag }) => ({ person: decodePerson(bytes, path), etag }));
}

function decodePerson(bytes: Uint8Array, path: string): Person {
  if (recordVersion(bytes) !== olderFormatVersion)
    return decodeRecord(bytes, path, magic, formatVersion) as Person;
  const older = decodeRecord(bytes, path, magic, olderFormatVersion) as Omit<Person, keyof typeof newFields>;
  return { ...older, ...newFields };
}

const newFields = { verificationMailsAt: [] as readonly number[], keysEnding: false };
