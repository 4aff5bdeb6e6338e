import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../../protocol/ids.ts';
import { limits } from '../../../protocol/limits.ts';
import type { KeyRing } from '../../../src/accounts/key-ring.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import type { OauthClient } from '../../../src/oauth/client-record.ts';
import type { Connection } from '../../../src/oauth/connection-record.ts';
import { Connections, type Consent, type IssuedTokens } from '../../../src/oauth/connections.ts';
import { OauthError } from '../../../src/oauth/oauth-error.ts';
import { placeOfToken } from '../../../src/oauth/tokens.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { alone } from '../../support/key-rings.ts';

const tenantId = 7 as TenantId;
const verifier = 'v'.repeat(43);
const challenge = createHash('sha256').update(verifier).digest('base64url');
const redirectUri = 'http://127.0.0.1:1234/callback';
const client: OauthClient = {
  id: `client-${'c'.repeat(32)}`,
  name: 'Client',
  redirectUris: [redirectUri],
  method: 'none',
  secretDigest: null,
  createdAt: 0,
};

/** Any number of servers over one store and one clock. */
function house() {
  const objectStore = new MemoryObjectStore();
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => nowMs };
  const forgotten: (readonly number[])[] = [];
  let isAlive = true;
  const server = (keys: KeyRing = alone(new Uint8Array(32).fill(1))) =>
    new Connections({
      objectStore,
      clock,
      random: systemRandom,
      keys,
      forget: async (_, ids) => void forgotten.push(ids),
      isAlive: async () => isAlive,
    });
  return {
    objectStore,
    forgotten,
    server,
    connections: server(),
    pass: (ms: number) => {
      nowMs += ms;
    },
    kill: () => {
      isAlive = false;
    },
  };
}

const consent = (parts: Partial<Consent> = {}): Consent => ({
  tenantId,
  person: { id: 9 as PersonId, generation: 1 },
  client,
  scope: 'write',
  namespaces: [],
  redirectUri,
  challenge,
  ...parts,
});

const check = () => {};
const exchange = (connections: Connections, code: string, parts: object = {}): Promise<IssuedTokens> =>
  connections.exchange(code, { redirectUri, verifier, scope: null, check, ...parts });
const refresh = (connections: Connections, token: string, scope: string | null = null) =>
  connections.refresh(token, { scope, check });

async function refused(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof OauthError) return error.code;
    if (error instanceof ApiError) return error.code;
    throw error;
  }
  return 'done';
}

async function connected(parts: Partial<Consent> = {}) {
  const made = house();
  const { code, connectionId } = await made.connections.allow(consent(parts));
  const tokens = await exchange(made.connections, code);
  return { ...made, code, connectionId, tokens };
}

const lives = async (connections: Connections, token: string) =>
  (await connections.ofAccessToken(token)) !== null;

test('a code becomes tokens, which lead to the connection with its limits', async () => {
  const { connections, tokens, connectionId } = await connected({ scope: 'read', namespaces: ['notes-*'] });

  const found = await connections.ofAccessToken(tokens.access);

  assert.equal(tokens.expiresInSeconds, 3_600);
  assert.equal(tokens.scope, 'read');
  assert.deepEqual(found?.place, { tenantId, connectionId });
  assert.deepEqual(found?.connection.namespaces, ['notes-*']);
  assert.equal(found?.access.scope, 'read');
});

test('a code that is used again ends what came of it', async () => {
  const { connections, code, tokens, connectionId, forgotten } = await connected();

  assert.equal(await refused(exchange(connections, code)), 'invalid_grant');

  assert.equal(await lives(connections, tokens.access), false);
  assert.equal(await refused(refresh(connections, tokens.refresh)), 'invalid_grant');
  assert.deepEqual(forgotten, [[connectionId]]);
});

test('of ten that use one code at once, on two servers, one gets tokens and they are ended again', async () => {
  const { server, connections } = house();
  const { code } = await connections.allow(consent());
  const servers = [server(), server()];

  const results = await Promise.all(
    Array.from({ length: 10 }, (_, at) => refused(exchange(servers[at % 2] as Connections, code))),
  );

  assert.equal(results.filter((result) => result === 'done').length, 1);
  assert.deepEqual(await connections.list(tenantId), []);
});

test('a wrong redirect address, verifier or client leaves the code usable', async () => {
  const { connections } = house();
  const { code } = await connections.allow(consent());
  const foreign = () => {
    throw new OauthError('invalid_client', 'no');
  };

  assert.equal(
    await refused(exchange(connections, code, { redirectUri: 'http://127.0.0.1:4321/callback' })),
    'invalid_grant',
  );
  assert.equal(await refused(exchange(connections, code, { verifier: 'w'.repeat(43) })), 'invalid_grant');
  assert.equal(await refused(exchange(connections, code, { verifier: 'short' })), 'invalid_grant');
  assert.equal(await refused(exchange(connections, code, { check: foreign })), 'invalid_client');

  await exchange(connections, code);
});

test('a code works for a minute', async () => {
  const { connections, pass } = house();
  const { code } = await connections.allow(consent());

  pass(limits.oauthCodeMs);

  assert.equal(await refused(exchange(connections, code)), 'invalid_grant');
  assert.deepEqual(await connections.list(tenantId), []);
});

test('an access token works for an hour, and a refresh gives the next one', async () => {
  const { connections, tokens, pass } = await connected();

  pass(limits.accessTokenMs - 1);
  assert.equal(await lives(connections, tokens.access), true);
  pass(1);
  assert.equal(await lives(connections, tokens.access), false);
  const next = await refresh(connections, tokens.refresh);

  assert.notEqual(next.refresh, tokens.refresh);
  assert.equal(await lives(connections, next.access), true);
});

test('a refresh token works for 90 days from when it was given', async () => {
  const { connections, tokens, pass } = await connected();

  pass(limits.refreshTokenMs - 1);
  const next = await refresh(connections, tokens.refresh);
  pass(limits.refreshTokenMs);

  assert.equal(await refused(refresh(connections, next.refresh)), 'invalid_grant');
  assert.deepEqual(await connections.list(tenantId), []);
});

test('the refresh token before the present one gives the same successor again, however late', async () => {
  const { connections, tokens, pass } = await connected();
  const first = await refresh(connections, tokens.refresh);

  pass(7 * 60_000 + 45_000);
  const again = await refresh(connections, tokens.refresh);
  pass(24 * 3_600_000);
  const late = await refresh(connections, tokens.refresh);

  assert.equal(again.refresh, first.refresh);
  assert.equal(late.refresh, first.refresh);
  assert.notEqual(again.access, first.access);
  assert.equal(await lives(connections, late.access), true);
});

test('one whose successor was used gives it again for ten minutes, and then ends the connection', async () => {
  const { connections, tokens, pass, connectionId, forgotten } = await connected();
  const second = await refresh(connections, tokens.refresh);
  const third = await refresh(connections, second.refresh);

  pass(limits.refreshGraceMs - 1);
  const again = await refresh(connections, tokens.refresh);
  assert.equal(again.refresh, second.refresh);
  pass(1);
  assert.equal(await refused(refresh(connections, tokens.refresh)), 'invalid_grant');

  assert.equal(await lives(connections, third.access), false);
  assert.equal(await refused(refresh(connections, third.refresh)), 'invalid_grant');
  assert.deepEqual(forgotten, [[connectionId]]);
});

test('five processes that refresh one token at once, on five servers, all go on with the same one', async () => {
  const { server, connections, tokens } = await connected();

  const given = await Promise.all(Array.from({ length: 5 }, () => refresh(server(), tokens.refresh)));

  const [first] = given;
  assert.ok(given.every(({ refresh: token }) => token === first?.refresh));
  for (const { access } of given) assert.equal(await lives(connections, access), true);
  const next = await Promise.all(given.map(({ refresh: token }) => refresh(server(), token)));
  assert.equal(new Set(next.map(({ refresh: token }) => token)).size, 1);
});

test('a token that nobody made ends nothing, whatever number it says', async () => {
  const { connections, tokens, forgotten } = await connected();
  const stranger = new Connections({
    ...componentsOf(),
    keys: alone(new Uint8Array(32).fill(9)),
  });
  const place = placeOfToken('refresh', tokens.refresh);
  assert.ok(place !== null);
  // Made with another key, at another store, for the same ids.
  const theirs = await stranger.allow(consent());
  const made = await exchange(stranger, theirs.code);

  assert.equal(await refused(refresh(connections, made.refresh)), 'invalid_grant');

  assert.equal(await lives(connections, tokens.access), true);
  assert.deepEqual(forgotten, []);

  function componentsOf() {
    return {
      objectStore: new MemoryObjectStore(),
      clock: systemClock,
      random: systemRandom,
      forget: async () => {},
      isAlive: async () => true,
    };
  }
});

test('a refresh token outlives the server key that it was made with', async () => {
  const { server, tokens } = await connected();
  const old = new Uint8Array(32).fill(1);
  const present = new Uint8Array(32).fill(2);

  const during = await refresh(server({ present, previous: old }), tokens.refresh);
  const again = await refresh(server({ present, previous: old }), tokens.refresh);
  const afterwards = await refresh(server(alone(present)), during.refresh);

  assert.equal(again.refresh, during.refresh);
  assert.notEqual(afterwards.refresh, during.refresh);
});

test('a refresh may ask for less and gets no more', async () => {
  const { connections, tokens } = await connected();
  const less = await refresh(connections, tokens.refresh, 'read');
  const again = await refresh(connections, less.refresh, 'read write offline_access');
  const reading = await connected({ scope: 'read' });

  assert.equal(less.scope, 'read');
  assert.equal((await connections.ofAccessToken(less.access))?.access.scope, 'read');
  assert.equal(again.scope, 'write');
  assert.equal((await refresh(reading.connections, reading.tokens.refresh, 'read write')).scope, 'read');
});

test('revoking an access token leaves the connection, revoking a refresh token ends it', async () => {
  const { connections, tokens, connectionId, forgotten } = await connected();
  const foreign = () => {
    throw new OauthError('unauthorized_client', 'no');
  };

  assert.equal(await refused(connections.revoke(tokens.refresh, foreign)), 'unauthorized_client');
  assert.equal(await lives(connections, tokens.access), true);
  assert.equal(await connections.revoke(tokens.access, check), null);
  assert.equal(await lives(connections, tokens.access), false);
  const next = await refresh(connections, tokens.refresh);
  assert.deepEqual(await connections.revoke(next.refresh, check), { tenantId, connectionId });
  assert.equal(await lives(connections, next.access), false);

  assert.deepEqual(forgotten, [[connectionId], [connectionId]]);
  assert.equal(await connections.revoke(next.refresh, check), null, 'again is success');
});

test('an ended connection is gone at once, and ending it again says that there is none', async () => {
  const { connections, tokens, connectionId, forgotten } = await connected();

  assert.equal(await connections.end({ tenantId, connectionId }), true);
  assert.equal(await connections.end({ tenantId, connectionId }), false);

  assert.equal(await lives(connections, tokens.access), false);
  assert.equal(forgotten.length, 2, 'the fronts are told again');
});

test('all of a tenant end, or those of one person', async () => {
  const { connections, tokens } = await connected();
  const other = { id: 10 as PersonId, generation: 1 };
  const theirs = await exchange(connections, (await connections.allow(consent({ person: other }))).code);

  await connections.endAll(tenantId, other.id);
  assert.equal(await lives(connections, theirs.access), false);
  assert.equal(await lives(connections, tokens.access), true);
  await connections.endAll(tenantId, null);

  assert.equal(await lives(connections, tokens.access), false);
  assert.deepEqual(await connections.list(tenantId), []);
});

test('who has a new password gets no tokens for what they allowed before', async () => {
  const { connections, tokens, kill } = await connected();
  const { code } = await connections.allow(consent());

  kill();

  assert.equal(await refused(refresh(connections, tokens.refresh)), 'invalid_grant');
  assert.equal(await refused(exchange(connections, code)), 'invalid_grant');
});

test('a person and a tenant have a number of connections, and those that lapse make room', async () => {
  const { connections, pass } = house();
  for (let count = 0; count < limits.connectionsOfPersonMax; count++) await connections.allow(consent());

  assert.equal(await refused(connections.allow(consent())), 'conflict');
  const others = Array.from(
    { length: limits.connectionsOfTenantMax - limits.connectionsOfPersonMax },
    (_, at) => consent({ person: { id: (100 + at) as PersonId, generation: 1 } }),
  );
  for (const each of others) await connections.allow(each);
  assert.equal(
    await refused(connections.allow(consent({ person: { id: 1 as PersonId, generation: 1 } }))),
    'conflict',
  );

  pass(limits.oauthCodeMs);
  await connections.allow(consent());
  assert.equal((await connections.list(tenantId)).length, 1);
});

test('a flood of one tenant’s changes is refused, and the others go on', async () => {
  const { connections, tokens } = await connected();

  const results = await Promise.all(
    Array.from({ length: limits.connectionChangesAtOnceMax + 10 }, () =>
      refused(refresh(connections, tokens.refresh)),
    ),
  );

  assert.ok(results.includes('rate_limited'));
  assert.ok(results.includes('done'));
  assert.equal(await refused(connections.allow(consent({ tenantId: 8 as TenantId }))), 'done');
});

test('no token and no part of one is in the store', async () => {
  const { objectStore, code, tokens, connections } = await connected();
  const next = await refresh(connections, tokens.refresh);

  const stored = (await objectStore.get(paths.tenantConnections(tenantId)))?.bytes ?? new Uint8Array();

  const text = Buffer.from(stored).toString('latin1');
  for (const token of [code, tokens.access, tokens.refresh, next.access, next.refresh]) {
    assert.ok(!text.includes(token));
    assert.ok(!text.includes(token.slice(-56, -8)), 'its secret part');
  }
  assert.ok(stored.length > 100);
});

test('access tokens of one connection are so many, and the oldest ends first', async () => {
  const { connections, tokens } = await connected();
  let last: IssuedTokens = tokens;
  const given = [tokens.access];
  for (let count = 0; count < limits.accessTokensOfConnectionMax; count++) {
    last = await refresh(connections, last.refresh);
    given.push(last.access);
  }

  const living = await Promise.all(given.map((token) => lives(connections, token)));

  assert.deepEqual(living, [false, ...given.slice(1).map(() => true)]);
  const [stored] = (await connections.list(tenantId)) as readonly Connection[];
  assert.ok((stored?.refresh?.replaced.length ?? 0) <= limits.replacedTokensKeptMax);
});
