import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePeerAddress } from '../../src/peers/peer-address.ts';
import { readSettings } from '../../src/settings.ts';
import { readPeers } from '../../src/settings-peers.ts';
import { type Env, reader, SettingsError } from '../../src/settings-values.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const whole: Env = {
  TIDEBASE_HOST: '0.0.0.0',
  TIDEBASE_BASE_URL: 'https://search.example.com',
  TIDEBASE_LOGIN_TOKEN_KEY: key(1),
  TIDEBASE_KEY_ENCRYPTION_KEY: key(2),
  TIDEBASE_PEER_PORT: '7400',
  TIDEBASE_PEER_ADDRESS: 'search-0.search:7400',
  TIDEBASE_CLUSTER_KEY: key(3),
};
const read = (env: Env) => readPeers(reader(env).read);
const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name)));

function refusal(env: Env): string {
  try {
    read(env);
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.message;
  }
  return assert.fail('it was read');
}

test('a server without a peer port is alone', () => {
  assert.equal(read({ TIDEBASE_HOST: '::' }), null);
});

test('a peer port comes with the key of the cluster, and with the one before it while keys are rotated', () => {
  const settings = { port: 7400, address: 'search-0.search:7400' };

  assert.deepEqual(read(whole), {
    ...settings,
    clusterKeys: { present: Buffer.alloc(32, 3), previous: null },
  });
  assert.deepEqual(read({ ...whole, TIDEBASE_CLUSTER_KEY_PREVIOUS: key(4) }), {
    ...settings,
    clusterKeys: { present: Buffer.alloc(32, 3), previous: Buffer.alloc(32, 4) },
  });
  assert.match(
    refusal({ ...whole, TIDEBASE_CLUSTER_KEY_PREVIOUS: key(3) }),
    /^TIDEBASE_CLUSTER_KEY and TIDEBASE_CLUSTER_KEY_PREVIOUS are the same key/,
  );
});

test('what servers must agree on is asked for by name', () => {
  assert.equal(
    refusal(without('TIDEBASE_BASE_URL', 'TIDEBASE_KEY_ENCRYPTION_KEY')),
    'TIDEBASE_BASE_URL and TIDEBASE_KEY_ENCRYPTION_KEY must be set with TIDEBASE_PEER_PORT, to the same on every server: ' +
      'clients may ask any of them',
  );
  assert.match(refusal(without('TIDEBASE_CLUSTER_KEY')), /^TIDEBASE_CLUSTER_KEY must be set with/);
});

test('what belongs to a peer port does not stand alone', () => {
  for (const name of ['TIDEBASE_PEER_ADDRESS', 'TIDEBASE_CLUSTER_KEY'])
    assert.match(
      refusal({ [name]: whole[name] }),
      new RegExp(`^${name} is set and TIDEBASE_PEER_PORT is not`),
    );
});

test('a server that listens on one address is found there, and one that listens on all must say where', () => {
  const alone = without('TIDEBASE_PEER_ADDRESS');

  assert.equal(read({ ...alone, TIDEBASE_HOST: '10.0.0.5' })?.address, '10.0.0.5:7400');
  assert.equal(read({ ...alone, TIDEBASE_HOST: 'fd00::5' })?.address, '[fd00::5]:7400');
  assert.equal(read({ ...alone, TIDEBASE_HOST: undefined })?.address, '127.0.0.1:7400');
  for (const host of ['0.0.0.0', '::'])
    assert.match(
      refusal({ ...alone, TIDEBASE_HOST: host }),
      /^TIDEBASE_PEER_ADDRESS must be set where TIDEBASE_HOST is/,
    );
});

test('a server with a peer port is one of several', () => {
  assert.equal(readSettings(whole).peers?.address, 'search-0.search:7400');
});

test('an address of a peer is a host and a port', () => {
  assert.deepEqual(parsePeerAddress('10.0.0.5:1'), { host: '10.0.0.5', port: 1 });
  assert.deepEqual(parsePeerAddress('[::1]:65535'), { host: '::1', port: 65_535 });
  assert.deepEqual(parsePeerAddress('a-0.b.svc:7400'), { host: 'a-0.b.svc', port: 7_400 });
  const wrong = [
    '',
    'a',
    'a:',
    ':1',
    'a:0',
    'a:65536',
    '::1:7400',
    '[a]:1',
    'a b:1',
    'a:1:2',
    '-a:1',
    'a:1 ',
  ];
  for (const text of wrong) assert.equal(parsePeerAddress(text), null, text);
});
