/** Operations that the front does itself, those of people above all: what they do is account-operations.ts and its neighbours. */
import { ApiError } from '../../protocol/errors.ts';
import type { PersonId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { takesBody } from '../../protocol/operations.ts';
import { JsonSyntaxError, parseJson } from '../base/json.ts';
import { sendAnswer } from './answer.ts';
import { keyDigestOf } from './ask-actor.ts';
import { checkRequest, notBuilt } from './check-request.ts';
import { onlyOnce } from './idempotency.ts';
import type { HeaderList } from './rate-limit-headers.ts';
import type { Admitted, OperationRequest } from './request.ts';
import type { Answer } from './response.ts';
import { originRefusal } from './same-origin.ts';
import { receiveOpenBody } from './take-body.ts';

/** Does an admitted one, once only where it brings an `Idempotency-Key`. */
export async function serveHere(request: Admitted): Promise<void> {
  const { front, operation, principal, body } = request;
  // What a person does as such is remembered by their own tenant: whichever they act for, the key means the same request.
  const tenantId = operation.auth === 'login' ? principal.homeTenantId : principal.tenantId;
  const asked = { tenantId, operation: operation.name, keyDigest: keyDigestOf(request), body };
  sendAnswer(request, await onlyOnce(front.memory, asked, (plannedId) => run(request, plannedId)));
}

/** Does one that takes no credentials: whatever can be refused before the body is read is. */
export async function serveOpen(request: OperationRequest): Promise<void> {
  const { front, exchange, operation } = request;
  if (!takesBody(operation, exchange.method)) {
    checkRequest(request);
    return serveAnybody(request);
  }
  const { baseUrl } = front;
  const foreign = operation.sameOrigin
    ? originRefusal(exchange.header('origin'), { host: exchange.header('host'), baseUrl })
    : null;
  if (foreign !== null) throw foreign;
  const address = clientAddressOf(request);
  // One provider tells of all tenants, from few addresses: it has places of its own, and no number a minute.
  const isSigned = operation.request === 'signed';
  if (!isSigned) front.attempts.openRequest(address);
  const place = isSigned ? front.openRequests.enterSigned() : front.openRequests.enter(address);
  try {
    checkRequest(request);
    await receiveOpenBody(request);
    await serveAnybody(request);
  } finally {
    place.leave();
  }
}

async function serveAnybody(request: OperationRequest): Promise<void> {
  const { front, exchange, operation } = request;
  if (operation.effect.does === 'write') exchange.mayTakeEffect();
  sendAnswer(request, await run(request, front.memory.newId()));
}

const noHeaders: HeaderList = [];

/** `plannedId`: the id of what is made, the same whenever this request is repeated with its `Idempotency-Key`. */
async function run(request: OperationRequest, plannedId: number): Promise<Answer> {
  const { front, operation, parameters, exchange, principal } = request;
  const { success: status, name } = operation;
  if (name === 'healthz')
    return { status, headers: noHeaders, body: 'ok', contentType: 'text/plain; charset=utf-8' };
  if (name === 'openapi') return { status, headers: noHeaders, body: front.openApi() };
  const work = front.operations.get(name);
  if (work === undefined) throw notBuilt(operation, exchange.method);
  const body = parseBody(request);
  const clientAddress = clientAddressOf(request);
  const tenant = exchange.header('x-tenant');
  const isAbout = (personId: PersonId) => {
    request.personId = personId;
  };
  const signature = operation.request === 'signed' ? exchange.header('stripe-signature') : undefined;
  const value = await work({
    principal,
    body,
    signature,
    parameters,
    plannedId,
    clientAddress,
    tenant,
    isAbout,
  });
  return { status, headers: noHeaders, body: operation.answer === null ? '' : JSON.stringify(value) };
}

/** The body as parsed JSON; undefined where the operation takes none. Throws JsonSyntaxError. */
function parseBody(request: OperationRequest): unknown {
  if (request.body === null) return undefined;
  if (request.operation.request === 'signed') return request.body;
  if (request.operation.auth === 'none') return parseOpenBody(request, request.body);
  return parseJson(request.body, { depthMax: limits.jsonDepthMax, valuesMax: limits.jsonValuesMax });
}

/** The body of an operation that takes no credentials: it is read no further than its few fields reach. */
function parseOpenBody(request: OperationRequest, body: Uint8Array): unknown {
  const valuesMax = limits.openBodyValuesMax;
  try {
    const parsed = parseJson(body, { depthMax: limits.jsonDepthMax, valuesMax });
    const email = typeof parsed === 'object' && parsed !== null && 'email' in parsed ? parsed.email : null;
    if (typeof email === 'string') request.email = email;
    return parsed;
  } catch (error) {
    if (!(error instanceof JsonSyntaxError) || error.kind !== 'size') throw error;
    const sentence = `the body has more than ${valuesMax} values: send the fields of this operation alone`;
    throw new ApiError(request.operation.inputCode, sentence);
  }
}

/** The client's address as text; behind trusted proxies it is whom they name. */
export function clientAddressOf({ front, exchange }: OperationRequest): string {
  return front.clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for'));
}
