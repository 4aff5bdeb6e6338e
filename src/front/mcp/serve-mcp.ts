/**
 * `POST /mcp`, from bytes to answer. It keeps nothing between requests.
 *
 * 1. Host, origin, method and the address's parameters are judged, then who calls: all before the body is read.
 * 2. The request is admitted. One that calls tools is withdrawn again: each call is admitted as the REST request that it is.
 * 3. The body is read, within what its owner may have in memory, and the caller is looked up again: it may have been long.
 * 4. The message is read, its era told, and its method done. Several messages of one body are done one after the other.
 * 5. The answer is held until it has left. What is refused before the message is known has JSON-RPC's shape as well.
 */
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { authorize } from '../../auth/authorize.ts';
import { insufficientScope, type McpAuthenticator } from '../../auth/mcp-authenticate.ts';
import type { Principal } from '../../auth/principal.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Attempts } from '../../identity/attempts.ts';
import type { Admission, AdmissionTicket } from '../admission.ts';
import type { ClientAddresses } from '../client-address.ts';
import { answersUnread, type HeldBody, type HeldBytes } from '../held-bytes.ts';
import { ClientGone, type HttpAnswer, type HttpExchange } from '../http-types.ts';
import { countUse, type Metering } from '../metering.ts';
import type { OpenRequests } from '../open-requests.ts';
import { respond } from '../response.ts';
import { callTool, errorResult, type RunOperation, toolOf } from './call-tool.ts';
import { type Narrowing, narrowed, narrowingOf } from './connection.ts';
import { type ForeignRefusal, foreignRefusalOf } from './host-refusal.ts';
import { stringOf } from './json-members.ts';
import {
  type AnswerParts,
  batchParts,
  errorJson,
  errorParts,
  partsBytes,
  RpcError,
  type RpcMessage,
  readMessages,
  resultParts,
  rpcErrorOf,
} from './json-rpc.ts';
import type { McpMetrics } from './mcp-metrics.ts';
import { checkBatch, type Era, eraOf } from './protocol-era.ts';
import { discoverResult, initializeResult, ToolLists } from './tool-list.ts';

export interface McpComponents {
  readonly authenticator: McpAuthenticator;
  readonly attempts: Pick<Attempts, 'lookUpsFrom'>;
  readonly credentialInTime: (looked: Promise<Principal>) => Promise<Principal>;
  readonly clientAddresses: ClientAddresses;
  readonly admission: Admission;
  readonly openRequests: OpenRequests;
  readonly held: HeldBytes;
  readonly run: RunOperation;
  readonly metrics: McpMetrics;
  readonly metering: Pick<Metering, 'meter'>;
  readonly logger: Logger;
  /** The public address, without a slash at its end. */
  readonly baseUrl: string;
}

export const mcpPath = '/mcp';

interface Mcp extends McpComponents {
  readonly foreignRefusal: ForeignRefusal;
  readonly lists: ToolLists;
}

export function createMcp(components: McpComponents): (exchange: HttpExchange) => void {
  const foreignRefusal = foreignRefusalOf(components.baseUrl);
  const mcp: Mcp = { ...components, foreignRefusal, lists: new ToolLists() };
  return (exchange) => {
    serve(mcp, exchange).catch((error: unknown) => fail(mcp, exchange, error));
  };
}

interface Request {
  readonly exchange: HttpExchange;
  readonly principal: Principal;
  /** What its address takes away from the principal. */
  readonly narrowing: Narrowing;
  readonly ticket: AdmissionTicket;
}

async function serve(mcp: Mcp, exchange: HttpExchange): Promise<void> {
  const narrowing = judgeHead(mcp, exchange);
  const principal = await callerOf(mcp, exchange);
  const ticket = mcp.admission.admit(principal);
  if (ticket instanceof ApiError) return refuseBusy(mcp, exchange, ticket);
  let body: HeldBody | null = null;
  try {
    body = await mcp.held.readBody(exchange, principal.share, limits.mcpBodyBytesMax);
    const byNow = mcp.authenticator.peek((name) => exchange.header(name)) ?? (await callerOf(mcp, exchange));
    // Whatever it asks: what a connection or key was last used for need not be metered.
    countUse(mcp.metering, byNow);
    await answerBody(mcp, { exchange, principal: byNow, narrowing, ticket }, body.bytes);
  } catch (error) {
    ticket.release();
    throw error;
  } finally {
    body?.hold?.release();
  }
}

/** What needs no look-up. Throws ApiError. */
function judgeHead({ foreignRefusal }: Mcp, exchange: HttpExchange): Narrowing {
  const foreign = foreignRefusal({ host: exchange.header('host'), origin: exchange.header('origin') });
  if (foreign !== null) throw foreign;
  if (exchange.method !== 'POST') {
    const sentence = `${exchange.method} is not allowed here: this server has no streams and no sessions; allowed: POST`;
    throw new ApiError('bad_request', sentence, { status: 405, headers: [['Allow', 'POST']] });
  }
  const encoding = exchange.header('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity')
    throw new ApiError('bad_request', 'send the body as plain JSON, without Content-Encoding', {
      status: 415,
    });
  return narrowingOf(exchange.query);
}

async function callerOf(mcp: McpComponents, exchange: HttpExchange): Promise<Principal> {
  const header = (name: string) => exchange.header(name);
  let principal = mcp.authenticator.peek(header);
  if (principal === undefined) {
    const address = mcp.clientAddresses.of(exchange.remoteAddress, header('x-forwarded-for'));
    const guard = mcp.attempts.lookUpsFrom(address);
    principal = await mcp.credentialInTime(mcp.authenticator.authenticate(header, guard));
  }
  const refusal = authorize(principal, 'read', null);
  if (refusal !== null) throw refusal;
  return principal;
}

async function answerBody(mcp: Mcp, request: Request, bytes: Uint8Array): Promise<void> {
  const header = (name: string) => request.exchange.header(name);
  const received = readMessages(bytes);
  if (received.kind === 'batch') return answerBatch(mcp, request, received.messages);
  const { message } = received;
  if (message instanceof RpcError) throw message;
  const outcome = await outcomeOf(mcp, request, message, () => eraOf(message, header));
  send(mcp, request, [outcome], outcome.answer);
}

/** The answer to a message, a refusal too. Throws what is no refusal. */
async function outcomeOf(mcp: Mcp, request: Request, message: RpcMessage, era: () => Era): Promise<Outcome> {
  try {
    return await done(mcp, request, message, era());
  } catch (error) {
    const refusal = error instanceof ApiError ? rpcErrorOf(error) : error;
    if (!(refusal instanceof RpcError)) throw error;
    mcp.metrics.count(message.method, 'refused');
    const headers = error instanceof ApiError ? retryHeaders(error) : [];
    return { answer: errorParts(message.id, refusal), status: refusal.status, headers, sent: undefined };
  }
}

/** What a message came to. */
interface Outcome {
  /** The JSON-RPC answer; null for a notification. */
  readonly answer: AnswerParts | null;
  readonly status: number;
  readonly headers: HttpAnswer['headers'];
  readonly sent: HttpAnswer['sent'];
}

/** Answers the messages of a batch in turn. Together the answers are as large as REST's largest at most: the messages that are left then are refused. */
async function answerBatch(
  mcp: Mcp,
  request: Request,
  messages: readonly (RpcMessage | RpcError)[],
): Promise<void> {
  checkBatch(messages, (name) => request.exchange.header(name));
  const outcomes: Outcome[] = [];
  let bytes = 0;
  try {
    for (const message of messages) {
      if (request.exchange.aborted) throw new ClientGone();
      const outcome = await doneInBatch(mcp, request, message, bytes);
      bytes += partsBytes(outcome.answer ?? []);
      outcomes.push(outcome);
    }
  } catch (error) {
    // Nobody gets the answers that there are: what they hold is let go.
    for (const { sent } of outcomes) sent?.release();
    throw error;
  }
  const answers = outcomes.flatMap(({ answer: each }) => (each === null ? [] : [each]));
  send(mcp, request, outcomes, answers.length === 0 ? null : batchParts(answers));
}

/** Answers of one batch take no more together than the largest one of a single call, twice. */
const batchBytesMax = 4 * limits.toolAnswerBytesMax;

async function doneInBatch(
  mcp: Mcp,
  request: Request,
  message: RpcMessage | RpcError,
  bytesBefore: number,
): Promise<Outcome> {
  if (message instanceof RpcError) return { ...nothing, status: 200, answer: errorParts(null, message) };
  const outcome = await outcomeOf(mcp, request, message, () => {
    if (message.method === 'initialize')
      throw new RpcError('invalidRequest', 'initialize can not be part of a batch');
    if (bytesBefore > batchBytesMax)
      throw new RpcError(
        'invalidRequest',
        'the answers before this one fill the batch: send this one by itself',
      );
    return 'legacy';
  });
  return { ...outcome, status: 200 };
}

const nothing = { answer: null, status: 202, headers: [], sent: undefined } as const;

/** Does one message. Throws RpcError for what is no method or has wrong parameters, ApiError for what its token lacks. */
async function done(mcp: Mcp, request: Request, message: RpcMessage, era: Era): Promise<Outcome> {
  const { id, method, params } = message;
  if (id === null) return nothing;
  if (method === 'tools/call') return called(mcp, request, message, era);
  const answered = (answer: AnswerParts): Outcome => {
    mcp.metrics.count(method, 'done');
    return { ...nothing, status: 200, answer };
  };
  if (method === 'tools/list') {
    const cursor = params?.get('cursor');
    if (cursor !== undefined && stringOf(cursor) !== '' && cursor.json.toString() !== 'null')
      throw new RpcError('invalidParams', 'this cursor is not from here: the list of tools has one page', {
        status: 200,
      });
    return answered(mcp.lists.answer(id, era, mayWrite(request) ? 'all' : 'reading'));
  }
  if (method === 'server/discover' && era === 'modern') return answered(resultParts(id, [discoverResult]));
  if (method === 'initialize' && era === 'legacy')
    return answered(resultParts(id, [initializeResult(stringOf(params?.get('protocolVersion')))]));
  if (method === 'ping' && era === 'legacy') return answered(resultParts(id, [pong]));
  const sentence = `there is no method ${JSON.stringify(method.slice(0, 100))}: this server has tools/list and tools/call`;
  throw new RpcError('methodNotFound', sentence, { status: era === 'modern' ? 404 : 200 });
}

const pong = Buffer.from('{}');

function mayWrite({ principal, narrowing }: Request): boolean {
  return authorize(narrowed(principal, narrowing), 'write', null) === null;
}

async function called(mcp: McpComponents, request: Request, message: RpcMessage, era: Era): Promise<Outcome> {
  const { exchange, principal, narrowing, ticket } = request;
  const tool = toolOf(message);
  // The client can ask its person for more. What the address takes away, it took away itself.
  if (!tool.reads && principal.auth === 'oauth' && principal.scope === 'read')
    throw insufficientScope(mcp.baseUrl);
  ticket.withdraw();
  const caller = { principal: narrowed(principal, narrowing), outer: exchange };
  const { result, headers, isError, sent } = await callTool(mcp.run, { tool, message, era }, caller);
  mcp.metrics.count(tool.name, isError ? 'refused' : 'done');
  return { answer: resultParts(message.id ?? 'null', result), status: 200, headers, sent };
}

const noBody = Buffer.alloc(0);

/** The parts as one; one part is itself. */
function joined(parts: AnswerParts): Uint8Array {
  const [first = noBody, ...others] = parts;
  return others.length === 0 ? first : Buffer.concat(parts);
}

/** The request's flight ends, and what its calls hold is let go, when the answer has left. */
function send(
  mcp: McpComponents,
  request: Request,
  outcomes: readonly Outcome[],
  parts: AnswerParts | null,
): void {
  const { exchange, principal, ticket } = request;
  const body = parts === null ? noBody : joined(parts);
  const hold =
    body.length <= limits.unheldBytesMax ? null : mcp.held.holdAnswer(exchange, principal.share, body.length);
  const sent = {
    release() {
      hold?.release();
      for (const each of outcomes) each.sent?.release();
      ticket.release();
    },
  };
  if (hold === null && body.length > limits.unheldBytesMax && !exchange.aborted) {
    sent.release();
    throw answersUnread();
  }
  const last = outcomes.findLast(({ headers }) => headers.length > 0)?.headers ?? ticket.headers;
  const status =
    parts === null ? 202 : Math.max(...outcomes.map(({ status: each }) => (each === 202 ? 200 : each)));
  answer(mcp, exchange, { status, headers: last, body }, sent);
}

/**
 * Refused for the rate or the requests in flight. A model is told so by the result of its call, as of every other refusal: the
 * message is small mostly, and then it is read for its id. Else the refusal is HTTP's.
 */
async function refuseBusy(mcp: McpComponents, exchange: HttpExchange, refusal: ApiError): Promise<void> {
  const { declaredBytes } = exchange;
  if (declaredBytes <= 0 || declaredBytes > limits.unheldBytesMax) throw refusal;
  const place = placeFor(mcp, exchange);
  if (place === null) throw refusal;
  try {
    const received = readMessages(new Uint8Array(await exchange.readBody(limits.unheldBytesMax)));
    const message = received.kind === 'one' ? received.message : null;
    if (
      message === null ||
      message instanceof RpcError ||
      message.id === null ||
      message.method !== 'tools/call'
    )
      throw refusal;
    const tool = toolOf(message);
    const result = errorResult(
      eraOf(message, (name) => exchange.header(name)),
      refusal,
    );
    mcp.metrics.count(tool.name, 'refused');
    answer(mcp, exchange, {
      status: 200,
      headers: retryHeaders(refusal),
      body: Buffer.concat(resultParts(message.id, result)),
    });
  } finally {
    place.leave();
  }
}

/** A place among the requests that nobody is charged for; null where too many of them are being read already. */
function placeFor({ openRequests, clientAddresses }: McpComponents, exchange: HttpExchange) {
  try {
    return openRequests.enter(clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for')));
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

function retryHeaders({ headers, retryAfter }: ApiError): HttpAnswer['headers'] {
  return retryAfter === undefined ? headers : [...headers, ['retry-after', String(retryAfter)]];
}

function fail(mcp: McpComponents, exchange: HttpExchange, error: unknown): void {
  if (error instanceof ClientGone) return mcp.metrics.answered('gone');
  if (error instanceof ApiError) {
    const body = errorJson(null, rpcErrorOf(error));
    return answer(mcp, exchange, { status: error.status, headers: retryHeaders(error), body });
  }
  if (error instanceof RpcError)
    return answer(mcp, exchange, { status: error.status, headers: [], body: errorJson(null, error) });
  mcp.logger.error('a request of /mcp failed', {
    requestId: exchange.requestId,
    error: describeError(error),
  });
  const sentence = `the server failed to answer; tell us the request id ${exchange.requestId}`;
  const body = errorJson(null, new RpcError('internalError', sentence));
  answer(mcp, exchange, { status: 500, headers: [], body });
}

function answer(
  mcp: McpComponents,
  exchange: HttpExchange,
  { status, headers, body }: HttpAnswer,
  sent?: HttpAnswer['sent'],
): void {
  mcp.metrics.answered(status);
  respond(exchange, exchange.requestId, { status, headers, body }, [], sent);
}
