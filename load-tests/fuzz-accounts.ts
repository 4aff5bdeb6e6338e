import {
  allow,
  askTokens,
  authorizeQuery,
  callback,
  codeOf,
  connect,
  hiddenValue,
  newProof,
  openPage,
  register,
  signIn,
} from '../test/support/oauth-flow.ts';
import type { OauthKnown } from './fuzz-oauth.ts';
import type { Credential } from './fuzz-requests.ts';

/** The account that requests are made as: its keys, its login, and its connections. */
export interface FuzzAccount {
  readonly email: string;
  readonly password: string;
}

type Headers = Readonly<Record<string, string>>;

export async function makeCredentials(
  url: string,
  account: FuzzAccount,
): Promise<Readonly<Record<Credential, Headers>>> {
  const ask = async (path: string, body: object, headers: Headers = {}) => {
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (answer.status >= 300) throw new Error(`${path} answered ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, string>;
  };
  const { key: admin = '' } = await ask('/v1/signup', { ...account, name: 'Fuzz' });
  const { token = '' } = await ask('/v1/login', account);
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const read = await ask('/v1/keys', { name: 'read', scope: 'read' }, bearer(admin));
  const limited = await ask('/v1/keys', { name: 'limited', namespaces: ['fuzz-1*'] }, bearer(admin));
  const connected = async (choice: Headers) =>
    bearer((await connect(url, account, choice)).tokens.access_token);
  return {
    admin: { 'x-api-key': admin },
    login: bearer(token),
    read: bearer(read.key ?? ''),
    limited: bearer(limited.key ?? ''),
    none: {},
    garbage: bearer(`tb_${'x'.repeat(36)}`),
    oauth: await connected({ access: 'write' }),
    'oauth read': await connected({}),
    'oauth limited': await connected({ access: 'write', reach: 'some', namespaces: 'fuzz-1*' }),
  };
}

/** Codes and tokens, of connections that no credential above is of. */
const madeOfEach = 5;

export async function makeOauth(url: string, account: FuzzAccount): Promise<OauthKnown> {
  const registeredUri = 'http://127.0.0.1/callback';
  const { client_id: clientId } = await register(url, { redirect_uris: [registeredUri] });
  const secret = await register(url, { token_endpoint_auth_method: 'client_secret_basic' });
  const proof = newProof();
  const page = await openPage(url, authorizeQuery(clientId, proof));
  const consent = await signIn(page, account);
  const codes: string[] = [];
  const refreshTokens: string[] = [];
  const accessTokens: string[] = [];
  for (let made = 0; made < madeOfEach; made++) {
    const code = await codeOf(url, { account, clientId, proof });
    const fields = { grant_type: 'authorization_code', client_id: clientId, code_verifier: proof.verifier };
    const answer = JSON.parse((await askTokens(url, { ...fields, code, redirect_uri: callback })).text);
    refreshTokens.push(answer.refresh_token);
    accessTokens.push(answer.access_token);
  }
  for (let made = 0; made < madeOfEach; made++) {
    const { sentTo } = await allow(page, consent);
    codes.push(sentTo?.searchParams.get('code') ?? '');
  }
  return {
    baseUrl: url,
    clientId,
    secretClient: { id: secret.client_id, secret: secret.client_secret ?? '' },
    redirectUri: callback,
    registeredUri,
    challenge: proof.challenge,
    verifier: proof.verifier,
    account,
    tenantId: hiddenValue(consent, 'tenant'),
    page: {
      cookie: page.cookie,
      csrf: hiddenValue(page.answer, 'csrf'),
      ticket: hiddenValue(consent, 'ticket'),
    },
    codes,
    refreshTokens,
    accessTokens,
  };
}
