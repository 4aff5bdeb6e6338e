import { type Answer, headersOf, type SentRequest } from './fuzz-requests.ts';
import {
  chance,
  type Draw,
  damaged,
  damagedText,
  jsonText,
  naughtyStrings,
  oddString,
  pick,
} from './fuzz-values.ts';

/**
 * Requests for the authorization server, right, nearly right and wrong: its page and its forms, the token endpoint, revocation,
 * registration and metadata. And what is wrong with an answer.
 */
export interface OauthFuzzRequest extends SentRequest {
  readonly kind: 'oauth';
  readonly endpoint: Endpoint;
}

/** What requests are made of, from a server that has them. */
export interface OauthKnown {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly secretClient: { readonly id: string; readonly secret: string };
  readonly redirectUri: string;
  /** The client's only address as it is known by, which a request that names none leads to. */
  readonly registeredUri: string;
  readonly challenge: string;
  readonly verifier: string;
  readonly account: { readonly email: string; readonly password: string };
  readonly tenantId: string;
  /** The hidden fields and the cookie of a page on which somebody has signed in. */
  readonly page: { readonly cookie: string; readonly csrf: string; readonly ticket: string };
  readonly codes: readonly string[];
  readonly refreshTokens: readonly string[];
  readonly accessTokens: readonly string[];
}

const endpoints = ['authorize', 'form', 'token', 'revoke', 'register', 'metadata'] as const;
type Endpoint = (typeof endpoints)[number];
type Fields = Readonly<Record<string, string>>;

const metadataPaths = [
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-protected-resource/',
  '/.well-known/%2e%2e/v1/me',
];
const paths: Readonly<Record<Exclude<Endpoint, 'metadata'>, string>> = {
  authorize: '/oauth/authorize',
  form: '/oauth/authorize',
  token: '/oauth/token',
  revoke: '/oauth/revoke',
  register: '/oauth/register',
};

export function oauthRequest(known: OauthKnown, draw: Draw, number: number): OauthFuzzRequest {
  const endpoint = pick(draw, endpoints);
  const { path, type, body, headers = {} } = partsOf(known, draw, endpoint);
  const isPost = body !== null;
  return {
    kind: 'oauth',
    endpoint,
    number,
    method: chance(draw, 0.97) ? (isPost ? 'POST' : 'GET') : pick(draw, ['PUT', 'OPTIONS', 'HEAD', 'DELETE']),
    path,
    headers: { ...headersOf(draw, type), ...headers },
    body,
    isChunked: isPost && chance(draw, 0.1),
    credential: 'none',
  };
}

interface Parts {
  readonly path: string;
  readonly type: string | null;
  readonly body: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const form = 'application/x-www-form-urlencoded';

function partsOf(known: OauthKnown, draw: Draw, endpoint: Endpoint): Parts {
  switch (endpoint) {
    case 'metadata':
      return { path: pick(draw, metadataPaths), type: null, body: null };
    case 'authorize': {
      const query = urlText(draw, damagedFields(draw, authorizeFields(known, draw)));
      return { path: `${paths.authorize}?${query}`, type: null, body: null };
    }
    case 'form':
      return {
        path: paths.form,
        type: form,
        body: formBody(draw, pageFields(known, draw)),
        headers: browser(known, draw),
      };
    case 'token':
      return { path: paths.token, type: form, ...tokenParts(known, draw) };
    case 'revoke': {
      const token = pick(draw, [...known.accessTokens, ...known.refreshTokens, 'tbo_x', 'x']);
      // What is right is given back rarely: other requests need it.
      const shown = chance(draw, 0.05) ? token : spoiled(draw, token);
      return {
        path: paths.revoke,
        type: form,
        body: formBody(draw, { token: shown, client_id: known.clientId }),
      };
    }
    case 'register':
      return { path: paths.register, type: 'application/json', body: registration(draw) };
  }
}

function authorizeFields({ clientId, redirectUri, challenge, baseUrl }: OauthKnown, draw: Draw): Fields {
  return {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...(chance(draw, 0.5) ? { state: pick(draw, ['s', 'a b&c', 'x'.repeat(3_000), '\u2028']) } : {}),
    ...(chance(draw, 0.5) ? { scope: pick(draw, ['read', 'read write', ' offline_access', 'x']) } : {}),
    ...(chance(draw, 0.3)
      ? { resource: pick(draw, [`${baseUrl}/mcp`, `${baseUrl}/mcp#`, 'x', baseUrl]) }
      : {}),
    ...(chance(draw, 0.1) ? { tidebase_screen: 'sign-up' } : {}),
  };
}

function browser({ page, baseUrl }: OauthKnown, draw: Draw): Record<string, string> {
  const cookie = chance(draw, 0.9) ? page.cookie : pick(draw, ['', 'tidebase_authorize=x', 'a=b; c']);
  const origin = chance(draw, 0.9) ? baseUrl : pick(draw, ['null', 'https://evil.example', 'x']);
  return { cookie, origin };
}

function pageFields(known: OauthKnown, draw: Draw): Fields {
  const { page, account, tenantId } = known;
  const request = urlText(
    draw,
    chance(draw, 0.8) ? authorizeFields(known, draw) : damagedFields(draw, authorizeFields(known, draw)),
  );
  const common = { request, csrf: page.csrf };
  const way = draw();
  // Passwords are hashed one by one.
  if (way < 0.03) return { ...common, action: 'sign-in', ...account };
  if (way < 0.05) return { ...common, action: 'sign-in', ...account, password: String(oddString(draw)) };
  if (way < 0.07)
    return { ...common, action: 'sign-up', name: String(oddString(draw)), email: 'x', password: 'y' };
  if (way < 0.2) return { ...common, action: 'deny' };
  return {
    ...common,
    action: 'allow',
    ticket: page.ticket,
    tenant: tenantId,
    access: pick(draw, ['read', 'write', 'admin']),
    reach: pick(draw, ['all', 'some', 'some']),
    namespaces: chance(draw, 0.5)
      ? pick(draw, ['fuzz-1, fuzz-2', 'fuzz-*', 'A', ',', 'a '.repeat(300)])
      : text(draw),
  };
}

function tokenParts(
  known: OauthKnown,
  draw: Draw,
): { readonly body: Buffer; readonly headers?: Record<string, string> } {
  const { clientId, secretClient, redirectUri, verifier, codes, refreshTokens } = known;
  const isCode = chance(draw, 0.5);
  // A right code that comes twice ends its connection, which is one of its own.
  const code = chance(draw, 0.3) ? pick(draw, codes) : spoiled(draw, pick(draw, codes));
  const grant: Fields = isCode
    ? { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }
    : {
        grant_type: 'refresh_token',
        refresh_token: chance(draw, 0.5) ? pick(draw, refreshTokens) : text(draw),
      };
  const scope: Fields = chance(draw, 0.2) ? { scope: pick(draw, ['read', 'write', 'x', ' ']) } : {};
  if (chance(draw, 0.2)) {
    const basic = chance(draw, 0.5) ? `${secretClient.id}:${secretClient.secret}` : text(draw);
    const authorization = chance(draw, 0.9) ? `Basic ${Buffer.from(basic).toString('base64')}` : 'Bearer x';
    return { body: formBody(draw, { ...grant, ...scope }), headers: { authorization } };
  }
  return { body: formBody(draw, { ...grant, ...scope, client_id: clientId }) };
}

function registration(draw: Draw): Buffer {
  const metadata = {
    client_name: chance(draw, 0.5) ? 'Fuzz' : oddString(draw),
    redirect_uris: Array.from({ length: 1 + Math.floor(draw() * 3) }, () => pick<unknown>(draw, redirects)),
    token_endpoint_auth_method: pick(draw, [
      'none',
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ]),
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    scope: 'read write',
    logo_uri: 'https://client.example/logo',
  };
  const way = draw();
  const value = way > 0.4 ? damaged(draw, metadata) : metadata;
  return way > 0.9 ? damagedText(draw, jsonText(value)) : Buffer.from(jsonText(value));
}

const redirects: readonly unknown[] = [
  'http://127.0.0.1/callback',
  'https://client.example/callback',
  'cursor://anysphere.cursor-mcp/oauth/callback',
  'http://client.example/callback',
  'javascript:alert(1)',
  'https://client.example/#x',
  'https://a:b@client.example/',
  '//client.example',
  '',
  5,
];

/** Text that a form can carry. */
const text = (draw: Draw): string => {
  const odd = chance(draw, 0.5) ? pick(draw, naughtyStrings) : oddString(draw);
  return typeof odd === 'string' ? odd : '\0';
};

function spoiled(draw: Draw, token: string): string {
  const at = Math.floor(draw() * token.length);
  return chance(draw, 0.3)
    ? text(draw)
    : `${token.slice(0, at)}${pick(draw, ['0', 'f', 'x', ''])}${token.slice(at + 1)}`;
}

/** One of them is missing, another, or odd. */
function damagedFields(draw: Draw, fields: Fields): Fields {
  if (chance(draw, 0.4)) return fields;
  const names = Object.keys(fields);
  const name = pick(draw, names);
  if (chance(draw, 0.3)) return Object.fromEntries(Object.entries(fields).filter(([each]) => each !== name));
  if (chance(draw, 0.2)) return { ...fields, [text(draw)]: text(draw) };
  return { ...fields, [name]: pick(draw, [text(draw), '', fields[pick(draw, names)] ?? '', ...oddIds]) };
}

/** Ids whose documents nobody has; none of them leads out of this machine. */
const oddIds = [
  'https://localhost/x',
  'https://127.0.0.1/x',
  'https://x',
  'https://nobody.invalid/x',
  `client-${'0'.repeat(32)}`,
];

function urlText(draw: Draw, fields: Fields): string {
  const whole = new URLSearchParams(fields).toString();
  if (!chance(draw, 0.08)) return whole.slice(0, 12_000);
  return pick(draw, [
    `${whole}&client_id=x`,
    `${whole}&%ff=%ff`,
    '',
    '&&=',
    whole.slice(0, whole.length >> 1),
    '%',
  ]);
}

function formBody(draw: Draw, fields: Fields): Buffer {
  const whole = urlText(draw, damagedFields(draw, fields));
  return chance(draw, 0.03) ? damagedText(draw, whole) : Buffer.from(whole);
}

const statuses: ReadonlySet<number> = new Set([
  200, 201, 204, 303, 400, 401, 403, 404, 405, 409, 413, 422, 429, 503,
]);
const codes: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_target',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_response_type',
  'invalid_client_metadata',
  'invalid_redirect_uri',
  'temporarily_unavailable',
]);

/** What is wrong with an answer of the authorization server, or null. */
export function problemOfOauth(
  { endpoint, path, method }: OauthFuzzRequest,
  { status, type, body, location }: Answer,
  { redirectUri, registeredUri, baseUrl }: OauthKnown,
): string | null {
  if (!statuses.has(status)) return `answered ${status}`;
  if (status === 303) {
    const isKnown = [redirectUri, registeredUri].some((uri) => location?.startsWith(`${uri}?`));
    const isRight = isKnown && location?.includes(`iss=${encodeURIComponent(baseUrl)}`);
    return isRight ? null : `sends a person to ${location}`;
  }
  if (method === 'HEAD' || status === 204) return null;
  if (path.startsWith('/oauth/authorize')) {
    if (!type.startsWith('text/html')) return `a page of type "${type}"`;
    return /<(?:script|img|iframe|object|embed|base)/i.test(body) ? 'a page with markup of others' : null;
  }
  if (status < 300) return null;
  if (!type.startsWith('application/json')) return `an error of type "${type}"`;
  const { error, error_description: sentence } = JSON.parse(body) as Record<string, unknown>;
  // What is no route of it is answered as the interface answers.
  if (endpoint === 'metadata') return typeof error === 'string' ? null : 'an error without a sentence';
  if (!codes.has(error)) return `an error of the code ${String(error)}`;
  return typeof sentence === 'string' && /^[\x20-\x7e]{5,2000}$/.test(sentence)
    ? null
    : 'an error without a sentence';
}
