/** The page on which a person lets a client connect, as browsers send its forms, and as others do. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { IssuedSecrets } from '../support/issued-secrets.ts';
import {
  allow,
  authorizeQuery,
  callback,
  hiddenValue,
  newProof,
  openPage,
  register,
  send,
  signIn,
} from '../support/oauth-flow.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const account = { email: 'ada@example.com', password: 'correct horse battery' };

describe('the page where a client is allowed', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let url = '';
  let api: ApiClient;
  const secrets = new IssuedSecrets();

  before(async () => {
    server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '5', TIDEBASE_LOG_LEVEL: 'debug' } });
    url = server.url;
    const anyone = new ApiClient(url);
    const made = await anyone.signup(account.email, 'Ada', account.password);
    api = anyone.as(made.key);
    secrets.push(made.key, account.password);
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    secrets.assertNowhere(server, folder);
  });

  it('shows what asks and where it leads, whatever it calls itself', async () => {
    const { client_id } = await register(url, { client_name: '<img src=x onerror=alert(1)>"\'&' });
    const { answer } = await openPage(url, authorizeQuery(client_id, newProof()));

    assert.equal(answer.status, 200);
    assert.ok(answer.text.includes('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;'));
    assert.ok(!answer.text.includes('<img'));
    assert.match(answer.text, /127\.0\.0\.1:5555/);
    const policy = String(answer.headers['content-security-policy']);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /script-src|unsafe/);
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.match(String(answer.headers['set-cookie']), /HttpOnly; SameSite=Lax/);
  });

  it('sends nobody to an address that is not the client’s', async () => {
    const { client_id } = await register(url);
    for (const changes of [
      { redirect_uri: 'https://thief.example/callback' },
      { redirect_uri: 'http://127.0.0.1:1/other' },
      { redirect_uri: 'javascript:alert(1)' },
      { client_id: `client-${'0'.repeat(32)}` },
      { client_id: 'https://localhost:1/document' },
      { client_id: 'https://127.0.0.1/document' },
      { client_id: '../../account/person/1' },
      { client_id: undefined },
    ]) {
      const answer = await send(`${url}/oauth/authorize?${authorizeQuery(client_id, newProof(), changes)}`);
      assert.equal(answer.status, 400, JSON.stringify(changes));
      assert.equal(answer.sentTo, null);
      assert.match(answer.text, /This cannot be connected/);
    }
    const twice = `${authorizeQuery(client_id, newProof())}&client_id=x`;
    assert.equal((await send(`${url}/oauth/authorize?${twice}`)).status, 400);
  });

  it('tells the client what is wrong with its request, with its state and who says so', async () => {
    const { client_id } = await register(url);
    const rows: readonly [Record<string, string | undefined>, string][] = [
      [{ code_challenge: undefined }, 'invalid_request'],
      [{ code_challenge: 'short' }, 'invalid_request'],
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ code_challenge_method: undefined }, 'invalid_request'],
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ response_type: undefined }, 'unsupported_response_type'],
      [{ response_mode: 'fragment' }, 'invalid_request'],
      [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
      [{ resource: `${url}/mcp#x` }, 'invalid_target'],
      [{ resource: `${url}/v1` }, 'invalid_target'],
    ];
    for (const [changes, error] of rows) {
      const { status, sentTo } = await send(
        `${url}/oauth/authorize?${authorizeQuery(client_id, newProof(), changes)}`,
      );
      assert.equal(status, 303, JSON.stringify(changes));
      assert.equal(`${sentTo?.origin}${sentTo?.pathname}`, callback);
      assert.equal(sentTo?.searchParams.get('error'), error, JSON.stringify(changes));
      assert.equal(sentTo?.searchParams.get('state'), 'st at&e');
      assert.equal(sentTo?.searchParams.get('iss'), url);
    }
    for (const resource of [`${url}/mcp`, `${url.replace('http', 'HTTP')}/mcp`])
      assert.equal(
        (await openPage(url, authorizeQuery(client_id, newProof(), { resource }))).answer.status,
        200,
      );
  });

  it('sends nobody on who has only followed a link, but to their own computer', async () => {
    const site = 'https://client.example/callback';
    const { client_id } = await register(url, { redirect_uris: [site, 'cursor://client/callback'] });
    for (const redirect_uri of [site, 'cursor://client/callback']) {
      const wrong = authorizeQuery(client_id, newProof(), { redirect_uri, code_challenge_method: 'plain' });
      const answer = await send(`${url}/oauth/authorize?${wrong}`);

      assert.deepEqual([answer.status, answer.sentTo], [400, null]);
      assert.match(answer.text, />code_challenge_method must be S256\./);
      // Whoever knows the place may go there, and the client is told.
      const [, href = ''] = /<a href="([^"]+)" rel="noreferrer">go back to/.exec(answer.text) ?? [];
      const back = new URL(href.replaceAll('&amp;', '&'));
      assert.ok(back.href.startsWith(`${redirect_uri}?`), href);
      assert.equal(back.searchParams.get('error'), 'invalid_request');
      assert.equal(back.searchParams.get('iss'), url);
    }
    const page = await openPage(url, authorizeQuery(client_id, newProof(), { redirect_uri: site }));
    const denied = await page.submit({ action: 'deny' });
    assert.equal(denied.sentTo?.origin, 'https://client.example', 'who said no is sent back');
  });

  it('takes no form of another page, another browser or another person', async () => {
    const { client_id } = await register(url);
    const page = await openPage(url, authorizeQuery(client_id, newProof()));
    const other = await openPage(url, authorizeQuery(client_id, newProof()));
    const consent = await signIn(page, account);
    assert.equal(consent.status, 200);
    const allowing = {
      action: 'allow',
      tenant: hiddenValue(consent, 'tenant'),
      access: 'read',
      reach: 'all',
    };
    const ticket = hiddenValue(consent, 'ticket');

    assert.equal((await page.submit({ ...allowing, ticket, csrf: 'x' })).status, 403);
    assert.equal((await page.submit({ ...allowing, ticket }, { cookie: '' })).status, 403);
    assert.equal((await page.submit({ ...allowing, ticket }, { cookie: other.cookie })).status, 403);
    assert.equal(
      (await page.submit({ ...allowing, ticket }, { origin: 'https://evil.example' })).status,
      403,
    );
    assert.equal((await page.submit({ ...allowing, ticket }, { origin: 'null' })).status, 403);
    assert.equal((await other.submit({ ...allowing, ticket })).status, 401, 'a ticket of another browser');
    assert.equal((await page.submit({ ...allowing, ticket: `${ticket}x` })).status, 401);
    assert.equal(
      (await page.submit({ action: 'sign-in', email: account.email, password: 'wrong' })).status,
      401,
    );
    assert.equal((await page.submit({ action: 'sign-up', email: 'x', password: 'y', name: '' })).status, 422);

    secrets.push(ticket, hiddenValue(page.answer, 'csrf'), page.cookie.slice('tidebase_authorize='.length));

    const denied = await page.submit({ action: 'deny' });
    assert.equal(denied.sentTo?.searchParams.get('error'), 'access_denied');
    assert.equal(denied.sentTo?.searchParams.get('iss'), url);
    assert.equal((await allow(page, consent)).status, 303, 'and the right one is taken');
  });

  it('gives no more than was asked for or chosen', async () => {
    const { client_id } = await register(url);
    const page = await openPage(url, authorizeQuery(client_id, newProof(), { scope: 'read offline_access' }));
    const consent = await signIn(page, account);
    assert.doesNotMatch(consent.text, /value="write"/);

    for (const choice of [
      { access: 'write' },
      { access: '' },
      { reach: '' },
      { reach: 'some' },
      { reach: 'all', namespaces: 'notes' },
      { reach: 'some', namespaces: 'No Such!' },
      { tenant: '1' },
    ])
      assert.equal((await allow(page, consent, choice)).status, 422, JSON.stringify(choice));
  });

  it('lets somebody sign up, with a tenant and no key that nobody saw', async () => {
    const { client_id } = await register(url);
    const proof = newProof();
    const page = await openPage(url, authorizeQuery(client_id, proof));
    const someone = { email: 'new@example.com', password: 'battery horse correct' };
    const consent = await page.submit({ action: 'sign-up', name: 'New', ...someone });
    assert.equal(consent.status, 200, consent.text);
    const { sentTo } = await allow(page, consent);

    assert.match(sentTo?.searchParams.get('code') ?? '', /^tbc_/);
    const login = api.as(await api.as(null).login(someone.email, someone.password));
    secrets.push(sentTo?.searchParams.get('code') ?? '', login.key ?? '', someone.password);
    assert.deepEqual(await login.call('GET', '/v1/keys'), []);
  });
});
