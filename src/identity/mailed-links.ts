/**
 * What mailed links do: verify an address, set a password anew.
 *
 * Whoever proves that mail to the address reaches them has verified it, and the tenants that they own are told before
 * the link is used up. A crash between the two leaves a link that works, so that trying again tells them again, which
 * changes nothing; the other order would leave tenants that nobody tells any more.
 */
import { ApiError, invalidField } from '../../protocol/errors.ts';
import type { PersonId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { endKeysOf, finishEndingKeys } from './end-keys.ts';
import {
  deadLink,
  type LinkKind,
  type LinkToMail,
  linkWorks,
  makeLink,
  personOfToken,
  withLink,
} from './links.ts';
import { findPerson, type People } from './people.ts';
import { type Person, readPerson, updatePerson } from './person-record.ts';
import { newPasswordProblem } from './sign-up-rules.ts';

/** Uses the link up, and says whose it was. Throws 400 `bad_request` where it does not work. */
export async function verifyAddress(people: People, token: string): Promise<PersonId> {
  const person = await personOfLink(people, 'verify', token);
  await tellTenants(people, person.tenants);
  const verified = await useUp(people, person.id, 'verify', token, (now) => ({
    ...now,
    verified: true,
    links: now.links.filter(({ kind }) => kind !== 'verify'),
  }));
  await tellTenantsSince(people, person, verified);
  return person.id;
}

/**
 * A new link for a person who asks again; null where nothing is left to verify. Throws 429 `rate_limited` within a minute
 * of the last time: the person's record counts, so that every server does.
 */
export async function renewVerification(people: People, personId: PersonId): Promise<LinkToMail | null> {
  const { token, link: made } = makeLink(people.random, {
    kind: 'verify',
    personId,
    nowMs: people.clock.now(),
  });
  const person = await updatePerson(people, personId, (now) => {
    if (now.verified) return now;
    // Of this try: to one that lost, whoever won asked later than it began, which looks like a clock that was set back.
    const nowMs = people.clock.now();
    refuseTooSoon(now, nowMs);
    const verificationMailsAt = withMailOfDay(now, nowMs);
    const link = { ...made, madeAt: nowMs };
    return { ...now, links: withLink(now, link, nowMs), resentAt: nowMs, verificationMailsAt };
  });
  if (person === null)
    throw new ApiError('bad_request', 'the person who made this key is not known any more: log in');
  return person.verified ? null : { kind: 'verify', person, token };
}

function refuseTooSoon({ resentAt }: Person, nowMs: number): void {
  const sinceMs = resentAt === null ? Number.POSITIVE_INFINITY : nowMs - resentAt;
  // A clock that was set back must not close the way for as long as it was.
  if (sinceMs < 0 || sinceMs >= limits.resendEveryMs) return;
  throw new ApiError('rate_limited', 'the mail was sent less than a minute ago: look for it, or wait', {
    retryAfter: Math.ceil((limits.resendEveryMs - sinceMs) / 1_000),
  });
}

const dayMs = 24 * 3_600_000;

/** The mails of the last day and one more. Throws 429 `rate_limited` where that is one too many. */
function withMailOfDay({ verificationMailsAt }: Person, nowMs: number): readonly number[] {
  // Those that seem to come were sent by a clock that was ahead: they must not count for longer than a day from here.
  const ofDay = verificationMailsAt
    .filter((atMs) => atMs > nowMs - dayMs)
    .map((atMs) => Math.min(atMs, nowMs));
  if (ofDay.length < limits.verificationMailsPerDayMax) return [...ofDay, nowMs];
  const sentence =
    `${limits.verificationMailsPerDayMax} mails were sent to this address within a day: ` +
    'look for them where unwanted mails go, or try again tomorrow';
  const leftMs = Math.min(...ofDay) + dayMs - nowMs;
  throw new ApiError('rate_limited', sentence, { retryAfter: Math.ceil(leftMs / 1_000) });
}

/** A reset link for the account of an address; null where there is none. */
export async function makeReset(people: People, email: string): Promise<LinkToMail | null> {
  const found = await findPerson(people, email);
  if (found === null) return null;
  const nowMs = people.clock.now();
  const { token, link } = makeLink(people.random, { kind: 'reset', personId: found.id, nowMs });
  const person = await updatePerson(people, found.id, (now) => ({
    ...now,
    links: withLink(now, link, nowMs),
  }));
  return person && { kind: 'reset', person, token };
}

/**
 * Sets a password and uses up every link of the person. Logins made before end, because the generation rises. Caches that
 * know them are told by `forgetLogins`, however the change ends: one whose answer was lost may have been stored. Where the
 * address was not verified before, keys made until now end too (end-keys.ts). Throws 422 `invalid` for the password and 400
 * `bad_request` for the link.
 */
export async function resetPassword(
  people: People,
  { token, password }: { readonly token: string; readonly password: string },
  forgetLogins: (personId: PersonId) => Promise<void>,
): Promise<Person> {
  const problem = await newPasswordProblem(password);
  if (problem !== null) throw invalidField('password', problem);
  // Before the hash, which costs a tenth of a second: only who has a link can ask for it.
  const person = await personOfLink(people, 'reset', token);
  const passwordHash = await people.hasher.hash(password);
  if (!person.verified) {
    await tellTenants(people, person.tenants);
    await endKeysOf(people, person);
  }
  let changed: Person;
  try {
    changed = await useUp(people, person.id, 'reset', token, (now) => ({
      ...now,
      passwordHash,
      generation: now.generation + 1,
      verified: true,
      links: [],
      keysEnding: now.keysEnding || !now.verified,
    }));
  } finally {
    await forgetLogins(person.id);
  }
  await tellTenantsSince(people, person, changed);
  await finishEndingKeys(people, changed);
  return changed;
}

async function personOfLink(people: People, kind: LinkKind, token: string): Promise<Person> {
  const personId = personOfToken(token);
  const person = personId === null ? null : await readPerson(people.objectStore, personId);
  const nowMs = people.clock.now();
  if (person === null || !linkWorks(person, { kind, token, nowMs })) throw deadLink(kind);
  return person;
}

/** Uses up a link: of several who use it at once, one gets through. */
async function useUp(
  people: People,
  personId: PersonId,
  kind: LinkKind,
  token: string,
  change: (person: Person) => Person,
): Promise<Person> {
  const changed = await updatePerson(people, personId, (now) => {
    if (!linkWorks(now, { kind, token, nowMs: people.clock.now() })) throw deadLink(kind);
    return change(now);
  });
  if (changed === null) throw deadLink(kind);
  return changed;
}

type Memberships = Person['tenants'];

/** One after another: people own few, and the first failure leaves the link as it was. */
async function tellTenants(people: People, memberships: Memberships): Promise<void> {
  for (const { tenantId, role } of memberships) {
    if (role === 'owner') await people.ownerVerified(tenantId);
  }
}

/** A tenant that was made meanwhile was made by an owner who was not verified yet. */
function tellTenantsSince(people: People, before: Person, after: Person): Promise<void> {
  const known = new Set(before.tenants.map(({ tenantId }) => tenantId));
  return tellTenants(
    people,
    after.tenants.filter(({ tenantId }) => !known.has(tenantId)),
  );
}
