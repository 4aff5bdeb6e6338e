import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Tag } from '../../protocol/operations/operation-row.ts';
import { DataError } from '../base/assert.ts';
import type { Hold } from '../base/byte-gate.ts';
import { JsonSyntaxError } from '../base/json-scanner.ts';
import { describeError } from '../base/log.ts';
import { StoreError } from '../object-store/object-store.ts';
import type { AdmissionTicket } from './admission.ts';
import { answersUnread } from './held-bytes.ts';
import { ClientGone, type HttpAnswer } from './http-types.ts';
import type { HeaderList } from './rate-limit-headers.ts';
import type { RequestInHand } from './request.ts';
import { type Answer, respond } from './response.ts';

/**
 * Gives a request its answer. Every answer leaves here, refusals too: the body's memory is free from now on, the answer's is held and
 * the request is in flight until the last byte has left.
 */
export function sendAnswer(request: RequestInHand, given: Answer): void {
  dropBody(request);
  const { front, exchange, principal, ticket } = request;
  const bytes = typeof given.body === 'string' ? 0 : given.body.byteLength;
  let sent: HttpAnswer['sent'] = ticket ?? undefined;
  if (bytes > limits.unheldBytesMax && principal !== null && !exchange.aborted) {
    const hold = front.held.holdAnswer(exchange, principal.share, bytes);
    if (hold === null) return fail(request, answersUnread());
    sent = released(hold, ticket);
  }
  front.observer.answered(request, given);
  respond(exchange, request.id, given, standingHeaders(request), sent);
}

/** Answers with what an error says; nothing where the client has gone. Errors that nobody meant are logged and are 500. */
export function fail(request: RequestInHand, error: unknown): void {
  dropBody(request);
  // A refusal is over when it is said, however long a client that is still sending takes to hear it.
  request.ticket?.release();
  if (error instanceof ClientGone) return request.front.observer.gone(request);
  const refusal = apiErrorOf(request, error);
  const headers = [...refusal.headers];
  if (refusal.retryAfter !== undefined) headers.push(['retry-after', String(refusal.retryAfter)]);
  sendAnswer(request, { status: refusal.status, headers, body: refusal.toBody() });
}

function dropBody(request: RequestInHand): void {
  request.bodyHold?.release();
  request.bodyHold = null;
}

function released(hold: Hold, ticket: AdmissionTicket | null): HttpAnswer['sent'] {
  return {
    release() {
      hold.release();
      ticket?.release();
    },
  };
}

const noHeaders: HeaderList = [];
/** Answers with keys, tokens, persons and bills are nobody's to keep, whoever makes them. */
const privateHeaders: HeaderList = [['cache-control', 'no-store']];
const privateTags: ReadonlySet<Tag> = new Set(['accounts', 'keys', 'tenants', 'billing']);

/** The headers that all answers of an operation have, refusals too. None of the private operations shows rate limits. */
function standingHeaders({ operation, ticket }: RequestInHand): HeaderList {
  if (operation === null) return noHeaders;
  if (privateTags.has(operation.tag)) return privateHeaders;
  return operation.rateLimitHeaders && ticket !== null ? ticket.headers : noHeaders;
}

function apiErrorOf({ front, id }: RequestInHand, error: unknown): ApiError {
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
