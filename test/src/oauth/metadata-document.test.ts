import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { type DocumentComponents, MetadataDocuments } from '../../../src/oauth/metadata-document.ts';
import { OauthError } from '../../../src/oauth/oauth-error.ts';
import { arePublic, isPublicAddress } from '../../../src/oauth/public-address.ts';
import { certificate, certificateKey } from '../../support/test-certificate.ts';

/** What the server at client.example answers, by path. */
const answers = new Map<string, (answer: ServerResponse) => void>();
const asked: string[] = [];
const handle: RequestListener = (request, answer) => {
  asked.push(request.url ?? '');
  (answers.get(request.url ?? '') ?? ((it) => it.writeHead(404).end()))(answer);
};
const server = createServer({ cert: certificate, key: certificateKey }, handle);
let port = 0;

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const loopback: readonly LookupAddress[] = [{ address: '127.0.0.1', family: 4 }];

/** Takes the loopback for public, as no server does. */
function documents(parts: Partial<DocumentComponents> = {}) {
  return new MetadataDocuments({
    clock: systemClock,
    authority: certificate,
    lookUp: async () => loopback,
    arePublic: () => true,
    ...parts,
  });
}

const idOf = (path: string) => `https://client.example:${port}${path}`;
const documentOf = (id: string, parts: object = {}) =>
  JSON.stringify({
    client_id: id,
    client_name: 'Test',
    redirect_uris: ['https://client.example/cb'],
    ...parts,
  });

function serve(path: string, parts: object = {}): string {
  answers.set(path, (answer) => answer.end(documentOf(idOf(path), parts)));
  return idOf(path);
}

async function refusal(id: string, parts: Partial<DocumentComponents> = {}): Promise<string> {
  try {
    await documents(parts).clientOf(id, 'here');
  } catch (error) {
    assert.ok(error instanceof OauthError, String(error));
    return `${error.code}: ${error.message}`;
  }
  assert.fail(`${id} was taken`);
}

test('a client is known by its document, which is asked for once', async () => {
  const id = serve('/ok', {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: 'https://client.example/keys',
  });
  const known = documents();

  const [client] = await Promise.all([known.clientOf(id, 'here'), known.clientOf(id, 'here')]);
  await known.clientOf(id, 'here');

  assert.deepEqual(
    { ...client, createdAt: 0 },
    {
      id,
      name: 'Test',
      redirectUris: ['https://client.example/cb'],
      method: 'none',
      secretDigest: null,
      createdAt: 0,
    },
  );
  assert.equal(asked.filter((path) => path === '/ok').length, 1);
});

test('a document of another client, with a secret or with no address is refused', async () => {
  answers.set('/other', (answer) => answer.end(documentOf(idOf('/ok'))));
  assert.match(await refusal(idOf('/other')), /^invalid_client_metadata: client_id in the document/);
  assert.match(
    await refusal(serve('/secret', { token_endpoint_auth_method: 'client_secret_post' })),
    /can have no secret/,
  );
  assert.match(await refusal(serve('/none', { redirect_uris: [] })), /^invalid_redirect_uri/);
  assert.match(await refusal(serve('/script', { redirect_uris: ['javascript:x'] })), /^invalid_redirect_uri/);
});

test('what is no document is refused, and nothing is followed', async () => {
  answers.set('/moved', (answer) => answer.writeHead(302, { location: idOf('/ok') }).end());
  answers.set('/html', (answer) => answer.end('<html>'));
  const before = asked.length;

  assert.match(await refusal(idOf('/moved')), /it answered 302/);
  assert.match(await refusal(idOf('/missing')), /it answered 404/);
  assert.match(await refusal(idOf('/html')), /no JSON/);

  assert.equal(asked.length, before + 3);
});

test('a document of 10 MB is read up to its bound and no further', async () => {
  let sent = 0;
  answers.set('/large', (answer) => {
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    const more = () => {
      while (sent < 10_000_000 && !answer.destroyed) {
        sent += chunk.byteLength;
        if (!answer.write(chunk)) return void answer.once('drain', more);
      }
      answer.end();
    };
    more();
  });

  assert.match(await refusal(idOf('/large')), /longer than 5120 bytes/);

  assert.ok(sent < 10_000_000, `${sent} bytes were sent`);
});

test('a server that says nothing, or little by little, has two and a half seconds', async () => {
  answers.set('/silent', () => {});
  answers.set('/slow', (answer) => {
    answer.write(' ');
    const timer = setInterval(() => answer.write(' '), 200);
    answer.on('close', () => clearInterval(timer));
  });
  const began = systemClock.monotonic();

  const refusals = await Promise.all([refusal(idOf('/silent')), refusal(idOf('/slow'))]);

  assert.ok(systemClock.monotonic() - began < 2 * limits.metadataFetchMs);
  for (const sentence of refusals) assert.match(sentence, /took too long/);
});

test('nothing on this machine or in a network of somebody’s own is called, whatever its name', async () => {
  const guarded = { arePublic };
  const id = serve('/guarded');
  const before = asked.length;

  for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '192.168.1.1', '100.64.0.1', '0.0.0.0'])
    assert.match(
      await refusal(id, { ...guarded, lookUp: async () => [{ address, family: 4 }] }),
      /no address on the public network/,
      address,
    );
  for (const address of [
    '::1',
    '::',
    'fe80::1',
    'fc00::1',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '::7f00:1',
    '64:ff9b:1::a00:1',
    'fec0::1',
    '100::1',
  ])
    assert.match(
      await refusal(id, { ...guarded, lookUp: async () => [{ address, family: 6 }] }),
      /no address on the public network/,
      address,
    );
  assert.match(
    await refusal(id, { ...guarded, lookUp: () => Promise.reject(new Error('ENOTFOUND')) }),
    /no address on the public network/,
    'a name that is nobody’s is told as one of a network of somebody’s own',
  );
  const both = async () => [{ address: '93.184.215.14', family: 4 }, ...loopback];
  assert.match(
    await refusal(id, { ...guarded, lookUp: both }),
    /no address on the public network/,
    'one of two',
  );
  assert.match(
    await refusal(idOf('/guarded').replace('client.example', '127.0.0.1'), guarded),
    /host must be a name/,
  );
  assert.match(await refusal(`https://[::1]:${port}/guarded`, guarded), /host must be a name/);
  const system = new MetadataDocuments({ clock: systemClock, authority: certificate });
  await assert.rejects(
    system.clientOf(`https://localhost:${port}/guarded`, 'here'),
    /no address on the public network/,
  );

  assert.equal(asked.length, before);
});

test('a name is looked up once for a call, so that its answer cannot be another one a moment later', async () => {
  const id = serve('/rebound');
  const before = asked.length;
  let lookUps = 0;
  const rebinding = async (): Promise<readonly LookupAddress[]> => {
    lookUps++;
    // Public at the first look, this machine from the second on.
    return lookUps === 1 ? [{ address: '203.0.113.7', family: 4 }] : loopback;
  };
  const judged: (readonly LookupAddress[])[] = [];
  const judge = (addresses: readonly LookupAddress[]) => {
    judged.push(addresses);
    return !addresses.some(({ address }) => address === '127.0.0.1');
  };

  assert.match(await refusal(id, { lookUp: rebinding, arePublic: judge }), /reached|too long/);

  assert.equal(lookUps, 1);
  assert.deepEqual(
    judged.flat().map(({ address }) => address),
    ['203.0.113.7'],
  );
  assert.equal(asked.length, before, 'nobody called this machine');
});

test('what is no whole https address with a path is no id', async () => {
  for (const id of [
    'https://client.example',
    'https://client.example/',
    'https://client.example/a/../b',
    'https://client.example/#x',
    'https://me:secret@client.example/x',
    'https://CLIENT.example/x',
    'https://0x7f.1/x',
    `https://client.example/${'x'.repeat(limits.clientIdCharactersMax)}`,
  ])
    assert.match(await refusal(id), /^invalid_client: /, id);
});

test('so many documents are read at once, and a failure is remembered for a while', async () => {
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const known = documents({ clock, lookUp: () => new Promise(() => {}) });
  const waiting = Array.from({ length: limits.metadataFetchesAtOnceMax }, (_, at) =>
    known.clientOf(idOf(`/wait-${at}`), `network ${at}`).catch(() => {}),
  );
  await assert.rejects(known.clientOf(idOf('/one-more'), 'another'), /too many documents/);
  await Promise.all(waiting);

  const failing = documents({ clock });
  await assert.rejects(failing.clientOf(idOf('/later'), 'here'));
  serve('/later');
  await assert.rejects(failing.clientOf(idOf('/later'), 'here'));
  now += limits.metadataFailureKeptMs;
  assert.equal((await failing.clientOf(idOf('/later'), 'here')).name, 'Test');
});

test('one network has some of the places, and its failures displace no client', async () => {
  let lookUp: DocumentComponents['lookUp'] = () => new Promise(() => {});
  const known = documents({ lookUp: (host) => lookUp?.(host) ?? Promise.reject(new Error('gone')) });
  const waiting = Array.from({ length: limits.metadataFetchesOfNetworkMax }, (_, at) =>
    known.clientOf(idOf(`/never-${at}`), 'theirs').catch(() => {}),
  );
  await assert.rejects(known.clientOf(idOf('/never'), 'theirs'), /too many documents/);

  lookUp = async () => loopback;
  const id = serve('/others');
  assert.equal((await known.clientOf(id, 'ours')).name, 'Test');
  await Promise.all(waiting);
  await assert.rejects(known.clientOf(idOf('/nowhere'), 'theirs'), /404/, 'places are given back');

  lookUp = undefined;
  for (let at = 0; at <= limits.metadataDocumentsKeptMax; at++)
    await known.clientOf(idOf(`/no-${at}`), 'theirs').catch(() => {});
  const before = asked.length;
  assert.equal((await known.clientOf(id, 'ours')).name, 'Test');
  assert.equal(asked.length, before, 'it was remembered');
});

test('only unicast addresses of the public network are public', () => {
  for (const address of ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'])
    assert.ok(isPublicAddress(address));
  for (const address of [
    '',
    'localhost',
    '224.0.0.1',
    '255.255.255.255',
    '198.18.0.1',
    'ff02::1',
    '2001:db8::1',
  ])
    assert.ok(!isPublicAddress(address), address);
  assert.ok(!arePublic([]));
});
