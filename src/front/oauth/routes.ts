/**
 * The routes of the authorization server. They are no operations: they speak OAuth's forms and errors, and take no credentials of
 * ours. Like all that anybody may ask they have small bodies, are counted by address before a body is read, and bounded in
 * number. What is asked for in vain (codes, tokens, clients) is counted as well.
 */
import { ApiError } from '../../../protocol/errors.ts';
import type { PersonId } from '../../../protocol/ids.ts';
import { limits } from '../../../protocol/limits.ts';
import { type OperationName, operations } from '../../../protocol/operations.ts';
import { must } from '../../base/assert.ts';
import { parseJson } from '../../base/json.ts';
import { JsonSyntaxError } from '../../base/json-scanner.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { type Attempts, networkOf } from '../../identity/attempts.ts';
import { verifyLoginToken } from '../../identity/login-token.ts';
import { registerClient } from '../../oauth/clients.ts';
import { OauthError, type OauthErrorCode } from '../../oauth/oauth-error.ts';
import { StoreError } from '../../object-store/object-store.ts';
import type { Admission } from '../admission.ts';
import type { AuditLog } from '../audit.ts';
import type { ClientAddresses } from '../client-address.ts';
import type { FrontOperation } from '../front-operation.ts';
import { ClientGone, type HttpExchange } from '../http-types.ts';
import type { RequestObserver } from '../observe.ts';
import type { Observed } from '../observed.ts';
import type { OpenRequests } from '../open-requests.ts';
import type { HeaderList } from '../rate-limit-headers.ts';
import { type Answer, respond } from '../response.ts';
import { originRefusal } from '../same-origin.ts';
import {
  type AuthorizeComponents,
  continueAuthorize,
  type PageVisit,
  problemAnswer,
  showAuthorize,
} from './authorize.ts';
import { formParameters } from './form-parameters.ts';
import { metadataPlaces, oauthPaths, resourceMetadata, serverMetadata } from './metadata.ts';
import { issueTokens, revokeToken, type TokenComponents } from './token-endpoint.ts';

export interface OauthComponents extends AuthorizeComponents, Omit<TokenComponents, 'ended'> {
  readonly connections: AuthorizeComponents['connections'] & TokenComponents['connections'];
  /** Those of sign-up and login. */
  readonly operations: ReadonlyMap<OperationName, FrontOperation>;
  readonly attempts: Pick<Attempts, 'lookUpsFrom' | 'openRequest' | 'registration'>;
  readonly openRequests: OpenRequests;
  readonly clientAddresses: ClientAddresses;
  readonly admission: Pick<Admission, 'accompany'>;
  readonly observer: Pick<RequestObserver, 'answered' | 'gone' | 'now'>;
  readonly audit: Pick<AuditLog, 'record' | 'answered'>;
  /** Ends the keys of a tenant. */
  readonly endKeys: (tenantId: number) => Promise<void>;
  readonly logger: Logger;
}

interface Route {
  readonly methods: readonly string[];
  /** Whether pages of other origins may read its answers: nothing of anybody's is in them but what they sent themselves. */
  readonly isOpenToPages: boolean;
  readonly isPage: boolean;
  readonly serve: (request: OauthRequest) => Promise<Answer>;
}

interface OauthRequest {
  readonly exchange: HttpExchange;
  readonly observed: Observed;
  readonly address: string;
}

const GET = ['GET', 'HEAD'];

/** Answers whether an exchange was one of these; hot, because every request passes here. */
export function oauthRoutes(components: OauthComponents): (exchange: HttpExchange) => boolean {
  const document = (value: object) => {
    const body = JSON.stringify(value);
    const serve = async () => ({ status: 200, headers: metadataHeaders, body });
    return { methods: GET, isOpenToPages: true, isPage: false, serve };
  };
  const { baseUrl } = components;
  const json = { methods: ['POST'], isOpenToPages: true, isPage: false } as const;
  const places = metadataPlaces(baseUrl);
  const routes = new Map<string, Route>([
    ...[...places.resource].map((place) => [place, document(resourceMetadata(baseUrl))] as const),
    ...[...places.server].map((place) => [place, document(serverMetadata(baseUrl))] as const),
    [oauthPaths.token, { ...json, serve: (request) => token(components, request) }],
    [oauthPaths.revoke, { ...json, serve: (request) => revoke(components, request) }],
    [oauthPaths.register, { ...json, serve: (request) => register(components, request) }],
    [
      oauthPaths.authorize,
      {
        methods: [...GET, 'POST'],
        isOpenToPages: false,
        isPage: true,
        serve: (request) => authorize(components, request),
      },
    ],
  ]);
  return (exchange) => {
    const second = exchange.path.charCodeAt(1);
    if (second !== letterO && second !== dot) return false;
    const route = routes.get(exchange.path);
    if (route === undefined) return false;
    serve(components, route, exchange);
    return true;
  };
}

const letterO = 0x6f;
const dot = 0x2e;

function serve(components: OauthComponents, route: Route, exchange: HttpExchange): void {
  const { observer, clientAddresses, admission } = components;
  const address = clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for'));
  const observed = nobodys(exchange, observer.now());
  const reply = (answer: Answer) => {
    observer.answered(observed, answer);
    respond(exchange, exchange.requestId, answer, route.isOpenToPages ? openHeaders : []);
  };
  admission
    .accompany(async () => reply(await answerOf(route, { exchange, observed, address })))
    .catch((error: unknown) => {
      if (error instanceof ClientGone) return observer.gone(observed);
      reply(refusalAnswer(components, route, exchange, error));
    });
}

async function answerOf(route: Route, request: OauthRequest): Promise<Answer> {
  const { method } = request.exchange;
  if (method === 'OPTIONS' && route.isOpenToPages)
    return { status: 204, headers: preflightHeaders, body: '' };
  if (route.methods.includes(method)) return route.serve(request);
  const allow = route.methods.join(', ');
  throw new ApiError('bad_request', `${method} is not allowed here; allowed: ${allow}`, {
    status: 405,
    headers: [['Allow', allow]],
  });
}

function nobodys(exchange: HttpExchange, beganMs: number): Observed {
  const parameters = { name: undefined, id: undefined, provider: undefined };
  const empty = { principal: null, receivedBytes: 0, bodyHold: null, email: null, personId: null };
  return { exchange, id: exchange.requestId, beganMs, operation: null, parameters, ...empty };
}

const metadataHeaders: HeaderList = [['cache-control', 'public, max-age=300']];
const secretHeaders: HeaderList = [
  ['cache-control', 'no-store'],
  ['pragma', 'no-cache'],
];
const openHeaders: HeaderList = [['access-control-allow-origin', '*']];
const preflightHeaders: HeaderList = [
  ['access-control-allow-methods', 'GET, POST, OPTIONS'],
  ['access-control-allow-headers', 'authorization, content-type, mcp-protocol-version'],
  ['access-control-max-age', '86400'],
];

async function token(components: OauthComponents, request: OauthRequest): Promise<Answer> {
  const authorization = request.exchange.header('authorization');
  return counted(components, request, async () => {
    const parameters = await formOf(request);
    request.exchange.mayTakeEffect();
    const answer = await issueTokens(auditing(components, request), { parameters, authorization });
    return { status: 200, headers: secretHeaders, body: JSON.stringify(answer) };
  });
}

async function revoke(components: OauthComponents, request: OauthRequest): Promise<Answer> {
  const authorization = request.exchange.header('authorization');
  return counted(components, request, async () => {
    const parameters = await formOf(request);
    request.exchange.mayTakeEffect();
    await revokeToken(auditing(components, request), { parameters, authorization });
    return { status: 200, headers: secretHeaders, body: '' };
  });
}

async function register(components: OauthComponents, request: OauthRequest): Promise<Answer> {
  return counted(components, request, async () => {
    await components.attempts.registration(request.address);
    const body = parseJson(await bodyOf(request, 'application/json'), {
      depthMax: limits.jsonDepthMax,
      valuesMax: limits.jsonValuesMax,
    });
    const { client, secret } = await registerClient(components.clients, body);
    const answer = {
      client_id: client.id,
      client_id_issued_at: Math.floor(client.createdAt / 1_000),
      client_name: client.name,
      redirect_uris: client.redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: client.method,
      ...(secret === null ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    };
    return { status: 201, headers: secretHeaders, body: JSON.stringify(answer) };
  });
}

async function authorize(components: OauthComponents, request: OauthRequest): Promise<Answer> {
  const { exchange } = request;
  return counted(components, request, async () => {
    const visit = visitOf(components, request);
    if (exchange.method !== 'POST') return showAuthorize(components, exchange.query, visit);
    const { baseUrl } = components;
    const foreign = originRefusal(exchange.header('origin'), { host: exchange.header('host'), baseUrl });
    if (foreign !== null) throw foreign;
    return continueAuthorize(components, await formOf(request), visit);
  });
}

/** Before a body is read: by address, and in number. What was asked for in vain is counted afterwards. */
async function counted(
  { attempts, openRequests }: OauthComponents,
  { address }: OauthRequest,
  work: () => Promise<Answer>,
): Promise<Answer> {
  attempts.openRequest(address);
  const guard = attempts.lookUpsFrom(address);
  guard.begin();
  const place = openRequests.enter(address);
  try {
    return await work();
  } catch (error) {
    if (error instanceof OauthError && inVain.has(error.code)) guard.failed();
    throw error;
  } finally {
    place.leave();
  }
}

const inVain: ReadonlySet<OauthErrorCode> = new Set(['invalid_grant', 'invalid_client']);

async function formOf(request: OauthRequest) {
  const body = await bodyOf(request, 'application/x-www-form-urlencoded');
  return formParameters(Buffer.from(body).toString());
}

async function bodyOf({ exchange, observed }: OauthRequest, type: string): Promise<Uint8Array> {
  const sent = (exchange.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase();
  if (sent !== type) throw new OauthError('invalid_request', `send the body as ${type}`);
  const encoding = exchange.header('content-encoding') ?? 'identity';
  if (encoding !== 'identity')
    throw new OauthError('invalid_request', 'send the body without Content-Encoding');
  const body = new Uint8Array(await exchange.readBody(limits.openBodyBytesMax));
  observed.receivedBytes = body.byteLength;
  return body;
}

function auditing(components: OauthComponents, { exchange, address }: OauthRequest): TokenComponents {
  const { audit, connections, resource } = components;
  return {
    connections,
    resource,
    ended({ tenantId, connectionId }) {
      const about = {
        tenantId,
        target: String(connectionId),
        requestId: exchange.requestId,
        clientAddress: address,
      };
      audit.record({ event: 'connection.ended', outcome: 'done', ...about });
    },
  };
}

function visitOf(components: OauthComponents, request: OauthRequest): PageVisit {
  const { exchange, address } = request;
  const { audit, loginTokens, endKeys } = components;
  return {
    cookie: exchange.header('cookie'),
    network: networkOf(address),
    async signIn(given) {
      const { token: text } = (await runAs(components, request, 'login', given)) as {
        readonly token: string;
      };
      return must(await verifyLoginToken(loginTokens, text), 'the token of a login').personId;
    },
    async signUp(given) {
      exchange.mayTakeEffect();
      const made = (await runAs(components, request, 'signup', given)) as {
        readonly id: PersonId;
        readonly tenant_id: number;
      };
      // The first key is shown nowhere here, so nobody will ever use it.
      await endKeys(made.tenant_id);
      return made.id;
    },
    allowed({ tenantId, personId, connectionId, scope }) {
      const who = { tenantId, personId, requestId: exchange.requestId, clientAddress: address };
      const target = String(connectionId);
      audit.record({ event: 'connection.allowed', outcome: 'done', ...who, target, scope });
    },
  };
}

/** Does what an operation of the interface does, with its limits and its event in the audit log. Throws its refusals. */
async function runAs(
  { operations: known, audit }: OauthComponents,
  { exchange, observed, address }: OauthRequest,
  name: 'login' | 'signup',
  body: { readonly email: string },
): Promise<unknown> {
  const run = must(known.get(name), 'the operation of this name');
  const { parameters } = observed;
  const about: Observed = { ...observed, operation: operations[name], email: body.email };
  const note = (status: number, answer: Uint8Array | string) =>
    audit.answered(about, { status, headers: [], body: answer });
  try {
    const value = await run({
      body,
      principal: null,
      clientAddress: address,
      tenant: undefined,
      isAbout: (personId) => {
        about.personId = personId;
      },
      parameters,
      plannedId: 0,
    });
    note(operations[name].success, JSON.stringify(value));
    return value;
  } catch (error) {
    if (error instanceof ApiError) note(error.status, error.toBody());
    throw error;
  } finally {
    exchange.mayTakeEffect();
  }
}

function refusalAnswer(
  components: OauthComponents,
  route: Route,
  exchange: HttpExchange,
  error: unknown,
): Answer {
  const { logger } = components;
  const known = knownError(error);
  if (known === null)
    logger.error('a request failed', { requestId: exchange.requestId, error: describeError(error) });
  const told =
    known ??
    new ApiError('internal', `the server failed to answer; tell us the request id ${exchange.requestId}`);
  return route.isPage ? problemAnswer(components, told) : oauthAnswer(told, exchange);
}

/** The error as it is answered; null where it is a fault of the server's own. */
function knownError(error: unknown): OauthError | ApiError | null {
  if (error instanceof OauthError || error instanceof ApiError) return error;
  if (error instanceof JsonSyntaxError)
    return new OauthError('invalid_request', `the body is not JSON: ${error.message}`);
  if (error instanceof StoreError)
    return new ApiError('unavailable', 'object storage did not answer; try again', { retryAfter: 1 });
  return null;
}

function oauthAnswer(error: OauthError | ApiError, exchange: HttpExchange): Answer {
  const headers: (readonly [string, string])[] = [...secretHeaders];
  const { status, code } =
    error instanceof OauthError ? { status: statusOf(error.code), code: error.code } : mapped(error);
  if (error instanceof ApiError) {
    headers.push(...error.headers);
    if (error.retryAfter !== undefined) headers.push(['retry-after', String(error.retryAfter)]);
  }
  if (status === 401 && exchange.header('authorization') !== undefined)
    headers.push(['WWW-Authenticate', 'Basic realm="tidebase"']);
  const description = new OauthError(code, error.message).message;
  return { status, headers, body: JSON.stringify({ error: code, error_description: description }) };
}

function statusOf(code: OauthErrorCode): number {
  if (code === 'invalid_client') return 401;
  return code === 'temporarily_unavailable' ? 503 : 400;
}

/** OAuth has few words for what the server itself refuses. */
function mapped({ status }: ApiError): { readonly status: number; readonly code: OauthErrorCode } {
  if (status === 429 || status === 503) return { status, code: 'temporarily_unavailable' };
  return { status, code: status >= 500 ? 'server_error' : 'invalid_request' };
}
