/**
 * Signing up, in this order, so that a crash at any point leaves nothing that anybody can reach:
 *
 * 1. the person object, which only the claim of step 4 leads to;
 * 2. the tenant and its first admin key;
 * 3. the claim of the key's digest: the key, which nobody has been shown yet, would work from here on;
 * 4. the claim of the e-mail address, last: it decides who of two racing sign-ups has the address.
 */
import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { makeApiKey, type NewApiKey } from '../accounts/api-keys.ts';
import { writeKeyClaim } from '../accounts/key-claim.ts';
import { periodOf } from '../accounts/usage.ts';
import { DataError } from '../base/assert.ts';
import { sha256Hex } from '../base/hash.ts';
import { describeError, type Logger } from '../base/log.ts';
import { randomHex, randomId48 } from '../base/random.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { claim } from '../object-store/claim.ts';
import { StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';
import { finishEndingKeys, type KeyEnder } from './end-keys.ts';
import { type LinkToMail, makeLink } from './links.ts';
import { encodePerson, type Person, type PersonStore, readPerson, updatePerson } from './person-record.ts';
import { checkSignup, emailIdentity, passwordProblem, type SignupInput } from './sign-up-rules.ts';
import { newNonce } from './stored-record.ts';

/** Hashes and verifies passwords by argon2, on another thread. */
export interface PasswordHasher {
  hash(password: string): Promise<string>;
  verify(
    hash: string,
    password: string,
  ): Promise<{ readonly matches: boolean; readonly needsRehash: boolean }>;
}

export interface FirstKey {
  readonly keyId: KeyId;
  readonly name: string;
  readonly digest: string;
  readonly prefix: string;
  readonly scope: 'admin';
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly createdBy: PersonId;
}

export interface TenantCreator {
  /** Durable when it resolves; creating the same tenant again is success. */
  createTenant(tenant: {
    readonly tenantId: TenantId;
    readonly name: string;
    readonly ownerId: PersonId;
    readonly firstKey: FirstKey;
  }): Promise<void>;
}

export interface PeopleComponents extends PersonStore, KeyEnder {
  readonly hasher: PasswordHasher;
  readonly tenantCreator: TenantCreator;
  /** Tells a tenant that its owner's address is verified: durable when it resolves, and harmless when said again. */
  readonly ownerVerified: (tenantId: TenantId) => Promise<void>;
  readonly logger: Logger;
}

export interface People extends PeopleComponents {
  /** Verified against where there is no account, so that the answer takes as long. */
  readonly dummyHash: string;
}

export interface Signup {
  readonly personId: PersonId;
  readonly tenantId: TenantId;
  /** The whole first key, shown once. */
  readonly key: string;
  readonly keyId: KeyId;
  readonly keyPrefix: string;
  readonly verification: LinkToMail;
}

const firstKeyName = 'first key';
const emailClaimFormat = {
  magic: 'TBEM',
  versions: [formats.emailClaim.version],
  check: storedCheck(z.strictObject({ personId: storedId<PersonId>(), nonce: z.string() })),
} as const;

/** The components of people, ready to use: it hashes one password that nobody knows, and waits for nothing else. */
export async function preparePeople(components: PeopleComponents): Promise<People> {
  const dummyHash = await components.hasher.hash(randomHex(components.random, 16));
  return { ...components, dummyHash };
}

/**
 * Makes a person, a first tenant named after them and its first admin key.
 * Throws 422 `invalid`, 409 `conflict` where the address is taken, 503 `unavailable` (no account was made) and
 * 503 `write_unknown` (the account may exist: logging in or resetting the password tells).
 */
export async function signup(people: People, input: SignupInput): Promise<Signup> {
  const { email, name, password } = await checkSignup(input);
  const { random, clock } = people;
  await refuseTakenAddress(people, email);
  const passwordHash = await people.hasher.hash(password);
  const tenantId = randomId48(random) as TenantId;
  const personId = randomId48(random) as PersonId;
  const createdAt = clock.now();
  const { token, link } = makeLink(random, { kind: 'verify', personId, nowMs: createdAt });
  const person: Person = {
    id: personId,
    email,
    name,
    passwordHash,
    generation: 1,
    verified: false,
    links: [link],
    resentAt: null,
    verificationMailsAt: [createdAt],
    keysEnding: false,
    tenants: [{ tenantId, role: 'owner' }],
    defaultTenantId: tenantId,
    tenantsMade: { month: periodOf(createdAt).month, count: 0 },
    createdAt,
    nonce: newNonce(random),
  };
  const key = { ...makeApiKey(random), keyId: randomId48(random) as KeyId };
  await unreachableYet(() => writePersonAndTenant(people, person, key));
  await claimAddress(people, person);
  const verification: LinkToMail = { kind: 'verify', person, token };
  return { personId, tenantId, key: key.key, keyId: key.keyId, keyPrefix: key.prefix, verification };
}

/** Spares the hash and the orphans where the answer is known already; the claim itself decides. */
async function refuseTakenAddress(people: People, email: string): Promise<void> {
  const owner = await unreachableYet(() => personIdOf(people, email));
  if (owner !== null) throw addressTaken();
}

async function writePersonAndTenant(
  { objectStore, clock, tenantCreator }: People,
  person: Person,
  { keyId, digest, prefix }: NewApiKey & { readonly keyId: KeyId },
): Promise<void> {
  const tenantId = person.defaultTenantId;
  const created = await claim(objectStore, clock, paths.person(person.id), encodePerson(person));
  if (created === 'taken')
    throw new ApiError('unavailable', 'two accounts got one id; no account was made: try again');
  const createdAt = person.createdAt;
  const firstKey = { keyId, name: firstKeyName, digest, prefix, scope: 'admin', createdAt } as const;
  await tenantCreator.createTenant({
    tenantId,
    name: person.name,
    ownerId: person.id,
    firstKey: { ...firstKey, createdBy: person.id },
  });
  await writeKeyClaim(objectStore, clock, digest, { tenantId, keyId });
}

/** The bytes of the claim of an address: who has it, and by which sign-up. */
export function encodeEmailClaim({ id, nonce, email }: Pick<Person, 'id' | 'nonce' | 'email'>): Uint8Array {
  return encodeRecord(emailClaimFormat, { personId: id, nonce }, emailPath(email));
}

/** What the claim of an address says: the person who has it, and the nonce of the sign-up. Throws `DataError`. */
export function decodeEmailClaim(bytes: Uint8Array, email: string) {
  return decodeRecord(bytes, emailPath(email), emailClaimFormat);
}

async function claimAddress({ objectStore, clock }: People, person: Person): Promise<void> {
  const bytes = encodeEmailClaim(person);
  try {
    if ((await claim(objectStore, clock, emailPath(person.email), bytes)) === 'taken') throw addressTaken();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.outcome === 'not-applied') throw noAccountMade(error);
    const sentence = 'the account may have been made: log in or reset the password to find out';
    throw new ApiError('write_unknown', sentence, { cause: error });
  }
}

/** A failure before the claim of the address leaves only what nobody can reach, which is as good as nothing. */
async function unreachableYet<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    // Of a tenant that nobody can reach it does not matter whether it is there.
    const unknown = error instanceof ApiError && error.code === 'write_unknown';
    throw error instanceof StoreError || unknown ? noAccountMade(error) : error;
  }
}

function noAccountMade(cause: Error): ApiError {
  const sentence = 'object storage failed; no account was made: try again';
  return new ApiError('unavailable', sentence, { retryAfter: 1, cause });
}

function addressTaken(): ApiError {
  const problem = 'an account has this address already: log in, or reset its password';
  return new ApiError('conflict', `email: ${problem}`, { fields: { email: problem } });
}

/**
 * The person, where address and password belong together; otherwise 401 `unauthorized`, with the same sentence after
 * the same work whether or not there is an account. Counting failures is the caller's.
 */
export async function login(
  people: People,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<Person> {
  const person = await findPerson(people, email);
  // What can be nobody's password is not worth hashing as such, but takes the time of one.
  const possible = passwordProblem(password) === null;
  const hash = person !== null && possible ? person.passwordHash : people.dummyHash;
  const { matches, needsRehash } = await people.hasher.verify(hash, possible ? password : '');
  if (person === null || !possible || !matches) {
    throw new ApiError('unauthorized', 'the e-mail address or the password is wrong');
  }
  await finishEndingKeys(people, person);
  if (needsRehash) await rehash(people, person, password);
  return person;
}

/** Null where nobody has this address. Reads as much for a missing account as for one that exists. */
export async function findPerson(people: PersonStore, email: string): Promise<Person | null> {
  const personId = await personIdOf(people, email);
  const person = await readPerson(people.objectStore, personId ?? randomId48(people.random));
  if (personId === null) return null;
  // The claim is written last, so whoever it names was there.
  if (person === null)
    throw new DataError(paths.person(personId), 0, 'an address names this person and it is missing');
  return person;
}

async function personIdOf({ objectStore }: PersonStore, email: string): Promise<PersonId | null> {
  const path = emailPath(email);
  return readIntact(objectStore, path, ({ bytes }) => decodeEmailClaim(bytes, email).personId);
}

function emailPath(email: string): string {
  return paths.emailClaim(sha256Hex(emailIdentity(email)));
}

/** An improvement that may wait for the next login: its failure must not keep anybody out. */
async function rehash(
  people: People,
  { id, passwordHash: oldHash }: Person,
  password: string,
): Promise<void> {
  try {
    const passwordHash = await people.hasher.hash(password);
    await updatePerson(people, id, (now) => (now.passwordHash === oldHash ? { ...now, passwordHash } : now));
  } catch (error) {
    people.logger.error('a password could not be hashed anew', { personId: id, error: describeError(error) });
  }
}
