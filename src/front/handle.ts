import { ApiError } from '../../protocol/errors.ts';
import { takesBody } from '../../protocol/operations.ts';
import { findOperation, type Route } from '../../protocol/routing.ts';
import { credentialOf } from '../auth/authenticate.ts';
import type { Principal } from '../auth/principal.ts';
import { admit, admitAgain } from './admit.ts';
import { fail, sendAnswer } from './answer.ts';
import { askActor, askForImport } from './ask-actor.ts';
import { pageMethods } from './console/pages.ts';
import type { FrontComponents } from './front-components.ts';
import type { HttpAnswer, HttpExchange, HttpHandler } from './http-types.ts';
import type { OperationCall } from './operation-call.ts';
import {
  type Admitted,
  type OperationRequest,
  type RequestInHand,
  requestFor,
  requestForCall,
  requestForNothing,
} from './request.ts';
import type { Answer } from './response.ts';
import { clientAddressOf, serveHere, serveOpen } from './serve-here.ts';
import { receiveBody, takeBody } from './take-body.ts';

/**
 * The request's story, as a list:
 *
 * 1. route: `createHandler` finds the operation (protocol/routing.ts), or a page;
 * 2. authenticate: `authenticate` finds the principal, at once where its credential is known;
 * 3. admit, authorise, check: `admit` (admit.ts); here operation calls enter too, which have a principal already (`runOperation`);
 * 4. body: `enter` has it read (take-body.ts) where the operation takes one;
 * 5. hand over: `serve` gives it to its actor (ask-actor.ts), or has the front do it (serve-here.ts);
 * 6. answer: everything leaves by `sendAnswer` or `fail` of answer.ts.
 *
 * A read by a known key, without a body, goes from the first line to the router in one stretch, without a promise: its errors are
 * caught in `createHandler`. Whatever waits goes by `settle`, which catches the errors of promises. A refused request never reaches an
 * actor.
 */
export function createHandler(front: FrontComponents): HttpHandler {
  return (exchange) => {
    const beganMs = front.observer.now();
    let request: OperationRequest | null = null;
    try {
      const route = findOperation(exchange.method, exchange.path);
      if (route.kind !== 'found')
        return sendAnswer(requestForNothing(front, exchange, beganMs), pageAt(front, exchange, route));
      request = requestFor(front, exchange, route, beganMs);
      authenticate(request);
    } catch (error) {
      fail(request ?? requestForNothing(front, exchange, beganMs), error);
    }
  };
}

/**
 * Runs one operation for a caller who is authenticated, inside another request: what an MCP tool call does. Resolves with the
 * whole REST answer, refusals too (429, 403, 422 …), and never rejects: status, the headers (rate limits and `retry-after` among
 * them), the bytes. The operation is admitted, authorised, metered, observed and audited as its REST request is.
 *
 * `sent` of the answer must be released when nothing of it is in our memory any more: pass it on as `sent` of the outer request's
 * answer, or release it. Until then the operation counts as in flight, and its bytes as held.
 */
export function runOperation(front: FrontComponents, call: OperationCall): Promise<HttpAnswer> {
  return new Promise((resolve) => {
    const request = requestForCall(front, call, resolve);
    try {
      enter(request, call.principal);
    } catch (error) {
      fail(request, error);
    }
  });
}

function authenticate(request: OperationRequest): void {
  const { front, exchange, operation } = request;
  const { authenticator } = front;
  if (operation.auth === 'none')
    return settle(
      request,
      front.admission.accompany(() => serveOpen(request)),
    );
  const credential = credentialOf((name) => exchange.header(name));
  const known = authenticator.peek(credential);
  if (known !== undefined) return enter(request, known);
  const guard = front.attempts.lookUpsFrom(clientAddressOf(request));
  const looked = front.credentialInTime(authenticator.authenticate(credential, guard));
  settle(
    request,
    looked.then((principal) => enter(request, principal)),
  );
}

/** Begins the work of a request whose caller is known. REST's requests and those within others all enter here. */
function enter(request: OperationRequest, principal: Principal): void {
  const admitted = admit(request, principal);
  if (admitted instanceof ApiError) return fail(request, admitted);
  const { operation, exchange, given } = admitted;
  if (operation.request === 'file') return settle(admitted, askForImport(admitted));
  if (!takesBody(operation, exchange.method)) return serve(admitted);
  if (given === null) return settle(admitted, serveWithBody(admitted));
  takeBody(admitted, given);
  serve(admitted);
}

async function serveWithBody(request: Admitted): Promise<void> {
  await receiveBody(request);
  serve(request);
}

function serve(request: Admitted): void {
  const { operation, exchange } = request;
  if (operation.effect.does === 'write') exchange.mayTakeEffect();
  if (operation.serves === 'front') return settle(request, serveHere(request));
  if (operation.needsFirst !== null) return settle(request, serveAfter(request, operation.needsFirst));
  askActor(request);
}

async function serveAfter(request: Admitted, need: 'caller-address' | 'usage-told'): Promise<void> {
  const { front, principal } = request;
  if (need === 'usage-told') await front.settled(front.metering.meter.flush(principal.tenantId));
  else {
    // Rare enough to look it up each time. Meanwhile the person's logins may have ended: no key is made that outlives them.
    if (principal.personId !== null) request.callerAddress = await front.emailOf(principal.personId);
    await admitAgain(request);
  }
  askActor(request);
}

/** Answers with the error of work that was waited for, where it ends with one. */
function settle(request: RequestInHand, work: Promise<void>): void {
  work.catch((error) => fail(request, error));
}

/** What is at a path where no operation is for this method. Throws 404 and 405. */
function pageAt(
  front: FrontComponents,
  exchange: HttpExchange,
  route: Exclude<Route, { kind: 'found' }>,
): Answer {
  if (route.kind === 'wrong-method') throw wrongMethod(exchange, route.allow);
  const page = front.pages(exchange);
  if (page === null) throw nothingThere();
  if (page === 'wrong-method') throw wrongMethod(exchange, pageMethods);
  return page;
}

function wrongMethod(exchange: HttpExchange, allow: string): ApiError {
  const headers = [['Allow', allow]] as const;
  return new ApiError('bad_request', `${exchange.method} is not allowed here; allowed: ${allow}`, {
    status: 405,
    headers,
  });
}

/**
 * The 404 for paths that are none, which does not repeat the path: a key that was pasted into it would be in the logs of
 * whoever logs errors.
 */
function nothingThere(): ApiError {
  return new ApiError('not_found', 'there is nothing at this path: GET /openapi.json lists what there is');
}
