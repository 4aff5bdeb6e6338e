import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { KeyId, PersonId, TenantId } from '../../../protocol/ids.ts';
import { makeApiKey } from '../../../src/accounts/api-keys.ts';
import { writeKeyClaim } from '../../../src/accounts/key-claim.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import {
  Authenticator,
  credentialOf,
  type KnownKey,
  type KnownTenant,
} from '../../../src/auth/authenticate.ts';
import { noCaps } from '../../../src/auth/principal.ts';
import { must } from '../../../src/base/assert.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { loginTokens, signLoginToken } from '../../../src/identity/login-token.ts';
import { encodePerson, type Person, updatePerson } from '../../../src/identity/person-record.ts';
import type { OauthClient } from '../../../src/oauth/client-record.ts';
import { Connections, type Consent } from '../../../src/oauth/connections.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { alone } from '../../support/key-rings.ts';

const own = 11 as TenantId;
const second = 12 as TenantId;
const person: Person = {
  id: 5 as PersonId,
  email: 'ada@example.com',
  name: 'Ada',
  passwordHash: 'x',
  generation: 1,
  verified: true,
  links: [],
  resentAt: null,
  verificationMailsAt: [],
  keysEnding: false,
  tenants: [
    { tenantId: own, role: 'owner' },
    { tenantId: second, role: 'member' },
  ],
  defaultTenantId: own,
  tenantsMade: { month: '2023-11', count: 0 },
  createdAt: 0,
  nonce: 'n',
};

const verifier = 'v'.repeat(43);
const client: OauthClient = {
  id: 'https://client.example/metadata',
  name: 'Client',
  redirectUris: ['http://127.0.0.1/'],
  method: 'none',
  secretDigest: null,
  createdAt: 0,
};

async function house() {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now };
  const objectStore = new MemoryObjectStore();
  const made = makeApiKey(systemRandom);
  const keyId = 21 as KeyId;
  await objectStore.putIfAbsent(paths.person(person.id), [encodePerson(person)]);
  await writeKeyClaim(objectStore, clock, made.digest, { tenantId: own, keyId });
  const keys = new Map<number, KnownKey>([
    [
      keyId,
      { keyId, scope: 'write', namespaces: ['a*'], caps: { ...noCaps, ratePerS: 7 }, createdBy: person.id },
    ],
  ]);
  const tenantRecord = (tenantId: TenantId): KnownTenant => ({
    tenantId,
    status: 'active',
    planName: 'free',
    ownerVerified: true,
    ownerId: 1,
  });
  const tenants = new Map([own, second].map((id) => [id as number, tenantRecord(id)]));
  let lookUps = 0;
  const tokens = loginTokens(alone(new Uint8Array(32)), clock, systemRandom);
  const connections = new Connections({
    objectStore,
    clock,
    random: systemRandom,
    keys: alone(new Uint8Array(32)),
    forget: async (tenantId) => authenticator.forget({ of: 'tenant', id: tenantId }),
    isAlive: async () => true,
  });
  const authenticator: Authenticator = new Authenticator(
    {
      objectStore,
      clock,
      loginTokens: tokens,
      connections,
      plans: builtInPlans,
      tenants: {
        async key(tenantId, id) {
          lookUps += 1;
          return tenantId === own ? (keys.get(id) ?? null) : null;
        },
        tenant: async (tenantId) => tenants.get(tenantId) ?? null,
      },
    },
    { isAlone: true },
  );
  return {
    authenticator,
    objectStore,
    clock,
    keys,
    tenants,
    connections,
    key: made.key,
    keyId,
    token: await signLoginToken(tokens, person),
    lookUps: () => lookUps,
    pass(ms: number) {
      now += ms;
    },
    with: (headers: Record<string, string>) =>
      authenticator.authenticate(credentialOf((name) => headers[name])),
    /** As at /mcp. */
    withToken: (secret: string, tenant?: string) =>
      authenticator.authenticate({ kind: 'oauth', secret, tenant }),
    /** What a client was let have by the person. */
    async connected(parts: Partial<Consent> = {}) {
      const consent: Consent = {
        tenantId: own,
        person,
        client,
        scope: 'write',
        namespaces: [],
        redirectUri: 'http://127.0.0.1/',
        challenge: createHash('sha256').update(verifier).digest('base64url'),
        ...parts,
      };
      const { code, connectionId } = await connections.allow(consent);
      const asked = { redirectUri: null, verifier, scope: null, check: () => {} };
      return { connectionId, tokens: await connections.exchange(code, asked) };
    },
  };
}

const codeOf = (work: () => unknown): Promise<string> =>
  Promise.resolve()
    .then(work)
    .then(
      () => 'no error',
      (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
    );

test('a key comes as a bearer or in X-API-Key, or in both when it is the same', () => {
  const of = (headers: Record<string, string>) => credentialOf((name) => headers[name]);
  const { key } = makeApiKey(systemRandom);

  for (const headers of [
    { authorization: `Bearer ${key}` },
    { authorization: `bearer  ${key} ` },
    { 'x-api-key': key },
    { authorization: `Bearer ${key}`, 'x-api-key': key },
    { authorization: 'Basic YTpi', 'x-api-key': key },
    { authorization: '', 'x-api-key': key },
  ]) {
    assert.deepEqual(of(headers), { kind: 'key', secret: key, tenant: undefined });
  }
  assert.deepEqual(of({ authorization: 'Bearer a.b.c', 'x-tenant': '7' }), {
    kind: 'login',
    secret: 'a.b.c',
    tenant: '7',
  });
});

test('two different credentials are a bad request, none or only another scheme is unauthorized', async () => {
  const { key } = makeApiKey(systemRandom);
  const code = (headers: Record<string, string>) => codeOf(() => credentialOf((name) => headers[name]));

  assert.equal(await code({ authorization: `Bearer ${key}`, 'x-api-key': `${key}x` }), 'bad_request');
  for (const headers of [
    {},
    { 'x-api-key': '' },
    { authorization: '' },
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer', 'x-api-key': key },
    { authorization: `Bearer ${key}, Bearer ${key}` },
    { 'x-api-key': 'a.login.token' },
  ]) {
    assert.equal(await code(headers), 'unauthorized', JSON.stringify(headers));
  }
});

test('a key acts for its tenant with its own limits, and is looked up once', async () => {
  const { authenticator, key, keyId, lookUps, ...rest } = await house();

  const principal = await rest.with({ 'x-api-key': key });

  assert.deepEqual(principal, {
    auth: 'key',
    connectionId: null,
    tenantId: own,
    share: { owner: 1, tenant: own, weight: 4 },
    homeTenantId: own,
    tenantStatus: 'active',
    planName: 'free',
    ownerVerified: true,
    personId: person.id,
    role: null,
    keyId,
    scope: 'write',
    namespaces: ['a*'],
    caps: { ...noCaps, ratePerS: 7 },
    limits: { tenantQps: 100, keyQps: 7, concurrency: 16, sqlConcurrency: 2 },
  });
  assert.equal(authenticator.peek({ kind: 'key', secret: key, tenant: undefined }), principal);
  await rest.with({ authorization: `Bearer ${key}` });
  assert.equal(lookUps(), 1);
});

test('garbage and unknown keys are unauthorized, garbage without any look-up', async () => {
  const { objectStore, ...rest } = await house();
  let gets = 0;
  const get = objectStore.get.bind(objectStore);
  objectStore.get = (key, options) => {
    gets += 1;
    return get(key, options);
  };

  assert.equal(await codeOf(() => rest.with({ 'x-api-key': `tb_${'x'.repeat(36)}` })), 'unauthorized');
  assert.equal(
    await codeOf(() => rest.with({ authorization: `Bearer ${'x'.repeat(60_000)}` })),
    'unauthorized',
  );
  assert.equal(gets, 0);
  const stranger = makeApiKey(systemRandom).key;
  assert.equal(await codeOf(() => rest.with({ 'x-api-key': stranger })), 'unauthorized');
  assert.equal(await codeOf(() => rest.with({ 'x-api-key': stranger })), 'unauthorized');
  assert.equal(gets, 1);
});

test('a revoked key, and a key of a tenant that is being deleted, are unauthorized', async () => {
  const { authenticator, keys, tenants, key, keyId, ...rest } = await house();
  await rest.with({ 'x-api-key': key });

  const record = keys.get(keyId);
  keys.delete(keyId);
  authenticator.forget({ of: 'tenant', id: own });
  assert.equal(await codeOf(() => rest.with({ 'x-api-key': key })), 'unauthorized');

  const again = await house();
  assert.ok(record);
  again.tenants.set(own, {
    tenantId: own,
    status: 'deleting',
    planName: 'free',
    ownerVerified: true,
    ownerId: 1,
  });
  assert.equal(await codeOf(() => again.with({ 'x-api-key': again.key })), 'unauthorized');
});

test('a key that names another tenant gets the answer of a missing one', async () => {
  const { key, ...rest } = await house();

  assert.equal(await codeOf(() => rest.with({ 'x-api-key': key, 'x-tenant': String(own) })), 'no error');
  assert.equal(await codeOf(() => rest.with({ 'x-api-key': key, 'x-tenant': String(second) })), 'not_found');
  assert.equal(await codeOf(() => rest.with({ 'x-api-key': key, 'x-tenant': 'x' })), 'not_found');
});

test('a login acts for the default tenant or the one that it names', async () => {
  const { token, ...rest } = await house();
  const authorization = `Bearer ${token}`;

  const byDefault = await rest.with({ authorization });
  const named = await rest.with({ authorization, 'x-tenant': String(second) });

  assert.deepEqual([byDefault.tenantId, byDefault.role, byDefault.scope], [own, 'owner', 'admin']);
  assert.deepEqual([named.tenantId, named.role, named.scope], [second, 'member', 'write']);
  for (const tenant of ['13', '0', '', '12 ', '12 x', '012', '1'.repeat(70), 'constructor']) {
    assert.equal(await codeOf(() => rest.with({ authorization, 'x-tenant': tenant })), 'not_found', tenant);
  }
});

test('a login ends with its token, and with the generation of the person', async () => {
  const { authenticator, objectStore, clock, token, pass, ...rest } = await house();
  const authorization = `Bearer ${token}`;
  await rest.with({ authorization });

  await updatePerson({ objectStore, clock, random: systemRandom }, person.id, (now) => ({
    ...now,
    generation: now.generation + 1,
  }));
  authenticator.forget({ of: 'person', id: person.id });
  assert.equal(await codeOf(() => rest.with({ authorization })), 'unauthorized');

  const again = await house();
  await again.with({ authorization: `Bearer ${again.token}` });
  again.pass(24 * 60 * 60 * 1000);
  assert.equal(await codeOf(() => again.with({ authorization: `Bearer ${again.token}` })), 'unauthorized');
});

test('a connection acts for its tenant with what it was let have, and never as an owner', async () => {
  const { connected, withToken } = await house();
  const all = await connected();
  const less = await connected({ scope: 'read', namespaces: ['notes-*'] });

  const principal = await withToken(all.tokens.access);
  const limited = await withToken(less.tokens.access);

  assert.deepEqual(
    [
      principal.auth,
      principal.tenantId,
      principal.scope,
      principal.role,
      principal.keyId,
      principal.personId,
    ],
    ['oauth', own, 'write', null, null, person.id],
  );
  assert.equal(principal.connectionId, all.connectionId);
  assert.deepEqual(principal.share, { owner: 1, tenant: own, weight: 4 });
  assert.deepEqual([limited.scope, limited.namespaces], ['read', ['notes-*']]);
  assert.equal(await codeOf(() => withToken(all.tokens.access, String(second))), 'not_found');
});

test('a connection ends with its token, when it is ended, and with a new password, each at once', async () => {
  const { connected, withToken, connections, authenticator, objectStore, clock, pass } = await house();
  const refused = async (token: string) => (await codeOf(() => withToken(token))) === 'unauthorized';
  const ended = await connected();
  const revoked = await connected();
  const expired = await connected();
  for (const { tokens } of [ended, revoked, expired]) await withToken(tokens.access);

  await connections.end({ tenantId: own, connectionId: ended.connectionId });
  await connections.revoke(revoked.tokens.access, () => {});
  assert.ok(await refused(ended.tokens.access));
  assert.ok(await refused(revoked.tokens.access));
  pass(3_600_000);
  assert.ok(await refused(expired.tokens.access));

  const before = await connected();
  await withToken(before.tokens.access);
  await updatePerson({ objectStore, clock, random: systemRandom }, person.id, (now) => ({
    ...now,
    generation: now.generation + 1,
  }));
  authenticator.forget({ of: 'person', id: person.id });
  assert.ok(await refused(before.tokens.access));
});

test('a connection may do nothing where its person is not in the tenant any more, or the tenant is none', async () => {
  const { connected, withToken, authenticator, objectStore, clock, tenants } = await house();
  const { tokens } = await connected();
  const others = await connected({ tenantId: second });
  const record = must(tenants.get(own), 'the own tenant');

  tenants.set(own, { ...record, status: 'suspended' });
  assert.equal((await withToken(tokens.access)).tenantStatus, 'suspended');
  tenants.set(own, { ...record, status: 'deleting' });
  authenticator.forget({ of: 'tenant', id: own });
  assert.equal(await codeOf(() => withToken(tokens.access)), 'unauthorized');

  await updatePerson({ objectStore, clock, random: systemRandom }, person.id, (now) => ({
    ...now,
    tenants: now.tenants.filter(({ tenantId }) => tenantId !== second),
  }));
  assert.equal(await codeOf(() => withToken(others.tokens.access)), 'unauthorized');
});

test('a key that was known needs no object store when its tenant changes', async () => {
  const { authenticator, objectStore, keys, keyId, key, with: ask } = await house();
  await ask({ 'x-api-key': key });
  objectStore.get = () => Promise.reject(new Error('the store is away'));

  authenticator.forget({ of: 'tenant', id: own });
  assert.equal((await ask({ 'x-api-key': key })).keyId, keyId);

  keys.delete(keyId);
  authenticator.forget({ of: 'tenant', id: own });
  assert.equal(await codeOf(() => ask({ 'x-api-key': key })), 'unauthorized');
});

test('what is looked up in vain is counted, and past the quota nothing is read; what is known goes on', async () => {
  const { authenticator, objectStore, key, token } = await house();
  const failures = { count: 0, max: 3 };
  const guard = {
    begin() {
      if (failures.count >= failures.max) throw new ApiError('rate_limited', 'too many');
    },
    failed() {
      failures.count += 1;
    },
  };
  let reads = 0;
  const get = objectStore.get.bind(objectStore);
  objectStore.get = (path, options) => {
    reads += 1;
    return get(path, options);
  };
  const ask = (headers: Record<string, string>) =>
    codeOf(() =>
      authenticator.authenticate(
        credentialOf((name) => headers[name]),
        guard,
      ),
    );
  const unknown = () => ask({ 'x-api-key': makeApiKey(systemRandom).key });
  const withTenant = (tenant: string) => ask({ authorization: `Bearer ${token}`, 'x-tenant': tenant });
  assert.equal(await ask({ 'x-api-key': key }), 'no error');
  assert.equal(await ask({ 'x-api-key': 'tb_garbage' }), 'unauthorized');
  assert.equal(failures.count, 0);
  const repeated = makeApiKey(systemRandom).key;
  for (let i = 0; i < 5; i++) assert.equal(await ask({ 'x-api-key': repeated }), 'unauthorized');
  assert.equal(failures.count, 1);
  assert.equal(await unknown(), 'unauthorized');
  assert.equal(await withTenant('99'), 'not_found');
  assert.equal(failures.count, 3);

  reads = 0;
  const codes = [await unknown(), await withTenant('98'), await ask({ 'x-api-key': key })];

  assert.deepEqual(codes, ['rate_limited', 'rate_limited', 'no error']);
  assert.equal(reads, 0);
});
