import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { encodeRecord, type RecordFormat } from '../base/record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { type RecordStore, readRecord, type StoredRecord, updateRecord } from './stored-record.ts';

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
  /** The argon2id hash of the password, in PHC format. */
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

export type PersonStore = RecordStore;

function storedPerson(personId: number): StoredRecord<Person> {
  const path = paths.person(personId);
  return { path, format: personFormat, absent: null, name: 'the account' };
}

export function encodePerson(person: Person): Uint8Array {
  return encodeRecord(personFormat, person, paths.person(person.id));
}

/** Null where there is no such person. Throws `StoreError` and `DataError`. */
export async function readPerson(store: ObjectStore, personId: number): Promise<Person | null> {
  const stored = await readRecord(store, storedPerson(personId));
  return stored?.value ?? null;
}

/** Replaces a person by what `change` makes of it, as `updateRecord` does, whose errors it throws; null where there is none. */
export function updatePerson(
  store: PersonStore,
  personId: number,
  change: (person: Person) => Person,
): Promise<Person | null> {
  return updateRecord(store, storedPerson(personId), change);
}
