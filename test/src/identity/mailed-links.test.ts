import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../../protocol/ids.ts';
import { limits } from '../../../protocol/limits.ts';
import { encodeRecord } from '../../../src/base/record.ts';
import {
  makeReset,
  renewVerification,
  resetPassword,
  verifyAddress,
} from '../../../src/identity/mailed-links.ts';
import { login, signup } from '../../../src/identity/people.ts';
import { readPerson, updatePerson } from '../../../src/identity/person-record.ts';
import { codeOf, type PeopleHouse, peopleHouse } from '../../support/people.ts';

const input = { email: 'ada@example.com', name: 'Ada', password: 'engine number 1' };
const noCaches = async () => {};
const dayMs = 24 * 3_600_000;

async function withAda() {
  const house = await peopleHouse();
  const made = await signup(house.people, input);
  const ada = async () => {
    const person = await readPerson(house.objectStore, made.personId);
    assert.ok(person !== null);
    return person;
  };
  return { ...house, house, made, ada };
}

async function resetToken({ people }: PeopleHouse): Promise<string> {
  const link = await makeReset(people, 'ADA@example.com ');
  assert.ok(link !== null);
  assert.equal(link.person.email, input.email);
  return link.token;
}

/** One character of chance is another one. */
const changed = (token: string) => `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;

const badLink = (error: unknown) =>
  error instanceof ApiError && error.code === 'bad_request' && Object.hasOwn(error.fields ?? {}, 'token');

test('the link of the sign-up verifies the address once, and tells the tenant', async () => {
  const { people, made, ada, told } = await withAda();

  await verifyAddress(people, made.verification.token);

  assert.equal((await ada()).verified, true);
  assert.deepEqual((await ada()).links, []);
  assert.deepEqual(told, [made.tenantId]);
  await assert.rejects(verifyAddress(people, made.verification.token), badLink);
  assert.deepEqual(told, [made.tenantId]);
});

test('a token is not stored with the person', async () => {
  const { made, objectStore } = await withAda();

  const stored = await objectStore.get(`account/person/${made.personId}`);

  assert.ok(stored !== null);
  assert.ok(!Buffer.from(stored.bytes).includes(made.verification.token.slice(12)));
});

test('of ten who use one link at once one gets through', async () => {
  const { people, made, clock } = await withAda();

  const codes = await clock.run(
    Promise.all(Array.from({ length: 10 }, () => codeOf(verifyAddress(people, made.verification.token)))),
  );

  assert.deepEqual(codes.sort(), [...Array.from({ length: 9 }, () => 'bad_request'), 'no error']);
});

test('a link of a week ago, of nobody or of another kind does not verify', async () => {
  const { people, made, ada, told, clock, house } = await withAda();
  const reset = await resetToken(house);

  for (const token of ['', 'x', '0'.repeat(52), changed(made.verification.token), reset]) {
    await assert.rejects(verifyAddress(people, token), badLink, token);
  }
  clock.jump(7 * dayMs);
  await assert.rejects(verifyAddress(people, made.verification.token), badLink);

  assert.equal((await ada()).verified, false);
  assert.deepEqual(told, []);
});

test('a link goes on working where a tenant could not be told, and tells it the next time', async () => {
  const { people, made, ada, told, house } = await withAda();
  house.onTold = () => Promise.reject(new ApiError('unavailable', 'its actor is away'));

  assert.equal(await codeOf(verifyAddress(people, made.verification.token)), 'unavailable');
  assert.equal((await ada()).verified, false);
  house.onTold = async () => {};
  await verifyAddress(people, made.verification.token);

  assert.equal((await ada()).verified, true);
  assert.deepEqual(told, [made.tenantId]);
});

test('every tenant that the person owns is told, also one that was made meanwhile, and no other', async () => {
  const { people, made, told, house } = await withAda();
  const join = (tenantId: number, role: 'owner' | 'member') =>
    updatePerson(people, made.personId, (now) => ({
      ...now,
      tenants: [...now.tenants, { tenantId: tenantId as TenantId, role }],
    }));
  await join(2, 'owner');
  await join(3, 'member');
  house.onTold = async (tenantId) => {
    if (tenantId === made.tenantId) await join(4, 'owner');
  };

  await verifyAddress(people, made.verification.token);

  assert.deepEqual(told, [made.tenantId, 2, 4]);
});

test('a use that was stored without an answer counts as this one’s', async () => {
  const { people, made, objectStore, clock, ada } = await withAda();
  let failures = 1;
  objectStore.fail = () => (failures-- > 0 ? { outcome: 'unknown', apply: true } : null);

  await clock.run(verifyAddress(people, made.verification.token));

  assert.equal((await ada()).verified, true);
});

test('a verification is sent again once a minute, and both links work until one is used', async () => {
  const { people, made, clock } = await withAda();

  const first = await renewVerification(people, made.personId);
  const refusal = await renewVerification(people, made.personId).catch((error: unknown) => error);
  clock.jump(limits.resendEveryMs - 1_500);
  const again = await renewVerification(people, made.personId).catch((error: unknown) => error);
  clock.jump(1_500);
  const second = await renewVerification(people, made.personId);

  assert.ok(refusal instanceof ApiError && refusal.code === 'rate_limited');
  assert.equal(refusal.retryAfter, 60);
  assert.ok(again instanceof ApiError);
  assert.equal(again.retryAfter, 2);
  assert.notEqual(first?.token, second?.token);
  await verifyAddress(people, first?.token ?? '');
  for (const token of [second?.token ?? '', made.verification.token]) {
    await assert.rejects(verifyAddress(people, token), badLink);
  }
  assert.equal(await renewVerification(people, made.personId), null);
});

test('of 16 who ask again at once one is sent a link, however late the others look', async () => {
  const { people, made, clock, objectStore } = await withAda();
  const get = objectStore.get.bind(objectStore);
  // Each look takes time, so that those who began first look last.
  let reads = 0;
  objectStore.get = async (key, options) => {
    await clock.sleep(500 - 20 * (reads++ % 16));
    return get(key, options);
  };
  const asked = Array.from({ length: 16 }, async (_, i) => {
    await clock.sleep(i);
    return codeOf(renewVerification(people, made.personId));
  });

  const codes = await clock.run(Promise.all(asked));

  assert.deepEqual(codes.sort(), ['no error', ...Array.from({ length: 15 }, () => 'rate_limited')]);
});

test('a clock that was set back does not keep a person from asking', async () => {
  const { people, made, clock } = await withAda();
  await renewVerification(people, made.personId);

  clock.jump(-dayMs);

  assert.notEqual(await renewVerification(people, made.personId), null);
});

test('nobody asks for a person who is gone', async () => {
  const { people } = await withAda();

  assert.equal(await codeOf(renewVerification(people, 12 as PersonId)), 'bad_request');
});

test('a reset sets the password, ends logins, verifies the address and puts out every other link', async () => {
  const { people, made, ada, told, house } = await withAda();
  const [other, token] = [await resetToken(house), await resetToken(house)];

  const person = await resetPassword(people, { token, password: 'engine number 2' }, noCaches);

  assert.equal(person.id, made.personId);
  assert.equal(person.generation, 2);
  assert.equal(person.verified, true);
  assert.deepEqual((await ada()).links, []);
  assert.deepEqual(told, [made.tenantId]);
  assert.equal(await codeOf(login(people, input)), 'unauthorized');
  assert.equal((await login(people, { ...input, password: 'engine number 2' })).id, made.personId);
  for (const dead of [other, token]) {
    await assert.rejects(
      resetPassword(people, { token: dead, password: 'engine number 3' }, noCaches),
      badLink,
    );
  }
  await assert.rejects(verifyAddress(people, made.verification.token), badLink);
});

test('a reset link works for an hour', async () => {
  const { people, clock, house } = await withAda();
  const token = await resetToken(house);
  clock.jump(3_600_000);

  await assert.rejects(resetPassword(people, { token, password: 'engine number 2' }, noCaches), badLink);

  assert.equal(await codeOf(login(people, input)), 'no error');
});

test('a bad password leaves the link as it was, and a bad link costs no hash', async () => {
  const { people, hasher, house } = await withAda();
  const token = await resetToken(house);
  const hashed: string[] = [];
  hasher.hash = async (password) => {
    hashed.push(password);
    return `new:${password}`;
  };

  for (const password of ['1234567', 'x'.repeat(201), '\ud800'.repeat(8)]) {
    assert.equal(await codeOf(resetPassword(people, { token, password }, noCaches)), 'invalid');
  }
  await assert.rejects(
    resetPassword(people, { token: changed(token), password: input.password }, noCaches),
    badLink,
  );
  assert.deepEqual(hashed, []);
  await resetPassword(people, { token, password: 'x'.repeat(200) }, noCaches);
});

test('of two who use reset links of one person at once one gets through', async () => {
  const { people, clock, house, ada } = await withAda();
  const tokens = [await resetToken(house), await resetToken(house)];

  const codes = await clock.run(
    Promise.all(
      tokens.map((token, i) => codeOf(resetPassword(people, { token, password: `password ${i}` }, noCaches))),
    ),
  );

  assert.deepEqual(codes.sort(), ['bad_request', 'no error']);
  assert.equal((await ada()).generation, 2);
});

test('nobody has a reset link for an address without an account', async () => {
  const { people } = await withAda();

  assert.equal(await makeReset(people, 'eve@example.com'), null);
});

async function joined({ people, made }: Awaited<ReturnType<typeof withAda>>): Promise<void> {
  const tenants = [
    { tenantId: 2 as TenantId, role: 'owner' },
    { tenantId: 3 as TenantId, role: 'member' },
  ] as const;
  await updatePerson(people, made.personId, (now) => ({ ...now, tenants: [...now.tenants, ...tenants] }));
}

test('a reset that is what first verifies the address ends the keys of its time, before the password changes and after', async () => {
  const ada = await withAda();
  const { people, made, house } = ada;
  await joined(ada);
  const token = await resetToken(house);
  const generations: number[] = [];
  house.onEnd = async () => {
    generations.push((await ada.ada()).generation);
  };

  await resetPassword(people, { token, password: 'engine number 2' }, noCaches);

  const all = [
    [made.tenantId, null],
    [2, null],
    [3, made.personId],
  ];
  assert.deepEqual(house.ended, [...all, ...all]);
  assert.deepEqual(generations, [1, 1, 1, 2, 2, 2]);
  assert.equal((await ada.ada()).keysEnding, false);
});

test('a reset of an address that is verified ends no keys', async () => {
  const { people, made, house } = await withAda();
  await verifyAddress(people, made.verification.token);

  await resetPassword(people, { token: await resetToken(house), password: 'engine number 2' }, noCaches);

  assert.deepEqual(house.ended, []);
});

test('keys that could not be ended after the password changed are ended before anybody is let in', async () => {
  const { people, made, house, ada } = await withAda();
  const token = await resetToken(house);
  const password = 'engine number 2';
  let ends = 0;
  const away = () => Promise.reject(new ApiError('unavailable', 'its actor is away'));
  house.onEnd = () => (++ends > 1 ? away() : Promise.resolve());
  assert.equal(await codeOf(resetPassword(people, { token, password }, noCaches)), 'unavailable');
  assert.equal((await ada()).keysEnding, true);
  assert.equal(await codeOf(login(people, { email: input.email, password })), 'unavailable');
  house.onEnd = async () => {};

  assert.equal((await login(people, { email: input.email, password })).id, made.personId);

  assert.deepEqual(house.ended, [
    [made.tenantId, null],
    [made.tenantId, null],
  ]);
  await login(people, { email: input.email, password });
  assert.equal(house.ended.length, 2, 'once');
});

test('where keys cannot be ended the link goes on working, and the password is the old one', async () => {
  const { people, house } = await withAda();
  const token = await resetToken(house);
  house.onEnd = () => Promise.reject(new ApiError('unavailable', 'its actor is away'));
  const attempt = () => resetPassword(people, { token, password: 'engine number 2' }, noCaches);

  assert.equal(await codeOf(attempt()), 'unavailable');
  await login(people, input);
  house.onEnd = async () => {};
  await attempt();

  assert.equal(await codeOf(login(people, input)), 'unauthorized');
});

test('an address gets five verification mails a day, that of the sign-up among them', async () => {
  const { people, made, clock } = await withAda();
  const again = () => renewVerification(people, made.personId);
  for (let mail = 2; mail <= limits.verificationMailsPerDayMax; mail++) {
    clock.jump(3_600_000);
    assert.equal((await again())?.kind, 'verify');
  }
  clock.jump(3_600_000);

  const refusal = await again().catch((error: unknown) => error);

  assert.ok(refusal instanceof ApiError && refusal.code === 'rate_limited');
  assert.match(refusal.message, /5 mails were sent to this address within a day/);
  assert.equal(refusal.retryAfter, (24 - 5) * 3_600);
  assert.equal(await codeOf(signup(people, input)), 'conflict', 'signing up again sends none');
  clock.jump((refusal.retryAfter ?? 0) * 1_000);
  assert.equal((await again())?.kind, 'verify');
  clock.jump(limits.resendEveryMs);
  assert.equal(await codeOf(again()), 'rate_limited');
  // A clock that is set back closes the way for a day at most.
  clock.jump(-30 * dayMs);
  assert.equal(await codeOf(again()), 'rate_limited');
});

test('a person of the format before is read, and written in the new one', async () => {
  const { objectStore, made, ada, people } = await withAda();
  const { verificationMailsAt, keysEnding, ...older } = await ada();
  const path = `account/person/${made.personId}`;
  const stored = await objectStore.get(path);
  await objectStore.putIfMatch(
    path,
    [encodeRecord({ magic: 'TBPN', versions: [4] }, older, path)],
    stored?.etag ?? '',
  );

  assert.deepEqual(await ada(), { ...older, verificationMailsAt: [], keysEnding: false });
  await renewVerification(people, made.personId);

  const now = await objectStore.get(path);
  assert.equal(Buffer.from(now?.bytes ?? []).readUInt16LE(4), 5);
  assert.deepEqual([verificationMailsAt.length, keysEnding], [1, false]);
});
