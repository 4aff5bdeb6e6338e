/** An MCP client and its person's browser without a browser: forms are filled by name, and nothing is followed. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Where a redirect leads, with what it carries; null where it is none. */
  readonly sentTo: URL | null;
}

export interface SentRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function send(
  url: string,
  { method = 'GET', headers = {}, body = '' }: SentRequest = {},
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(url, { method, headers }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () => {
        const location = answer.headers.location;
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: Buffer.concat(parts).toString(),
          sentTo: location === undefined ? null : new URL(location),
        });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

export const formType = { 'content-type': 'application/x-www-form-urlencoded' };

export function sendForm(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  return send(url, {
    method: 'POST',
    headers: { ...formType, ...headers },
    body: new URLSearchParams(fields).toString(),
  });
}

export interface Proof {
  readonly verifier: string;
  readonly challenge: string;
}

export function newProof(): Proof {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

export const callback = 'http://127.0.0.1:5555/callback';

export async function register(
  url: string,
  metadata: object = {},
): Promise<{ client_id: string; client_secret?: string }> {
  const body = JSON.stringify({
    client_name: 'Test client',
    redirect_uris: ['http://127.0.0.1/callback'],
    token_endpoint_auth_method: 'none',
    ...metadata,
  });
  const headers = { 'content-type': 'application/json' };
  const answer = await send(`${url}/oauth/register`, { method: 'POST', headers, body });
  assert.equal(answer.status, 201, answer.text);
  return JSON.parse(answer.text);
}

export function authorizeQuery(
  clientId: string,
  proof: Proof,
  changes: Readonly<Record<string, string | undefined>> = {},
): string {
  const parameters: Record<string, string | undefined> = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: callback,
    code_challenge: proof.challenge,
    code_challenge_method: 'S256',
    state: 'st at&e',
    ...changes,
  };
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return new URLSearchParams(given).toString();
}

/** What a page has as the value of a hidden field. */
export function hiddenValue({ text }: Pick<Answered, 'text'>, name: string): string {
  const [, value = ''] = new RegExp(`name="${name}" value="([^"]*)"`).exec(text) ?? [];
  return value.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");
}

/** The page in one browser, from its first look on. */
export interface OpenedPage {
  readonly answer: Answered;
  readonly cookie: string;
  submit(
    fields: Readonly<Record<string, string>>,
    changes?: Readonly<Record<string, string>>,
  ): Promise<Answered>;
}

export async function openPage(url: string, query: string): Promise<OpenedPage> {
  const answer = await send(`${url}/oauth/authorize?${query}`);
  const [set = ''] = [answer.headers['set-cookie'] ?? ''].flat();
  const cookie = set.split(';')[0] ?? '';
  const common = { request: hiddenValue(answer, 'request'), csrf: hiddenValue(answer, 'csrf') };
  return {
    answer,
    cookie,
    submit: (fields, changes = {}) =>
      sendForm(
        `${url}/oauth/authorize`,
        { ...common, ...fields },
        { cookie, origin: new URL(url).origin, ...changes },
      ),
  };
}

export interface Account {
  readonly email: string;
  readonly password: string;
}

/** Signs in on the page; the answer has the consent form. */
export function signIn(page: OpenedPage, { email, password }: Account): Promise<Answered> {
  return page.submit({ action: 'sign-in', email, password });
}

/** Allows what the choice says, and answers the redirect. */
export function allow(
  page: OpenedPage,
  consent: Answered,
  choice: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const fields = { ticket: hiddenValue(consent, 'ticket'), tenant: hiddenValue(consent, 'tenant') };
  return page.submit({ action: 'allow', ...fields, access: 'read', reach: 'all', ...choice });
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
}

/** From a person's consent to a code. */
export async function codeOf(
  url: string,
  parts: {
    readonly account: Account;
    readonly clientId: string;
    readonly proof: Proof;
    readonly choice?: Readonly<Record<string, string>>;
    readonly query?: Readonly<Record<string, string | undefined>>;
  },
): Promise<string> {
  const page = await openPage(url, authorizeQuery(parts.clientId, parts.proof, parts.query));
  const consent = await signIn(page, parts.account);
  const { sentTo, text } = await allow(page, consent, parts.choice);
  const code = sentTo?.searchParams.get('code');
  assert.ok(typeof code === 'string', text);
  return code;
}

export function askTokens(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
) {
  return sendForm(`${url}/oauth/token`, fields, headers);
}

export function refreshTokens(url: string, clientId: string, refreshToken: string): Promise<Answered> {
  return askTokens(url, { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken });
}

/** A whole connection of a new client. */
export async function connect(
  url: string,
  account: Account,
  choice: Readonly<Record<string, string>> = {},
): Promise<{
  readonly clientId: string;
  readonly code: string;
  readonly proof: Proof;
  readonly tokens: Tokens;
}> {
  const { client_id: clientId } = await register(url);
  const proof = newProof();
  const code = await codeOf(url, { account, clientId, proof, choice });
  const answer = await askTokens(url, {
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    code_verifier: proof.verifier,
    redirect_uri: callback,
  });
  assert.equal(answer.status, 200, answer.text);
  return { clientId, code, proof, tokens: JSON.parse(answer.text) };
}
