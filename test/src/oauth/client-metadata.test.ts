import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { sha256Hex } from '../../../src/base/hash.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { registrationOf } from '../../../src/oauth/client-metadata.ts';
import { type ClientComponents, findClient, keepClient, registerClient } from '../../../src/oauth/clients.ts';
import { MetadataDocuments } from '../../../src/oauth/metadata-document.ts';
import { OauthError } from '../../../src/oauth/oauth-error.ts';
import { sweepClients } from '../../../src/oauth/sweep-clients.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';

const redirect_uris = ['http://127.0.0.1/callback'];
const chance = { random: systemRandom, nowMs: 0 };

function codeOf(body: unknown): string {
  try {
    registrationOf(body, chance);
  } catch (error) {
    assert.ok(error instanceof OauthError, String(error));
    return error.code;
  }
  return 'registered';
}

test('a public client has no secret, another one a secret of which the digest is kept', () => {
  const open = registrationOf(
    { redirect_uris, client_name: ' Claude ', token_endpoint_auth_method: 'none' },
    chance,
  );
  const closed = registrationOf({ redirect_uris }, chance);

  assert.deepEqual([open.client.name, open.client.method, open.secret], ['Claude', 'none', null]);
  assert.equal(closed.client.method, 'client_secret_basic');
  assert.equal(closed.client.secretDigest, sha256Hex(closed.secret ?? ''));
  assert.notEqual(open.client.id, closed.client.id);
});

test('what clients send beside is let be, and what cannot be served is refused', () => {
  const right = { redirect_uris, token_endpoint_auth_method: 'none' };
  for (const parts of [
    { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    { grant_types: ['authorization_code'], application_type: 'native', scope: 'read offline_access' },
    { client_uri: 'https://client.example', logo_uri: 'x', contacts: [1], software_id: 'y' },
    { client_name: '' },
    ...['Клиент', 'ไคลเอนต์ที่ดี', 'क्लाइंट', '❤\ufe0f app', 'e\u0301te\u0301'].map((client_name) => ({
      client_name,
    })),
  ])
    assert.equal(codeOf({ ...right, ...parts }), 'registered', JSON.stringify(parts));
  for (const parts of [
    { grant_types: ['client_credentials'] },
    { grant_types: ['authorization_code', 'password'] },
    { grant_types: 'authorization_code' },
    { response_types: ['token'] },
    { token_endpoint_auth_method: 'private_key_jwt' },
    { client_name: 'x'.repeat(limits.clientNameCharactersMax + 1) },
    { client_name: 'Cla\u202eude' },
    { client_name: 'Claude\nDesktop' },
    { client_name: 7 },
    // Nothing that is seen, and marks that would cover what stands around them.
    ...[' ', '\u3164', '\u2800 \u2800', '\u115f\u1160', `Z${'\u0301'.repeat(5)}`].map((client_name) => ({
      client_name,
    })),
  ])
    assert.equal(codeOf({ ...right, ...parts }), 'invalid_client_metadata', JSON.stringify(parts));
  for (const uris of [
    undefined,
    [],
    'https://a.example/',
    [7],
    ['javascript:x'],
    Array(21).fill(redirect_uris[0]),
  ])
    assert.equal(codeOf({ ...right, redirect_uris: uris }), 'invalid_redirect_uri');
  for (const body of [null, [], 'x', 7]) assert.equal(codeOf(body), 'invalid_client_metadata');
});

test('a registration that nobody uses is gone after a day, one that was used stays', async () => {
  let now = 0;
  const clock = { ...systemClock, now: () => now };
  const components: ClientComponents = {
    objectStore: new MemoryObjectStore(),
    clock,
    random: systemRandom,
    documents: new MetadataDocuments({ clock }),
  };
  const body = { redirect_uris, token_endpoint_auth_method: 'none' };
  const unused = (await registerClient(components, body)).client;
  const used = (await registerClient(components, body)).client;
  await keepClient(components, used);
  await keepClient(components, used);

  now = limits.unusedClientMs - 1;
  assert.deepEqual(await findClient(components, unused.id, 'here'), unused);
  now += 1;

  await assert.rejects(findClient(components, unused.id, 'here'), /register/);
  assert.deepEqual(await findClient(components, used.id, 'here'), used);
  await assert.rejects(findClient(components, '../../account/person/1', 'here'), OauthError);
});

test('the sweep deletes registrations that are older than a day, and none that was used', async () => {
  const objectStore = new MemoryObjectStore();
  const clock = { ...systemClock };
  const documents = new MetadataDocuments({ clock });
  const components: ClientComponents = { objectStore, clock, random: systemRandom, documents };
  const body = { redirect_uris, token_endpoint_auth_method: 'none' };
  const unused = (await registerClient(components, body)).client;
  const used = (await registerClient(components, body)).client;
  await keepClient(components, used);
  const inAnHour = (hours: number) => ({ ...systemClock, now: () => systemClock.now() + hours * 3_600_000 });

  await sweepClients({ store: objectStore, clock: inAnHour(23) });
  assert.equal((await findClient(components, unused.id, 'here')).id, unused.id);
  await sweepClients({ store: objectStore, clock: inAnHour(25) });

  await assert.rejects(findClient(components, unused.id, 'here'), OauthError);
  assert.equal((await findClient(components, used.id, 'here')).id, used.id);
});
