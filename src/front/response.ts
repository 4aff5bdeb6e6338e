/** An answer, whoever made it → head and bytes. */
import { successorOf } from '../../protocol/routing.ts';
import { plainType } from './http-guards.ts';
import type { HttpAnswer, HttpExchange } from './http-types.ts';
import type { HeaderList } from './rate-limit-headers.ts';

export interface Answer {
  readonly status: number;
  /** The headers beside the content type and those that every answer has. */
  readonly headers: HeaderList;
  readonly body: Uint8Array | string;
  readonly contentType?: string;
}

const jsonType = 'application/json';
const noHeaders: HeaderList = [];
/** When `/v1` took their place, as RFC 9745 writes it: 2026-01-01. */
const oldPathsDeprecated = '@1767225600';

export function respond(
  exchange: HttpExchange,
  requestId: string,
  answer: Answer,
  rateLimit: HeaderList = noHeaders,
  sent?: HttpAnswer['sent'],
): void {
  const headers: (readonly [string, string])[] = [['x-request-id', requestId]];
  // 204 has no body, so it has no type either.
  if (answer.status !== 204) headers.push(['content-type', answer.contentType ?? jsonType], ...plainType);
  const successor = successorOf(exchange.path);
  if (successor !== null) {
    headers.push(['deprecation', oldPathsDeprecated], ['link', `<${successor}>; rel="successor-version"`]);
  }
  for (const header of rateLimit) headers.push(header);
  for (const header of answer.headers) headers.push(header);
  const { status, body } = answer;
  exchange.respond(sent === undefined ? { status, headers, body } : { status, headers, body, sent });
}
