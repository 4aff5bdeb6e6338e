import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { apiKeyDigest, apiKeyLooksRight } from '../../../src/accounts/api-keys.ts';
import { readKeyClaim } from '../../../src/accounts/key-claim.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { findPerson, login, type People, preparePeople, signup } from '../../../src/identity/people.ts';
import { readPerson, updatePerson } from '../../../src/identity/person-record.ts';
import { updateAttemptsMax } from '../../../src/identity/stored-record.ts';
import { StoreError, type StoreOutcome } from '../../../src/object-store/object-store.ts';
import { codeOf, FailingStore, PlainHasher } from '../../support/people.ts';

const input = { email: ' Ada@Example.com ', name: '  Ada Lovelace ', password: 'engine number 1' };

async function house() {
  const objectStore = new FailingStore();
  const hasher = new PlainHasher();
  const tenants: { tenantId: number; name: string; ownerId: number; firstKey: { digest: string } }[] = [];
  const tenantCreator = {
    async createTenant(tenant: (typeof tenants)[number]) {
      assert.equal((await objectStore.list('account/email/', { limit: 1 })).objects.length, emailsBefore);
      tenants.push(tenant);
    },
  };
  let emailsBefore = 0;
  const clock = { ...systemClock, sleep: async () => {} };
  const people: People = await preparePeople({
    objectStore,
    hasher,
    tenantCreator,
    ownerVerified: async () => {},
    endKeys: async () => {},
    clock,
    random: systemRandom,
    logger: silentLogger,
  });
  return {
    objectStore,
    hasher,
    tenants,
    people,
    allowEmails(count: number) {
      emailsBefore = count;
    },
  };
}

test('signing up makes a person, a tenant named after them and a first admin key that leads to it', async () => {
  const { people, tenants, objectStore } = await house();

  const made = await signup(people, input);

  const person = await readPerson(objectStore, made.personId);
  assert.equal(person?.email, 'Ada@Example.com');
  assert.equal(person?.name, 'Ada Lovelace');
  assert.equal(person?.verified, false);
  assert.equal(person?.defaultTenantId, made.tenantId);
  assert.deepEqual(person?.tenants, [{ tenantId: made.tenantId, role: 'owner' }]);
  assert.ok(apiKeyLooksRight(made.key));
  assert.equal(made.keyPrefix, made.key.slice(0, 11));
  assert.deepEqual(
    tenants.map(({ tenantId, name, ownerId, firstKey }) => [tenantId, name, ownerId, firstKey.digest]),
    [[made.tenantId, 'Ada Lovelace', made.personId, apiKeyDigest(made.key)]],
  );
  assert.deepEqual(await readKeyClaim(objectStore, apiKeyDigest(made.key)), {
    tenantId: made.tenantId,
    keyId: made.keyId,
  });
  assert.equal((await findPerson(people, 'ADA@EXAMPLE.COM'))?.id, made.personId);
});

test('an address is taken in whatever case it is written', async () => {
  const { people, tenants, allowEmails } = await house();
  await signup(people, input);
  allowEmails(1);

  assert.equal(await codeOf(signup(people, { ...input, email: 'ADA@example.COM' })), 'conflict');
  assert.equal(tenants.length, 1);
});

test('of sign-ups that race for one address exactly one gets it', async () => {
  const { people } = await house();

  const codes = await Promise.all(Array.from({ length: 10 }, () => codeOf(signup(people, input))));

  assert.deepEqual(codes.sort(), [...Array.from({ length: 9 }, () => 'conflict'), 'no error']);
});

test('every offending field is named', async () => {
  const { people } = await house();

  await assert.rejects(
    signup(people, { email: 'a@b@c', name: ' \u0007', password: '1234567' }),
    (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.code, 'invalid');
      assert.deepEqual(Object.keys(error.fields ?? {}), ['email', 'name', 'password']);
      return true;
    },
  );
});

test('addresses, names and passwords at their bounds', async () => {
  const { people, allowEmails } = await house();
  const email = `${'a'.repeat(242)}@example.com`;

  await signup(people, { email, name: '𝒳'.repeat(100), password: '𝒳'.repeat(200) });
  allowEmails(1);

  const wrong = [
    { email: `a${email}` },
    { email: '@example.com' },
    { email: 'ada@' },
    { email: 'a da@example.com' },
    ...[
      '<ada@example.com>',
      'ada@example.com>',
      'ada@example.com,',
      'ada@example.com;',
      '"ada"@example.com',
    ].map((email) => ({ email })),
    ...['(ada)@example.com', 'ada@[127.0.0.1]', 'ada\\@example.com', 'ada:ada@example.com'].map((email) => ({
      email,
    })),
    ...['\u200b', '\u200d', '\u00ad', '\ufeff', '\u2066', '\u034f', '\ufe0f'].map((unseen) => ({
      email: `ad${unseen}a@example.com`,
    })),
    { name: '' },
    { name: 'x'.repeat(101) },
    { name: '\ud800' },
    { password: 'x'.repeat(201) },
    { password: '\ud800'.repeat(8) },
  ];
  for (const part of wrong) {
    assert.equal(await codeOf(signup(people, { ...input, ...part })), 'invalid', JSON.stringify(part));
  }
});

test('a crash or failure before the claim of the address leaves the address free', async () => {
  for (const part of ['account/person/', 'account/key/']) {
    const { people, objectStore } = await house();
    objectStore.fail = (key) => (key.startsWith(part) ? { outcome: 'unknown', apply: true } : null);
    // The put was applied each time, so finding it makes the claim succeed: only a lasting failure stops it.
    const gets = objectStore.get.bind(objectStore);
    objectStore.get = (key) =>
      key.startsWith(part) ? Promise.reject(new StoreError('get', key, 'not-applied', 'failed')) : gets(key);

    assert.equal(await codeOf(signup(people, input)), 'unavailable');
    objectStore.get = gets;
    objectStore.fail = () => null;

    assert.equal(await findPerson(people, input.email), null);
    await signup(people, input);
  }
});

test('a sign-up whose last claim was applied without an answer succeeds', async () => {
  const { people, objectStore } = await house();
  let failures = 1;
  objectStore.fail = (key) =>
    key.startsWith('account/email/') && failures-- > 0 ? { outcome: 'unknown', apply: true } : null;

  const made = await signup(people, input);

  assert.equal((await findPerson(people, input.email))?.id, made.personId);
});

test('a sign-up whose last claim may have been applied says so, and one that was not says that', async () => {
  const { people, objectStore } = await house();
  let outcome: StoreOutcome = 'not-applied';
  objectStore.fail = (key) => (key.startsWith('account/email/') ? { outcome, apply: false } : null);

  assert.equal(await codeOf(signup(people, input)), 'unavailable');
  outcome = 'unknown';
  assert.equal(await codeOf(signup(people, input)), 'write_unknown');
});

test('logging in answers the person for the right password only', async () => {
  const { people } = await house();
  const made = await signup(people, input);

  const person = await login(people, { email: 'ada@example.com', password: input.password });

  assert.equal(person.id, made.personId);
  assert.equal(
    await codeOf(login(people, { email: input.email, password: 'engine number 2' })),
    'unauthorized',
  );
});

test('an unknown account costs the same reads and one verification, and says the same', async () => {
  const { people, objectStore, hasher } = await house();
  await signup(people, input);
  let gets = 0;
  const get = objectStore.get.bind(objectStore);
  objectStore.get = (key, options) => {
    gets += 1;
    return get(key, options);
  };
  const measure = async (attempt: { email: string; password: string }) => {
    gets = 0;
    hasher.verified.length = 0;
    const sentence = await login(people, attempt).catch((error: unknown) => String(error));
    return { gets, verified: hasher.verified.length, sentence };
  };

  const wrongPassword = await measure({ email: input.email, password: 'wrong password' });
  const tooLong = await measure({ email: input.email, password: 'x'.repeat(1_000_000) });
  const unknown = await measure({ email: 'eve@example.com', password: 'wrong password' });

  assert.deepEqual(unknown, wrongPassword);
  assert.deepEqual(tooLong, wrongPassword);
});

test('the password of the dummy hash lets nobody in', async () => {
  const { people } = await house();
  const password = people.dummyHash.slice('new:'.length);

  assert.equal(await codeOf(login(people, { email: 'eve@example.com', password })), 'unauthorized');
});

test('a hash of old parameters is replaced at the next login, whose success does not depend on it', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  await updatePerson(people, personId, (now) => ({ ...now, passwordHash: `old:${input.password}` }));
  objectStore.fail = () => ({ outcome: 'not-applied', apply: false });

  await login(people, input);
  objectStore.fail = () => null;
  assert.equal((await readPerson(objectStore, personId))?.passwordHash, `old:${input.password}`);
  await login(people, input);

  assert.equal((await readPerson(objectStore, personId))?.passwordHash, `new:${input.password}`);
});

test('changes of one person at once are all kept', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  const changes = Array.from({ length: updateAttemptsMax - 1 }, () =>
    updatePerson(people, personId, (now) => ({ ...now, generation: now.generation + 1 })),
  );

  await Promise.all(changes);

  assert.equal((await readPerson(objectStore, personId))?.generation, updateAttemptsMax);
});

test('a change that was applied without an answer is not applied twice', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  let failures = 1;
  objectStore.fail = () => (failures-- > 0 ? { outcome: 'unknown', apply: true } : null);

  const changed = await updatePerson(people, personId, (now) => ({ ...now, generation: now.generation + 1 }));

  assert.equal(changed?.generation, 2);
  assert.equal((await readPerson(objectStore, personId))?.generation, 2);
});

test('reads that fail after a lost write are tried again, and find it', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  const get = objectStore.get.bind(objectStore);
  let puts = 0;
  let reads = 0;
  objectStore.fail = () => {
    puts += 1;
    objectStore.get = (key) => {
      if (++reads > 3) return get(key);
      return Promise.reject(new StoreError('get', key, 'not-applied', 'failed'));
    };
    return { outcome: 'unknown', apply: true };
  };

  const change = updatePerson(people, personId, (now) => ({ ...now, generation: now.generation + 1 }));

  assert.equal((await change)?.generation, 2);
  assert.equal(puts, 1);
});

test('of the last try it is looked whether it was applied, whatever the store said', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  for (const lost of ['refused', 'unknown'] as const) {
    const putIfMatch = objectStore.putIfMatch.bind(objectStore);
    let puts = 0;
    objectStore.putIfMatch = async (key, bytes, etag) => {
      if (++puts < updateAttemptsMax) return { kind: 'refused' };
      await putIfMatch(key, bytes, etag);
      if (lost === 'unknown') throw new StoreError('put', key, 'unknown', 'failed');
      return { kind: 'refused' };
    };

    const changed = await updatePerson(people, personId, (now) => ({ ...now, name: lost }));

    assert.equal(changed?.name, lost);
    assert.equal(puts, updateAttemptsMax);
    objectStore.putIfMatch = putIfMatch;
  }
});

test('a change that is refused after a lost write may have been made', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  const other = new ApiError('bad_request', 'used already');
  objectStore.fail = () => ({ outcome: 'unknown', apply: false });
  let calls = 0;

  const change = updatePerson(people, personId, (now) => {
    if (++calls > 1) throw other;
    return { ...now, verified: true };
  });

  const error = await change.catch((caught: unknown) => caught);
  assert.ok(error instanceof ApiError && error.code === 'write_unknown');
  assert.equal(error.cause, other);
});

test('a change that the store keeps failing is given up, and one that changes nothing is not written', async () => {
  const { people, objectStore } = await house();
  const { personId } = await signup(people, input);
  objectStore.fail = () => ({ outcome: 'not-applied', apply: false });

  assert.equal((await updatePerson(people, personId, (now) => now))?.id, personId);
  await assert.rejects(
    updatePerson(people, personId, (now) => ({ ...now, verified: true })),
    StoreError,
  );
  assert.equal(await updatePerson(people, 12345, (now) => now), null);
});
