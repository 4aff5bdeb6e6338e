import { ApiError } from '../../protocol/errors.ts';
import { namespaceNameProblem, type PersonId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { type ActorCall, actorAnswerFromWire, type CallerNote } from '../../protocol/messages.ts';
import type { Tag } from '../../protocol/operations/operation-row.ts';
import { type Operation, type OperationName, querySchemaOf, takesBody } from '../../protocol/operations.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import { findOperation, type PathParameters } from '../../protocol/routing.ts';
import { inputError, parseQueryWith } from '../../protocol/validate.ts';
import { type Plans, storageQuotaBytes } from '../accounts/plans.ts';
import { type Authenticator, credentialOf } from '../auth/authenticate.ts';
import { type Authority, authorize } from '../auth/authorize.ts';
import type { Principal } from '../auth/principal.ts';
import { DataError } from '../base/assert.ts';
import { parseJson } from '../base/json.ts';
import { JsonSyntaxError } from '../base/json-scanner.ts';
import { describeError, type Logger } from '../base/log.ts';
import { packMessage } from '../base/msgpack.ts';
import type { Message } from '../base/port-channel.ts';
import type { Attempts } from '../identity/attempts.ts';
import { StoreError } from '../object-store/object-store.ts';
import type { Router } from '../router/router.ts';
import type { Admission, AdmissionTicket } from './admission.ts';
import type { ClientAddresses } from './client-address.ts';
import { type PageAt, pageMethods } from './console/pages.ts';
import type { FrontOperation } from './front-operation.ts';
import { answersUnread, type HeldBytes } from './held-bytes.ts';
import { bodyTooLarge } from './http-body.ts';
import { ClientGone, type HttpAnswer, type HttpExchange } from './http-types.ts';
import { idempotencyKeyProblem, onlyOnce, type RequestMemory, scopedKeyDigest } from './idempotency.ts';
import { allowanceRefusal, beginCapped, countAnswer, type Metering } from './metering.ts';
import type { RequestObserver } from './observe.ts';
import type { Observed } from './observed.ts';
import type { OpenRequests } from './open-requests.ts';
import { CalledExchange, type OperationCall, type Surface } from './operation-call.ts';
import type { HeaderList } from './rate-limit-headers.ts';
import type { FileReceiver } from './receive-file.ts';
import { type Answer, respond } from './response.ts';
import { originRefusal } from './same-origin.ts';

/**
 * The request's story: route → authenticate → admit → authorise → hand to its actor → respond. A warm read by a known
 * key goes from the first line to the router without a promise.
 *
 * A refused request never reaches an actor: limits (429) come before scope and patterns (403).
 */
export interface FrontComponents {
  readonly authenticator: Authenticator;
  readonly attempts: Pick<Attempts, 'lookUpsFrom' | 'openRequest' | 'registration'>;
  readonly openRequests: OpenRequests;
  /** The public address, without a slash at its end. */
  readonly baseUrl: string;
  readonly admission: Admission;
  readonly router: Router;
  readonly plans: Plans;
  readonly logger: Logger;
  readonly operations: ReadonlyMap<OperationName, FrontOperation>;
  /** What a person's browser gets at a path where no operation is. */
  readonly pages: PageAt;
  /** `/openapi.json`, as text. */
  readonly openApi: () => string;
  /** The person's address, for the list of keys. */
  readonly emailOf: (personId: number) => Promise<string>;
  readonly clientAddresses: ClientAddresses;
  readonly files: FileReceiver;
  readonly held: HeldBytes;
  readonly memory: RequestMemory;
  readonly metering: Metering;
  /** Milliseconds that answers about usage wait for what was counted last to be told. */
  readonly settled: (work: Promise<void>) => Promise<unknown>;
  /** Waits for a credential that has to be looked up, no longer than a query may take: then 503. */
  readonly credentialInTime: (looked: Promise<Principal>) => Promise<Principal>;
  /** Hears of every answer. */
  readonly observer: RequestObserver;
}

interface Request extends Observed {
  readonly operation: Operation;
  /** From when the time of a query counts: its whole request was here. */
  completeMs: number;
  readonly parameters: PathParameters;
  /** The body of an operation call; null where the client still has to send it. */
  readonly given: Uint8Array | null;
  readonly surface: Surface;
}

export function createHandler(front: FrontComponents): (exchange: HttpExchange) => void {
  return (exchange) => {
    const beganMs = front.observer.now();
    let request: Request | null = null;
    try {
      const route = findOperation(exchange.method, exchange.path);
      if (route.kind === 'no-path')
        return reply(front, nobodys(exchange, beganMs), pageOrRefusal(front, exchange), {
          standing: noHeaders,
        });
      if (route.kind === 'wrong-method') throw wrongMethod(exchange, route.allow);
      request = {
        exchange,
        id: exchange.requestId,
        beganMs,
        completeMs: beganMs,
        operation: route.operation,
        parameters: route.parameters,
        given: null,
        surface: 'rest',
        principal: null,
        receivedBytes: 0,
        bodyHold: null,
        email: null,
        personId: null,
      };
      begin(front, request);
    } catch (error) {
      fail(front, request ?? nobodys(exchange, beganMs), error);
    }
  };
}

/**
 * Runs one operation for a caller who is authenticated, inside another request: what an MCP tool call does. Resolves with the
 * whole REST answer, refusals too (429, 403, 422 …), and never rejects: status, the headers (rate limits and `retry-after` among
 * them), the bytes. The operation is admitted, authorised, metered, observed and audited as its REST request is.
 *
 * `sent` of the answer must be released exactly when nothing of it is in our memory any more: pass it on as `sent` of the outer
 * request's answer, or release it. Until then the operation counts as in flight, and its bytes as held.
 */
export function runOperation(front: FrontComponents, call: OperationCall): Promise<HttpAnswer> {
  return new Promise((resolve) => {
    const exchange = new CalledExchange(call, resolve);
    const { operation, principal, surface } = call;
    const beganMs = front.observer.now();
    const request: Request = {
      exchange,
      id: exchange.requestId,
      beganMs,
      completeMs: beganMs,
      operation,
      parameters: { name: undefined, id: undefined, provider: undefined, ...call.parameters },
      given: call.body ?? noBody,
      surface,
      principal,
      receivedBytes: 0,
      bodyHold: null,
      email: null,
      personId: null,
    };
    admitted(front, request, principal);
  });
}

/** A request for no operation. */
function nobodys(exchange: HttpExchange, beganMs: number): Observed {
  const parameters = { name: undefined, id: undefined, provider: undefined };
  const empty = { principal: null, receivedBytes: 0, bodyHold: null, email: null, personId: null };
  return { exchange, id: exchange.requestId, beganMs, operation: null, parameters, ...empty };
}

function pageOrRefusal({ pages }: FrontComponents, exchange: HttpExchange): Answer {
  const page = pages(exchange);
  if (page === null) throw nothingThere();
  if (page === 'wrong-method') throw wrongMethod(exchange, pageMethods);
  return page;
}

function begin(front: FrontComponents, request: Request): void {
  const { exchange, operation } = request;
  if (operation.auth === 'none') {
    return settle(
      front,
      request,
      front.admission.accompany(() => serveOpen(front, request)),
    );
  }
  try {
    const credential = credentialOf((name) => exchange.header(name));
    const principal = front.authenticator.peek(credential);
    if (principal !== undefined) return admitted(front, request, principal);
    const guard = front.attempts.lookUpsFrom(clientAddressOf(front, exchange));
    const authenticated = front.credentialInTime(front.authenticator.authenticate(credential, guard));
    settle(
      front,
      request,
      authenticated.then((found) => admitted(front, request, found)),
    );
  } catch (error) {
    failUnadmitted(front, request, error);
  }
}

/** Errors of the asynchronous ways end here. */
function settle(front: FrontComponents, request: Request, work: Promise<void>): void {
  work.catch((error) => failUnadmitted(front, request, error));
}

function failUnadmitted(front: FrontComponents, request: Request, error: unknown): void {
  fail(front, request, error, standingHeaders(request.operation, null));
}

function admitted(front: FrontComponents, request: Request, principal: Principal): void {
  const { operation, exchange } = request;
  request.principal = principal;
  const ticket = front.admission.admit(principal, operation.runsAs === 'sql');
  if (ticket instanceof ApiError) return failUnadmitted(front, request, ticket);
  try {
    const endCapped = beginCapped(front.metering, operation, principal);
    if (endCapped !== null) ticket.whenReleased(endCapped);
    refuseUnauthorized(request, principal);
    checkRequest(request);
    const usedUp = allowanceRefusal(front.metering, operation, principal);
    if (usedUp !== null) throw usedUp;
    if (operation.request === 'file') {
      serveFile(front, request, principal, ticket).catch((error) =>
        failAdmitted(front, request, ticket, error),
      );
    } else if (request.given !== null) {
      serveGiven(front, request, { principal, ticket, body: request.given });
    } else if (takesBody(operation, exchange.method)) {
      serveWithBody(front, request, principal, ticket).catch((error) =>
        failAdmitted(front, request, ticket, error),
      );
    } else {
      serve(front, request, { principal, ticket, body: null });
    }
  } catch (error) {
    failAdmitted(front, request, ticket, error);
  }
}

function refuseUnauthorized({ operation, parameters }: Request, principal: Principal): void {
  const { outsidePatterns } = operation;
  const refusal = authorize(principal, authorityOf(operation), parameters.name ?? null, outsidePatterns);
  if (refusal !== null) throw refusal;
  if (operation.auth !== 'login') return;
  const notLogin = authorize(principal, 'login', null);
  if (notLogin !== null) throw notLogin;
}

/**
 * A body may take minutes to come. Until then keys are revoked, people reset their passwords and tenants are suspended, and
 * whoever has sent its head may be nobody by its end.
 */
async function principalByNow(front: FrontComponents, request: Request): Promise<Principal> {
  // An operation call begins with everything that it needs: nothing was waited for.
  if (request.given !== null && request.principal !== null) return request.principal;
  const credential = credentialOf((name) => request.exchange.header(name));
  const known = front.authenticator.peek(credential);
  const principal = known ?? (await front.credentialInTime(front.authenticator.authenticate(credential)));
  request.principal = principal;
  refuseUnauthorized(request, principal);
  return principal;
}

function authorityOf(operation: Operation): Authority {
  if (operation.authority === 'unlimited-admin') return 'manage-keys';
  if (operation.authority === 'billing') return 'billing';
  return operation.scope ?? 'read';
}

/** What can be judged without the body: cheap, and before it is read. */
function checkRequest({ operation, parameters, exchange }: Request): void {
  if (!operation.built) throw notBuilt(operation, exchange.method);
  if (parameters.name !== undefined) {
    const problem = namespaceNameProblem(parameters.name);
    if (problem !== null) throw inputError(new Map([['name', problem]]));
  }
  if (operation.idempotent) {
    const problem = idempotencyKeyProblem(exchange.header('idempotency-key'));
    if (problem !== null) throw inputError(new Map([['Idempotency-Key', problem]]));
  }
  if (operation.request !== 'file' && takesBody(operation, exchange.method)) refuseEncoding(exchange);
  if (exchange.query === '') return;
  const schema = querySchemaOf(operation, exchange.method);
  const given = parseQueryString(exchange.query);
  if (schema !== null) parseQueryWith(schema, given);
  else if (given.size > 0)
    throw inputError(
      new Map([...given.keys()].map((name) => [name, 'is not a parameter of this operation'])),
    );
}

/** Nothing but imports is unpacked: a small body that becomes a large one would be a way around every limit. */
function refuseEncoding(exchange: HttpExchange): void {
  const encoding = exchange.header('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity') return;
  const sentence = 'a body with Content-Encoding is taken by imports only: send this one as plain JSON';
  throw new ApiError('bad_request', sentence, { status: 415 });
}

/** A file that is imported. It is there until its actor has answered, even where nobody waits for the answer any more. */
async function serveFile(
  front: FrontComponents,
  request: Request,
  principal: Principal,
  ticket: AdmissionTicket,
): Promise<void> {
  const { exchange } = request;
  exchange.allowHandlerMs(limits.importDeadlineMs);
  const { share } = principal;
  const quotaBytes = storageQuotaBytes(front.plans[principal.planName], principal);
  const message = await front.files.withBody(exchange, { share, quotaBytes }, async (file) => {
    const byNow = await principalByNow(front, request);
    exchange.mayTakeEffect();
    request.receivedBytes = file.bytes;
    return front.router.call(actorCall(front, request, byNow, ''), packMessage(file));
  });
  finish(front, request, ticket, meteredAnswer(front, request, principal, message));
}

function serveGiven(front: FrontComponents, request: Request, admittedAs: Admitted): void {
  const { operation, exchange } = request;
  const body = admittedAs.body ?? noBody;
  if (!takesBody(operation, exchange.method)) return serve(front, request, { ...admittedAs, body: null });
  if (body.byteLength > operation.bodyBytesMax) throw bodyTooLarge(operation.bodyBytesMax);
  noteBody(request, body);
  serve(front, request, admittedAs);
}

async function serveWithBody(
  front: FrontComponents,
  request: Request,
  admittedAs: Principal,
  ticket: AdmissionTicket,
): Promise<void> {
  const { exchange, operation } = request;
  const { bytes, hold } = await front.held.readBody(exchange, admittedAs.share, operation.bodyBytesMax);
  request.bodyHold = hold;
  noteBody(request, bytes);
  request.completeMs = front.observer.now();
  const principal = await principalByNow(front, request);
  serve(front, request, { principal, ticket, body: bytes });
}

/** The body of an operation without credentials: too small to be held. */
async function readOpenBody(request: Request): Promise<Uint8Array> {
  const { exchange, operation } = request;
  const body = new Uint8Array(await exchange.readBody(operation.bodyBytesMax));
  noteBody(request, body);
  return body;
}

function noteBody(request: Request, body: Uint8Array): void {
  request.receivedBytes = body.byteLength;
  if (body.byteLength === 0 && request.operation.bodyRequired) {
    throw new ApiError('bad_request', 'this request needs a JSON body');
  }
}

interface Admitted {
  readonly principal: Principal;
  readonly ticket: AdmissionTicket;
  readonly body: Uint8Array | null;
}

function serve(front: FrontComponents, request: Request, admittedAs: Admitted): void {
  const { operation, exchange } = request;
  if (operation.effect.does === 'write') exchange.mayTakeEffect();
  if (operation.serves === 'front') return serveHere(front, request, admittedAs);
  if (operation.needsFirst === 'caller-address') return serveWithAddress(front, request, admittedAs);
  if (operation.needsFirst === 'usage-told') return serveWithUsage(front, request, admittedAs);
  deliver(front, request, admittedAs, '');
}

function serveHere(front: FrontComponents, request: Request, { principal, ticket, body }: Admitted): void {
  const keyDigest = keyDigestOf(request, principal);
  const run = (plannedId: number) => runFrontOperation(front, request, { principal, body, plannedId });
  const { name, auth } = request.operation;
  // What a person does as such is remembered by their own tenant: whichever they act for, the key means the same request.
  const tenantId = auth === 'login' ? principal.homeTenantId : principal.tenantId;
  const asked = { tenantId, operation: name, keyDigest, body };
  onlyOnce(front.memory, asked, run)
    .then((answer) => finish(front, request, ticket, answer))
    .catch((error) => failAdmitted(front, request, ticket, error));
}

/**
 * Rare enough to look the person's address up each time. Meanwhile their logins may have ended: what they still ask for then
 * must not make a key that outlives them.
 */
function serveWithAddress(front: FrontComponents, request: Request, admittedAs: Admitted): void {
  const { personId } = admittedAs.principal;
  const address = personId === null ? Promise.resolve('') : front.emailOf(personId);
  address
    .then(async (email) => {
      const principal = await principalByNow(front, request);
      deliver(front, request, { ...admittedAs, principal }, email);
    })
    .catch((error) => failAdmitted(front, request, admittedAs.ticket, error));
}

function serveWithUsage(front: FrontComponents, request: Request, admittedAs: Admitted): void {
  const { tenantId } = admittedAs.principal;
  front
    .settled(front.metering.meter.flush(tenantId))
    .then(() => deliver(front, request, admittedAs, ''))
    .catch((error) => failAdmitted(front, request, admittedAs.ticket, error));
}

function deliver(front: FrontComponents, request: Request, admittedAs: Admitted, email: string): void {
  const { principal, ticket, body } = admittedAs;
  const delivery = front.router.deliver(
    actorCall(front, request, principal, email),
    body,
    (message) => finish(front, request, ticket, meteredAnswer(front, request, principal, message)),
    (error) => failAdmitted(front, request, ticket, error),
  );
  if (delivery === null || !mayEndEarly(request.operation)) return;
  request.exchange.onAbort(() => front.router.cancel(delivery));
}

/** Whether it is a query that may take long. One document is read before word could come that nobody waits for it any more. */
function mayEndEarly({ effect, request }: Operation): boolean {
  return effect.meters === 'query' && request !== null;
}

function actorCall(front: FrontComponents, request: Request, principal: Principal, email: string): ActorCall {
  const { operation, parameters, exchange } = request;
  const isTenants = operation.serves === 'tenant';
  const plan = front.plans[principal.planName];
  const querySeconds = operation.runsAs === 'sql' ? plan.sql_seconds : plan.query_seconds;
  const caller: CallerNote = {
    requestId: request.id,
    namespaces: principal.namespaces,
    createdBy: email,
    personId: principal.personId ?? 0,
    querySeconds,
    storageQuotaBytes: storageQuotaBytes(plan, principal),
    owner: principal.share.owner,
    weight: principal.share.weight,
    readInflightBytes: plan.read_inflight_mb === null ? null : plan.read_inflight_mb * 1_000_000,
  };
  const call: ActorCall = {
    operation: operation.name,
    tenantId: principal.tenantId,
    // A tenant's operation on a namespace names it as its argument: the tenant's actor does it.
    namespace: isTenants ? '' : (parameters.name ?? ''),
    argument: (isTenants ? (parameters.name ?? parameters.id ?? parameters.provider) : parameters.id) ?? '',
    query: exchange.query,
    deadlineMs: deadlineMsOf(front, request, querySeconds),
    caller,
  };
  const idempotencyKey = keyDigestOf(request, principal);
  return idempotencyKey === null ? call : { ...call, idempotencyKey };
}

/** Milliseconds that the work may still take. Looking for the caller has used up some of a query's. */
function deadlineMsOf(
  front: FrontComponents,
  { operation, completeMs }: Request,
  querySeconds: number,
): number {
  if (operation.request === 'file') return limits.importDeadlineMs;
  if (operation.effect.meters !== 'query') return limits.handlerDeadlineMs;
  return Math.max(1, querySeconds * 1_000 - (front.observer.now() - completeMs));
}

function keyDigestOf({ operation, exchange }: Request, principal: Principal): string | null {
  return operation.idempotent ? scopedKeyDigest(principal, exchange.header('idempotency-key')) : null;
}

const noBody = new Uint8Array();

function meteredAnswer(
  front: FrontComponents,
  { operation, surface }: Request,
  principal: Principal,
  message: Message,
): Answer {
  const { status, headers, meter } = actorAnswerFromWire(message.head);
  const body = message.body ?? noBody;
  const answered = { status, meter, bodyBytes: body.byteLength, surface };
  countAnswer(front.metering, operation, principal, answered);
  return { status, headers, body };
}

/** Serves an operation without credentials: whatever can be refused before the body is read is. */
async function serveOpen(front: FrontComponents, request: Request): Promise<void> {
  const { exchange, operation } = request;
  if (!takesBody(operation, exchange.method)) {
    checkRequest(request);
    return serveNobody(front, request, null);
  }
  const { baseUrl } = front;
  const foreign = operation.sameOrigin
    ? originRefusal(exchange.header('origin'), { host: exchange.header('host'), baseUrl })
    : null;
  if (foreign !== null) throw foreign;
  const address = clientAddressOf(front, exchange);
  front.attempts.openRequest(address);
  const place = front.openRequests.enter(address);
  try {
    checkRequest(request);
    await serveNobody(front, request, await readOpenBody(request));
  } finally {
    place.leave();
  }
}

async function serveNobody(front: FrontComponents, request: Request, body: Uint8Array | null): Promise<void> {
  if (request.operation.effect.does === 'write') request.exchange.mayTakeEffect();
  const plannedId = front.memory.newId();
  const answer = await runFrontOperation(front, request, { principal: null, body, plannedId });
  reply(front, request, answer, { standing: standingHeaders(request.operation, null) });
}

/** The parsed body of an operation that the front does; undefined where it takes none. Throws JsonSyntaxError. */
function parseBody(request: Request, body: Uint8Array | null): unknown {
  if (body === null) return undefined;
  const parsed = parseJson(body, { depthMax: limits.jsonDepthMax, valuesMax: limits.jsonValuesMax });
  const { auth, inputCode } = request.operation;
  if (auth !== 'none' || typeof parsed !== 'object' || parsed === null) return parsed;
  const fields = Object.keys(parsed).length;
  if (fields > limits.openBodyFieldsMax)
    throw new ApiError(inputCode, `the body has ${fields} fields: send those of this operation alone`);
  const { email } = parsed as { readonly email?: unknown };
  if (typeof email === 'string') request.email = email;
  return parsed;
}

async function runFrontOperation(
  front: FrontComponents,
  request: Request,
  input: {
    readonly principal: Principal | null;
    readonly body: Uint8Array | null;
    readonly plannedId: number;
  },
): Promise<Answer> {
  const { operation, parameters, exchange } = request;
  const { success: status, name } = operation;
  if (name === 'healthz')
    return { status, headers: noHeaders, body: 'ok', contentType: 'text/plain; charset=utf-8' };
  if (name === 'openapi') return { status, headers: noHeaders, body: front.openApi() };
  const run = front.operations.get(name);
  if (run === undefined) throw notBuilt(operation, exchange.method);
  const parsed = parseBody(request, input.body);
  const clientAddress = clientAddressOf(front, exchange);
  const { principal, plannedId } = input;
  const tenant = exchange.header('x-tenant');
  const isAbout = (personId: PersonId) => {
    request.personId = personId;
  };
  const asked = { principal, body: parsed, parameters, plannedId, clientAddress, tenant, isAbout };
  const value = await run(asked);
  return { status, headers: noHeaders, body: operation.answer === null ? '' : JSON.stringify(value) };
}

function clientAddressOf({ clientAddresses }: FrontComponents, exchange: HttpExchange): string {
  return clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for'));
}

const noHeaders: HeaderList = [];
/** Answers with keys, tokens, persons and bills are nobody's to keep, whoever makes them. */
const privateHeaders: HeaderList = [['cache-control', 'no-store']];
const privateTags: ReadonlySet<Tag> = new Set(['accounts', 'keys', 'tenants', 'billing']);

/** What every answer of an operation carries, refusals too. Operations with rate limits are none of the private ones. */
function standingHeaders({ tag, rateLimitHeaders }: Operation, ticket: AdmissionTicket | null): HeaderList {
  if (privateTags.has(tag)) return privateHeaders;
  return rateLimitHeaders && ticket !== null ? ticket.headers : noHeaders;
}

/** The request is in flight until the last byte of its answer has left, which takes its memory until then. */
function finish(front: FrontComponents, request: Request, ticket: AdmissionTicket, answer: Answer): void {
  const { body } = answer;
  const { exchange, principal } = request;
  dropBody(request);
  const bytes = typeof body === 'string' ? 0 : body.byteLength;
  if (bytes <= limits.unheldBytesMax || principal === null || exchange.aborted)
    return reply(front, request, answer, {
      standing: standingHeaders(request.operation, ticket),
      sent: ticket,
    });
  const hold = front.held.holdAnswer(exchange, principal.share, bytes);
  if (hold === null) return failAdmitted(front, request, ticket, answersUnread());
  const sent = {
    release() {
      hold.release();
      ticket.release();
    },
  };
  reply(front, request, answer, { standing: standingHeaders(request.operation, ticket), sent });
}

function dropBody(request: Observed): void {
  request.bodyHold?.release();
  request.bodyHold = null;
}

interface AnswerSurroundings {
  readonly standing: HeaderList;
  /** Released when the answer has left. */
  readonly sent?: HttpAnswer['sent'];
}

/** Every answer leaves here. */
function reply(
  front: FrontComponents,
  request: Observed,
  answer: Answer,
  { standing, sent }: AnswerSurroundings,
): void {
  front.observer.answered(request, answer);
  respond(request.exchange, request.id, answer, standing, sent);
}

function failAdmitted(
  front: FrontComponents,
  request: Request,
  ticket: AdmissionTicket,
  error: unknown,
): void {
  dropBody(request);
  ticket.release();
  fail(front, request, error, standingHeaders(request.operation, ticket));
}

function fail(
  front: FrontComponents,
  request: Observed,
  error: unknown,
  standing: HeaderList = noHeaders,
): void {
  if (error instanceof ClientGone) return front.observer.gone(request);
  const refusal = apiErrorOf(front, request.id, error);
  const headers = [...refusal.headers];
  if (refusal.retryAfter !== undefined) headers.push(['retry-after', String(refusal.retryAfter)]);
  reply(front, request, { status: refusal.status, headers, body: refusal.toBody() }, { standing });
}

function apiErrorOf(front: FrontComponents, id: string, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof JsonSyntaxError)
    return new ApiError('bad_request', `the body is not JSON: ${error.message}`);
  if (error instanceof StoreError) {
    return new ApiError('unavailable', 'object storage did not answer; try again', { retryAfter: 1 });
  }
  front.logger.error('a request failed', { requestId: id, error: describeError(error) });
  if (error instanceof DataError)
    return new ApiError('unavailable', 'stored data could not be read; nothing was done', { retryAfter: 1 });
  return new ApiError('internal', `the server failed to answer; tell us the request id ${id}`);
}

function notBuilt({ path }: Operation, method: string): ApiError {
  const sentence = `this version of the server does not have ${method} ${path} yet; nothing was done`;
  return new ApiError('not_implemented', sentence);
}

function wrongMethod(exchange: HttpExchange, allow: string): ApiError {
  const headers = [['Allow', allow]] as const;
  return new ApiError('bad_request', `${exchange.method} is not allowed here; allowed: ${allow}`, {
    status: 405,
    headers,
  });
}

/** Without the path: a key that was pasted into it would be in the logs of whoever logs errors. */
function nothingThere(): ApiError {
  return new ApiError('not_found', 'there is nothing at this path: GET /openapi.json lists what there is');
}
