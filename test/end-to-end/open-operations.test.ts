/** What anybody may ask without credentials: an attacker who does, and a neighbour beside. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { limits } from '../../protocol/limits.ts';
import { operationList } from '../../protocol/operations.ts';
import { ApiClient, type ErrorBody } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const tooLarge = { status: 413, code: 'too_large' } as const;
const tooMany = { status: 429, code: 'rate_limited' } as const;
const forbidden = { status: 403, code: 'forbidden' } as const;

/** Far above what an answer takes on a slow machine, far below a body's deadline. */
const answerMsMax = 5_000;

const open = operationList.filter(
  ({ auth, request }) => auth === 'none' && request !== null && request !== 'signed',
);

describe('operations without credentials', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;

  before(async () => {
    server = await startServer({
      folder: temporaryFolder(),
      plans: 'built-in',
      env: { TIDEBASE_COMMIT_MS: '20' },
    });
    anyone = new ApiClient(server.url);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  it('take 16 KB and refuse more before a byte of it is read, while neighbours are served', async () => {
    const neighbour = anyone.as((await anyone.signup('neighbour@example.com')).key);
    await neighbour.put('notes', [{ id: 'a', text: 'tide' }]);
    const large = Buffer.from(`{"x":[${'{},'.repeat(300_000)}{}]}`);
    let ended = false;
    const attack = (async () => {
      for (let round = 0; round < 4; round++) {
        for (const { path } of open) {
          const connection = await connectRaw(server.port);
          connection.send(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${large.length}\r\n\r\n`);
          // Not a byte of the body is sent: the answer comes all the same.
          const [answer] = await connection.waitForAnswers(1, answerMsMax);
          assert.deepEqual([answer?.status, connection.received().includes('too_large')], [413, true], path);
          connection.destroy();
          const chunks = [large.subarray(0, 100_000), large.subarray(100_000)];
          await anyone.refused(tooLarge, 'POST', path, { chunks, headers: { connection: 'close' } });
        }
      }
      ended = true;
    })();

    let served = 0;
    while (!ended) {
      assert.equal((await anyone.request('GET', '/healthz')).status, 200);
      assert.equal((await neighbour.get('notes', 'a')).text, 'tide');
      served += 1;
    }

    await attack;
    assert.ok(served > 0);
    assert.ok(open.length >= 5 && open.every(({ bodyBytesMax }) => bodyBytesMax === 16 * 1024));
  });

  it('name no field of a body that has more than any of them', async () => {
    const many = `{${Array.from({ length: 1_500 }, (_, i) => `"f${i}":1`).join(',')}}`;
    const brackets = `[${'{},'.repeat(5_000)}{}]`;
    for (const body of [many, brackets]) {
      assert.ok(body.length > 10_000 && body.length <= limits.openBodyBytesMax);
      for (const { path, inputCode } of open) {
        const answer = await anyone.request('POST', path, { body });
        const { code, error } = answer.json() as ErrorBody;
        assert.equal(code, inputCode, path);
        assert.match(error, /^the body has more than 20 values: send the fields of this operation alone$/);
        assert.ok(answer.body.length < 500, 'an answer is not made of what was sent');
      }
    }
    // Reading ends before the syntax does.
    const unread = `{${Array.from({ length: 19 }, (_, i) => `"f${i}":1`).join(',')},"g":1,]`;
    const { error } = await anyone.refused({ status: 422, code: 'invalid' }, 'POST', '/v1/signup', {
      body: unread,
    });
    assert.match(error, /more than 20 values/);
    const body = { email: {}, name: 'A', password: 'correct horse' };
    await anyone.refused({ status: 422, code: 'invalid', fields: ['email'] }, 'POST', '/v1/signup', { body });
  });

  it('are counted by the address that a proxy on this machine names, before the body, and nobody else is', async () => {
    const attacker = { 'x-forwarded-for': '203.0.113.1, 198.51.100.7' };
    const verify = (headers: Record<string, string>) =>
      anyone.request('POST', '/v1/email/verify', { body: { token: '' }, headers });
    const statuses: number[] = [];
    for (let i = 0; i < 120; i++) statuses.push((await verify(attacker)).status);
    assert.deepEqual(new Set(statuses), new Set([400]));

    const connection = await connectRaw(server.port);
    connection.send(
      'POST /v1/login HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\nContent-Length: 100\r\n\r\n',
    );
    const [answer] = await connection.waitForAnswers(1, answerMsMax);
    connection.destroy();

    assert.equal(answer?.status, 429, 'it is refused although its body never comes');
    assert.ok(Number(answer?.headers.get('retry-after')) > 0);
    await anyone.refused(tooMany, 'POST', '/v1/password/forgot', {
      body: { email: 'neighbour@example.com' },
      headers: attacker,
    });
    // Another client of the same proxy, and a person on this machine.
    for (const headers of [{ 'x-forwarded-for': '198.51.100.8' }, {}] as Record<string, string>[]) {
      const body = { email: 'neighbour@example.com', password: 'correct horse' };
      assert.equal((await anyone.request('POST', '/v1/login', { body, headers })).status, 200);
    }
    await server.until(() => server.errors.includes('"clientAddress":"198.51.100.7"'), 'logs the address');
  });

  it('keep nobody out whose password is guessed from elsewhere', async () => {
    const email = 'victim@example.com';
    await anyone.signup(email);
    const login = (password: string, address: string) =>
      anyone.request('POST', '/v1/login', {
        body: { email, password },
        headers: { 'x-forwarded-for': address },
      });
    const wrong: number[] = [];
    for (let i = 0; i < 12; i++) wrong.push((await login('wrong horse', `192.0.2.${i}`)).status);
    assert.deepEqual(wrong, [...Array.from({ length: 10 }, () => 401), 429, 429]);
    assert.equal((await login('correct horse', '192.0.2.200')).status, 429, 'of the same /24');

    assert.equal((await login('correct horse', '198.51.100.33')).status, 200);

    // From many networks: then everybody is slower, and still let in.
    for (let i = 0; i < 20; i++) assert.equal((await login('wrong horse', `10.7.${i}.1`)).status, 401);
    const began = performance.now();
    assert.equal((await login('correct horse', '198.51.100.34')).status, 200);
    assert.ok(performance.now() - began > 2_900, 'it is held for some seconds');
  });

  it('leave places to others where bodies never end, on this machine too', async () => {
    const { openRequestsOfNetworkMax } = limits;
    const stall = async () => {
      const connection = await connectRaw(server.port);
      connection.send('POST /v1/login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
      return connection;
    };
    const stalled = await Promise.all(Array.from({ length: openRequestsOfNetworkMax }, stall));
    const body = { email: 'neighbour@example.com', password: 'correct horse' };

    // As soon as their heads have been read. What is let in before has taken the place of one of them.
    await eventually(async () => {
      const { status } = await anyone.request('POST', '/v1/login', { body });
      if (status !== 429) stalled.push(await stall());
      return status === 429;
    }, 'a login is refused');
    await anyone.refused(tooMany, 'POST', '/v1/login', { body });
    const headers = { 'x-forwarded-for': '198.51.100.9' };
    assert.equal((await anyone.request('POST', '/v1/login', { body, headers })).status, 200);

    for (const connection of stalled) connection.destroy();
    await eventually(
      async () => (await anyone.request('POST', '/v1/login', { body })).status === 200,
      'their places come back',
    );
  });

  it('are refused to pages of other origins where they have consequences', async () => {
    const bodies: Readonly<Record<string, object>> = {
      '/v1/signup': { email: 'page@example.com', name: 'P', password: 'correct horse' },
      '/v1/login': { email: 'neighbour@example.com', password: 'correct horse' },
      '/v1/password/forgot': { email: 'neighbour@example.com' },
      '/v1/password/reset': { token: 'x', password: 'another horse' },
    };
    assert.deepEqual(
      operationList.filter(({ sameOrigin }) => sameOrigin).map(({ path }) => path),
      Object.keys(bodies),
    );
    const { port } = new URL(server.url);
    for (const [path, body] of Object.entries(bodies)) {
      for (const origin of ['https://evil.example', 'null', `http://localhost:${port}`]) {
        const { error } = await anyone.refused(forbidden, 'POST', path, { body, headers: { origin } });
        assert.match(error, /another origin/);
      }
      for (const headers of [
        { origin: server.url },
        { origin: `http://localhost:${port}`, host: `localhost:${port}` },
        { origin: 'https://tide.example', host: 'tide.example' },
      ]) {
        const { status } = await anyone.request('POST', path, { body, headers });
        assert.notEqual(status, 403, `${path} from ${headers.origin}`);
      }
    }
  });

  it('take no packed body, nor does any other operation but imports', async () => {
    const { key } = await anyone.signup('packer@example.com');
    const packer = anyone.as(key);
    const unsupported = { status: 415, code: 'bad_request' } as const;
    const requests: readonly (readonly [ApiClient, string, string, object])[] = [
      [anyone, 'POST', '/v1/login', { email: 'packer@example.com', password: 'correct horse' }],
      [packer, 'POST', '/v1/keys', { name: 'k' }],
      [packer, 'POST', '/v1/namespaces/packed/docs', { docs: [{ id: 'a', text: 'x' }] }],
      [packer, 'POST', '/v1/namespaces/packed/search', { q: 'x' }],
    ];
    for (const [client, method, path, body] of requests) {
      for (const encoding of ['gzip', 'br', 'gzip, identity']) {
        const headers = { 'content-encoding': encoding };
        const { error } = await client.refused(unsupported, method, path, { body, headers });
        assert.match(error, /imports only/);
      }
      const headers = { 'content-encoding': 'Identity' };
      assert.ok((await client.request(method, path, { body, headers })).status < 300, path);
    }
  });
});
