/** Two client libraries of others, each from registration to revocation, with a person in a real browser. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import type { Browser, Page } from 'playwright-core';
import { ApiClient } from '../support/api-client.ts';
import { browserMissing, desktop, inspectPage, startBrowser } from '../support/browser.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const account = { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery' };

describe('connecting in a browser', { skip: browserMissing, concurrency: 1 }, () => {
  let server: ServerProcess;
  let browser: Browser;
  let url = '';
  /** The client's own place for the answer. */
  const place = createServer((_, answer) => answer.end('connected'));
  let callback = '';

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '5' } });
    url = server.url;
    await new Promise<void>((resolve) => place.listen(0, '127.0.0.1', resolve));
    callback = `http://127.0.0.1:${(place.address() as AddressInfo).port}/callback`;
    browser = await startBrowser();
  });

  after(async () => {
    place.closeAllConnections();
    place.close();
    await browser.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const toolsOf = async (token: string): Promise<number> =>
    (await new McpCaller(url, token).send({ body: list })).body?.result?.tools.length ?? 0;

  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const fill = (page: Page, label: string, value: string) =>
    page.getByLabel(label, { exact: true }).fill(value);

  /** Where the browser is when the client has its answer. */
  async function answered(page: Page): Promise<URL> {
    await page.getByText('connected').waitFor();
    return new URL(page.url());
  }

  it('oauth4webapi registers, is allowed to read by somebody who signs up without JavaScript, refreshes and revokes', async () => {
    const insecure = { [oauth.allowInsecureRequests]: true };
    const issuer = new URL(url);
    const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    const as = await oauth.processDiscoveryResponse(issuer, found);
    const metadata = {
      client_name: 'Notebook <b>agent</b>',
      redirect_uris: ['http://127.0.0.1/callback'],
      token_endpoint_auth_method: 'none',
    };
    const registered = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(as, metadata, insecure),
    );
    const client: oauth.Client = { client_id: registered.client_id };
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const address = new URL(as.authorization_endpoint ?? '');
    for (const [name, value] of Object.entries({
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: callback,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      scope: 'read write',
      resource: `${url}/mcp`,
      state,
    }))
      address.searchParams.set(name, value);

    const context = await browser.newContext({ viewport: desktop, javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(address.href);
    await page.getByRole('link', { name: 'Create one' }).click();
    await fill(page, 'Name', account.name);
    await fill(page, 'E-mail', account.email);
    await fill(page, 'Password', account.password);
    await press(page, 'Sign up');
    await page.getByRole('heading', { name: 'Allow access?' }).waitFor();
    await press(page, 'Allow');
    const parameters = oauth.validateAuthResponse(as, client, await answered(page), state);
    await context.close();

    const tokens = await oauth.processAuthorizationCodeResponse(
      as,
      client,
      await oauth.authorizationCodeGrantRequest(
        as,
        client,
        oauth.None(),
        parameters,
        callback,
        verifier,
        insecure,
      ),
    );
    assert.equal(tokens.scope, 'read');
    assert.equal(await toolsOf(tokens.access_token), 6);
    const next = await oauth.processRefreshTokenResponse(
      as,
      client,
      await oauth.refreshTokenGrantRequest(as, client, oauth.None(), tokens.refresh_token ?? '', insecure),
    );
    assert.equal(await toolsOf(next.access_token), 6);
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(as, client, oauth.None(), next.refresh_token ?? '', insecure),
    );
    assert.equal(await toolsOf(next.access_token), 0);
  });

  it('openid-client registers with a secret, is allowed to write by somebody who logs in, refreshes and revokes', async () => {
    const config = await openid.dynamicClientRegistration(
      new URL(url),
      { client_name: 'Editor', redirect_uris: [callback] },
      undefined,
      { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] },
    );
    const verifier = openid.randomPKCECodeVerifier();
    const state = openid.randomState();
    const address = openid.buildAuthorizationUrl(config, {
      redirect_uri: callback,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
    });

    const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    await page.goto(address.href);
    await inspectPage(page, 'connect-log-in');
    await fill(page, 'E-mail', account.email);
    await fill(page, 'Password', 'not the password');
    await press(page, 'Log in');
    await page.getByRole('alert').getByText('is wrong').waitFor();
    await fill(page, 'Password', account.password);
    await press(page, 'Log in');
    await page.getByRole('heading', { name: 'Allow access?' }).waitFor();
    await inspectPage(page, 'connect-allow');
    await page.getByLabel('Read and write').check();
    await page.getByLabel('Only these:').check();
    await press(page, 'Allow');
    await page.getByText('name at least one').waitFor();
    await inspectPage(page, 'connect-allow-problem');
    await fill(page, 'Namespaces', 'notes, log-*');
    await press(page, 'Allow');
    const back = await answered(page);
    await page.close();

    const tokens = await openid.authorizationCodeGrant(config, back, {
      pkceCodeVerifier: verifier,
      expectedState: state,
    });
    assert.equal(tokens.scope, 'read write');
    assert.equal(await toolsOf(tokens.access_token), 11);
    const next = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '');
    assert.equal(await toolsOf(next.access_token), 11);

    await consoleShows('Editor');

    await openid.tokenRevocation(config, next.refresh_token ?? '');
    assert.equal(await toolsOf(next.access_token), 0);
  });

  /** The connection is listed in the console, beside how to set up others. */
  async function consoleShows(client: string): Promise<void> {
    const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    await page.goto(`${url}/console`);
    await fill(page, 'E-mail', account.email);
    await fill(page, 'Password', account.password);
    await press(page, 'Log in');
    await page
      .getByRole('navigation', { name: 'Console' })
      .getByRole('link', { name: 'Connections' })
      .click();
    await page.getByRole('row').filter({ hasText: client }).getByText('notes, log-*').waitFor();
    await page.getByText(`claude mcp add --transport http tidebase ${url}/mcp`).waitFor();
    await inspectPage(page, 'connections');
    await press(page, 'Use a new read key instead');
    await page.getByText('--header "Authorization: Bearer tb_').waitFor();
    const api = new ApiClient(url);
    const login = api.as(await api.login(account.email, account.password));
    const keys = await login.call<{ scope: string }[]>('GET', '/v1/keys');
    assert.deepEqual(
      keys.map(({ scope }) => scope),
      ['read'],
    );
    api.close();
    await page.close();
  }

  it('the console ends a connection, and it is refused from then on', async () => {
    const config = await openid.dynamicClientRegistration(
      new URL(url),
      { client_name: 'Soon gone', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
      openid.None(),
      { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] },
    );
    const verifier = openid.randomPKCECodeVerifier();
    const challenge = await openid.calculatePKCECodeChallenge(verifier);
    const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    await page.goto(
      openid.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      }).href,
    );
    await fill(page, 'E-mail', account.email);
    await fill(page, 'Password', account.password);
    await press(page, 'Log in');
    await press(page, 'Allow');
    const tokens = await openid.authorizationCodeGrant(config, await answered(page), {
      pkceCodeVerifier: verifier,
    });
    assert.equal(await toolsOf(tokens.access_token), 6);

    await page.goto(`${url}/console#/connections`);
    await fill(page, 'E-mail', account.email);
    await fill(page, 'Password', account.password);
    await press(page, 'Log in');
    await press(page, 'End the connection of Soon gone');
    await press(page, 'End it');
    await page.getByText('The connection of Soon gone was ended').waitFor({ state: 'attached' });

    assert.equal(await toolsOf(tokens.access_token), 0);
    await page.close();
  });
});
