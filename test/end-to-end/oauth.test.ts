/** The authorization server as clients meet it, wrong ones above all, and their tokens at /mcp. Its page is in oauth-page.test.ts. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ConnectionItem, SignupAnswer, Tenant } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { IssuedSecrets, smallFilesBelow } from '../support/issued-secrets.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import {
  askTokens,
  callback,
  codeOf,
  connect,
  newProof,
  refreshTokens,
  register,
  send,
  sendForm,
  type Tokens,
} from '../support/oauth-flow.ts';
import { lettersOnceThere } from '../support/outbox.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const account = { email: 'ada@example.com', password: 'correct horse battery' };

/** A process of its own that is ready to refresh; the call lets it do so, and answers what it got. */
async function refreshProcess(
  ...words: readonly [url: string, clientId: string, refreshToken: string]
): Promise<() => Promise<{ readonly status: number; readonly text: string }>> {
  const file = fileURLToPath(new URL('../support/refresh-child.js', import.meta.url));
  const child = spawn(process.execPath, [file, ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, 'ready');
  return async () => {
    child.stdin.write('go\n');
    const { value } = await lines.next();
    return JSON.parse(value);
  };
}

describe('the authorization server', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let url = '';
  let made: SignupAnswer;
  let api: ApiClient;
  let mcp: McpCaller;
  /** All that must be nowhere: in no log, no object and no audit line. */
  const secrets = new IssuedSecrets();

  before(async () => {
    server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '5', TIDEBASE_LOG_LEVEL: 'debug' } });
    url = server.url;
    const anyone = new ApiClient(url);
    made = await anyone.signup(account.email, 'Ada', account.password);
    api = anyone.as(made.key);
    secrets.push(made.key, account.password);
    mcp = new McpCaller(url, null);
    await api.put('notes', [{ id: 'a', text: 'low tide' }]);
    await api.put('other', [{ id: 'b', text: 'high tide' }]);
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    secrets.assertNowhere(server, folder);
  });

  async function connected(choice: Readonly<Record<string, string>> = {}) {
    const all = await connect(url, account, choice);
    secrets.push(all.code, all.tokens.access_token, all.tokens.refresh_token);
    return all;
  }

  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const statusAtMcp = async (token: string) => (await mcp.as(token).send({ body: list })).status;
  const connections = () => api.call<ConnectionItem[]>('GET', '/v1/connections');

  it('is described where clients look, and /mcp says where that is', async () => {
    const refusal = await mcp.send({ body: list });
    assert.equal(refusal.status, 401);
    const challenge = String(refusal.headers['www-authenticate']);
    const [, described = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    const resource = JSON.parse((await send(described)).text);
    assert.equal(resource.resource, `${url}/mcp`);
    assert.deepEqual(resource.authorization_servers, [url]);
    assert.deepEqual(JSON.parse((await send(`${url}/.well-known/oauth-protected-resource`)).text), resource);
    const served = await send(`${url}/.well-known/oauth-authorization-server`);
    const metadata = JSON.parse(served.text);
    assert.equal(metadata.issuer, url);
    assert.deepEqual(metadata.code_challenge_methods_supported, ['S256']);
    assert.equal(served.headers['access-control-allow-origin'], '*');
    assert.match(challenge, /scope="read write"/);
    assert.doesNotMatch(challenge, /error=/);
  });

  it('gives tokens that work at /mcp, with what the person allowed, and nowhere else', async () => {
    const reading = await connected();
    const writing = await connected({ access: 'write', reach: 'some', namespaces: 'notes, log-*' });

    assert.equal(reading.tokens.scope, 'read');
    assert.equal(writing.tokens.scope, 'read write');
    assert.equal(reading.tokens.expires_in, 3_600);
    const toolsOf = async ({ access_token }: Tokens) =>
      (await mcp.as(access_token).send({ body: list })).body.result.tools.length;
    assert.equal(await toolsOf(reading.tokens), 6);
    assert.equal(await toolsOf(writing.tokens), 11);
    const limited = mcp.as(writing.tokens.access_token);
    assert.equal((await limited.call('search', { namespace: 'notes', query: 'tide' })).isError, false);
    assert.equal((await limited.call('search', { namespace: 'other', query: 'tide' })).isError, true);
    const written = await limited.call('write_documents', {
      namespace: 'log-1',
      docs: [{ id: 'x', text: 'neap tide' }],
    });
    assert.equal(written.isError, false, written.text);
    await anyoneAs(reading.tokens.access_token).refused(
      { status: 401, code: 'unauthorized' },
      'GET',
      '/v1/me',
    );
  });

  const anyoneAs = (token: string) => api.as(token);

  it('leaves a code usable that comes with what is wrong, and ends all of one that comes twice', async () => {
    const { client_id } = await register(url);
    const foreign = await register(url);
    const proof = newProof();
    const code = await codeOf(url, { account, clientId: client_id, proof });
    const right = {
      grant_type: 'authorization_code',
      client_id,
      code,
      code_verifier: proof.verifier,
      redirect_uri: callback,
    };
    const rows: readonly [Record<string, string>, number, string][] = [
      [{ redirect_uri: 'http://127.0.0.1:5556/callback' }, 400, 'invalid_grant'],
      [{ code_verifier: newProof().verifier }, 400, 'invalid_grant'],
      [{ code_verifier: '' }, 400, 'invalid_request'],
      [{ resource: 'https://other.example/mcp' }, 400, 'invalid_target'],
      [{ client_id: foreign.client_id }, 400, 'invalid_grant'],
      [{ client_id: '' }, 400, 'invalid_request'],
      [{ grant_type: 'client_credentials' }, 400, 'unsupported_grant_type'],
      [{ grant_type: '' }, 400, 'invalid_request'],
      [{ code: `${code.slice(0, -1)}x` }, 400, 'invalid_grant'],
    ];
    for (const [changes, status, error] of rows) {
      const answer = await askTokens(url, { ...right, ...changes });
      assert.equal(answer.status, status, JSON.stringify(changes));
      assert.equal(JSON.parse(answer.text).error, error, JSON.stringify(changes));
      assert.equal(answer.headers['cache-control'], 'no-store');
    }

    const tokens = JSON.parse((await askTokens(url, right)).text) as Tokens;
    secrets.push(code, proof.verifier, tokens.access_token, tokens.refresh_token);
    assert.equal(await statusAtMcp(tokens.access_token), 200);
    const again = await askTokens(url, right);
    assert.equal(JSON.parse(again.text).error, 'invalid_grant');
    assert.equal(await statusAtMcp(tokens.access_token), 401);
    assert.equal((await refreshTokens(url, client_id, tokens.refresh_token)).status, 400);
  });

  it('knows a client with a secret by it, in the header or in the form', async () => {
    for (const method of ['client_secret_basic', 'client_secret_post']) {
      const { client_id, client_secret = '' } = await register(url, { token_endpoint_auth_method: method });
      secrets.push(client_secret);
      const proof = newProof();
      const code = await codeOf(url, { account, clientId: client_id, proof });
      const fields = { grant_type: 'authorization_code', code, code_verifier: proof.verifier };
      const basic = (secret: string) => ({
        authorization: `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`,
      });

      for (const wrong of [
        await askTokens(url, { ...fields, client_id }),
        await askTokens(url, { ...fields, client_id, client_secret: 'wrong' }),
        await askTokens(url, fields, basic('wrong')),
      ])
        assert.deepEqual([wrong.status, JSON.parse(wrong.text).error], [401, 'invalid_client']);
      const answer =
        method === 'client_secret_basic'
          ? await askTokens(url, fields, basic(client_secret))
          : await askTokens(url, { ...fields, client_id, client_secret });
      assert.equal(answer.status, 200, answer.text);
      const tokens = JSON.parse(answer.text) as Tokens;
      secrets.push(code, tokens.access_token, tokens.refresh_token);
    }
  });

  it('gives five processes that refresh one token at once the same successor', async () => {
    const { clientId, tokens } = await connected();
    const processes = await Promise.all(
      Array.from({ length: 5 }, () => refreshProcess(url, clientId, tokens.refresh_token)),
    );

    const answers = await Promise.all(processes.map((refresh) => refresh()));

    const given = answers.map(({ status, text }) => {
      assert.equal(status, 200, text);
      return JSON.parse(text) as Tokens;
    });
    assert.equal(new Set(given.map(({ refresh_token }) => refresh_token)).size, 1);
    for (const each of given) {
      secrets.push(each.access_token, each.refresh_token);
      assert.equal(await statusAtMcp(each.access_token), 200);
    }
    const late = await refreshTokens(url, clientId, tokens.refresh_token);
    assert.equal((JSON.parse(late.text) as Tokens).refresh_token, given[0]?.refresh_token);
  });

  it('lists connections with their last use, and ends one at once, in the middle of a call too', async () => {
    const { tokens } = await connected({ reach: 'some', namespaces: 'notes' });
    assert.equal((await connections())[0]?.last_used_at, null);
    // Nothing of it is metered, and it is a use.
    assert.equal(await statusAtMcp(tokens.access_token), 200);
    const [newest] = await connections();
    assert.equal(newest?.person.email, account.email);
    assert.equal(newest?.client.name, 'Test client');
    assert.deepEqual([newest?.scope, newest?.namespaces], ['read', ['notes']]);
    assert.notEqual(newest?.last_used_at, null);

    // A call whose head is there and whose body is not yet: it is judged by what holds when the body has come.
    const calling = slowCall(tokens.access_token);
    await sleep(200);
    await api.call('DELETE', `/v1/connections/${newest?.id}`);
    assert.equal(await statusAtMcp(tokens.access_token), 401);
    assert.equal(await calling.end(), 401);

    const gone = `/v1/connections/${newest?.id}`;
    await api.refused({ status: 404, code: 'not_found' }, 'DELETE', gone);
    await api.refused({ status: 404, code: 'not_found' }, 'DELETE', '/v1/connections/x');
    assert.ok((await connections()).every(({ id }) => id !== newest?.id));
  });

  it('tells the audit log who allowed a connection, and of each that ended', async () => {
    const earlier = new Set(audited().map(({ target }) => target));
    const { code, clientId, proof } = await connected();
    await askTokens(url, {
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      code_verifier: proof.verifier,
    });
    const ofThisOne = () => {
      const events = audited().filter(({ event }) => event.startsWith('connection.'));
      const pair = events.slice(-2);
      return pair.some(({ target }) => earlier.has(target)) ? [] : pair;
    };
    await eventually(() => ofThisOne().at(-1)?.event === 'connection.ended', 'the audit log tells of it');

    const [allowed, ended] = ofThisOne();
    assert.deepEqual([allowed?.event, ended?.event], ['connection.allowed', 'connection.ended']);
    assert.equal(allowed?.personId, made.id);
    assert.equal(allowed?.target, ended?.target);
    assert.ok(audited().some(({ event }) => event === 'person.logged-in'));
  });

  /** The lines of the audit log so far. It is written soon after the answers. */
  function audited(): { readonly event: string; readonly personId?: number; readonly target?: string }[] {
    const lines = smallFilesBelow(join(folder, 'audit')).flatMap((file) =>
      readFileSync(file, 'utf8').split('\n').slice(0, -1),
    );
    return lines.map((line) => JSON.parse(line));
  }

  /** A tool call whose body comes in two parts. */
  function slowCall(token: string) {
    let finish = () => {};
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_namespaces', arguments: {} },
    });
    const waits = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const stream = new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from(body.slice(0, 10)));
        await waits;
        controller.enqueue(Buffer.from(body.slice(10)));
        controller.close();
      },
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const options = { method: 'POST', headers, body: stream, duplex: 'half' } as RequestInit;
    const answer = fetch(`${url}/mcp`, options);
    return {
      async end() {
        finish();
        return (await answer).status;
      },
    };
  }

  it('gives a client less where it asks for less, and never more than the person allowed', async () => {
    const ask = async ({ clientId, tokens }: Awaited<ReturnType<typeof connected>>, scope: string) => {
      const answer = await askTokens(url, {
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: tokens.refresh_token,
        scope,
      });
      assert.equal(answer.status, 200, answer.text);
      const next = JSON.parse(answer.text) as Tokens;
      secrets.push(next.access_token, next.refresh_token);
      const listed = await mcp.as(next.access_token).send({ body: list });
      return [next.scope, listed.body.result.tools.length];
    };
    const reading = await connected();
    const writing = await connected({ access: 'write' });

    assert.deepEqual(await ask(reading, 'read write'), ['read', 6]);
    assert.deepEqual(await ask(writing, 'read'), ['read', 6]);
    assert.deepEqual(await ask(writing, 'write offline_access x'), ['read write', 11]);
  });

  it('revokes nothing for who does not show the secret of its client', async () => {
    const { client_id, client_secret = '' } = await register(url, {
      token_endpoint_auth_method: 'client_secret_post',
    });
    const proof = newProof();
    const code = await codeOf(url, { account, clientId: client_id, proof });
    const fields = { grant_type: 'authorization_code', client_id, client_secret };
    const answer = await askTokens(url, { ...fields, code, code_verifier: proof.verifier });
    const { access_token, refresh_token } = JSON.parse(answer.text) as Tokens;
    secrets.push(client_secret, code, access_token, refresh_token);
    const revoke = async (more: Readonly<Record<string, string>>) =>
      (await sendForm(`${url}/oauth/revoke`, { token: refresh_token, client_id, ...more })).status;

    assert.deepEqual([await revoke({}), await revoke({ client_secret: 'wrong' })], [401, 401]);
    assert.equal(await statusAtMcp(access_token), 200);
    assert.equal(await revoke({ client_secret }), 200);
    assert.equal(await statusAtMcp(access_token), 401);
  });

  it('revokes what its client gives back, and nothing for another client', async () => {
    const { clientId, tokens } = await connected();
    const revoke = (token: string, client_id: string) =>
      sendForm(`${url}/oauth/revoke`, { token, client_id });
    const foreign = await register(url);

    assert.equal((await revoke(tokens.refresh_token, foreign.client_id)).status, 400);
    assert.equal(await statusAtMcp(tokens.access_token), 200);
    assert.equal((await revoke(tokens.access_token, clientId)).status, 200);
    assert.equal(await statusAtMcp(tokens.access_token), 401);
    const next = JSON.parse((await refreshTokens(url, clientId, tokens.refresh_token)).text) as Tokens;
    assert.equal((await revoke(next.refresh_token, clientId)).status, 200);
    assert.equal(await statusAtMcp(next.access_token), 401);
    assert.equal((await refreshTokens(url, clientId, next.refresh_token)).status, 400);
    assert.equal((await revoke('tbr_nobody', clientId)).status, 200);
  });

  it('refuses bodies that are long or of another kind, and other methods, before it does anything', async () => {
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/register', '/oauth/authorize']) {
      const type = path === '/oauth/register' ? 'application/json' : 'application/x-www-form-urlencoded';
      const long = await send(url + path, {
        method: 'POST',
        headers: { 'content-type': type },
        body: 'x'.repeat(17_000),
      });
      assert.equal(long.status, 413, path);
      const other = await send(url + path, {
        method: 'POST',
        headers: { 'content-type': 'text/plain' },
        body: 'x',
      });
      assert.equal(other.status, 400, path);
      assert.equal((await send(url + path, { method: 'DELETE' })).status, 405, path);
      if (path !== '/oauth/authorize') assert.equal((await send(url + path)).status, 405, path);
    }
    const broken = await send(`${url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    assert.deepEqual([broken.status, JSON.parse(broken.text).error], [400, 'invalid_request']);
    assert.equal((await send(`${url}/oauth/nothing`)).status, 404);
  });

  it('ends connections with a new password, and with their tenant', async () => {
    const login = api.as(await api.as(null).login(account.email, account.password));
    const tenant = await login.call<Tenant>('POST', '/v1/tenants', { name: 'second' });
    const inSecond = await connected({ tenant: String(tenant.id) });
    const inOwn = await connected({ tenant: String(made.tenant_id) });
    assert.equal(await statusAtMcp(inSecond.tokens.access_token), 200);

    await login.call('DELETE', `/v1/tenants/${tenant.id}`);
    assert.equal(await statusAtMcp(inSecond.tokens.access_token), 401);
    assert.equal((await refreshTokens(url, inSecond.clientId, inSecond.tokens.refresh_token)).status, 400);
    assert.deepEqual(
      smallFilesBelow(folder).filter((name) => name.includes(`/${tenant.id}/connections`)),
      [],
    );

    assert.equal(await statusAtMcp(inOwn.tokens.access_token), 200);
    await api.as(null).call('POST', '/v1/password/forgot', { email: account.email });
    const password = 'another horse battery';
    const [letter] = await lettersOnceThere(folder, ({ kind }) => kind === 'reset');
    await api.as(null).call('POST', '/v1/password/reset', { token: letter?.token, password });
    assert.equal(await statusAtMcp(inOwn.tokens.access_token), 401);
    assert.equal((await refreshTokens(url, inOwn.clientId, inOwn.tokens.refresh_token)).status, 400);
  });
});

describe('the authorization server with the built-in plans', () => {
  it('lets an address register ten clients an hour', async () => {
    const server = await startServer({ folder: temporaryFolder(), plans: 'built-in' });
    const ask = () =>
      send(`${server.url}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' },
        body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/'] }),
      });
    for (let count = 0; count < 10; count++) assert.equal((await ask()).status, 201);

    const refused = await ask();

    assert.deepEqual([refused.status, JSON.parse(refused.text).error], [429, 'temporarily_unavailable']);
    assert.ok(Number(refused.headers['retry-after']) > 3_000);
    await server.stop();
  });
});
