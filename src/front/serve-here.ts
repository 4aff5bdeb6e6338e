import { ApiError } from '../../protocol/errors.ts';
import type { PersonId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { takesBody } from '../../protocol/operations.ts';
import { parseJson } from '../base/json.ts';
import { sendAnswer } from './answer.ts';
import { keyDigestOf } from './ask-actor.ts';
import { checkRequest, notBuilt } from './check-request.ts';
import { onlyOnce } from './idempotency.ts';
import type { HeaderList } from './rate-limit-headers.ts';
import type { Admitted, OperationRequest } from './request.ts';
import type { Answer } from './response.ts';
import { originRefusal } from './same-origin.ts';
import { receiveOpenBody } from './take-body.ts';

/** Operations that the front does itself, those of people above all: what they do is account-operations.ts and its neighbours. */

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
  front.attempts.openRequest(address);
  const place = front.openRequests.enter(address);
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
  const value = await work({ principal, body, parameters, plannedId, clientAddress, tenant, isAbout });
  return { status, headers: noHeaders, body: operation.answer === null ? '' : JSON.stringify(value) };
}

/** The body as parsed JSON; undefined where the operation takes none. Throws JsonSyntaxError. */
function parseBody(request: OperationRequest): unknown {
  if (request.body === null) return undefined;
  const parsed = parseJson(request.body, {
    depthMax: limits.jsonDepthMax,
    valuesMax: limits.jsonValuesMax,
  });
  const { auth, inputCode } = request.operation;
  if (auth !== 'none' || typeof parsed !== 'object' || parsed === null) return parsed;
  const fields = Object.keys(parsed).length;
  if (fields > limits.openBodyFieldsMax)
    throw new ApiError(inputCode, `the body has ${fields} fields: send those of this operation alone`);
  const { email } = parsed as { readonly email?: unknown };
  if (typeof email === 'string') request.email = email;
  return parsed;
}

/** The client's address as text; behind trusted proxies it is whom they name. */
export function clientAddressOf({ front, exchange }: OperationRequest): string {
  return front.clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for'));
}
