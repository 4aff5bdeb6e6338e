import { plainType } from './http-guards.ts';
import type { HttpExchange } from './http-types.ts';

/** An answer, whoever made it → head and bytes. */
export interface Answer {
  readonly status: number;
  /** Beside the content type and those that every answer has. */
  readonly headers: HeaderList;
  readonly body: Uint8Array | string;
  readonly contentType?: string;
}

export type HeaderList = readonly (readonly [string, string])[];

const jsonType = 'application/json';
const noHeaders: HeaderList = [];

export function respond(
  exchange: HttpExchange,
  requestId: string,
  answer: Answer,
  rateLimit: HeaderList = noHeaders,
): void {
  const headers: (readonly [string, string])[] = [['x-request-id', requestId]];
  // 204 has no body, so it has no type either.
  if (answer.status !== 204) headers.push(['content-type', answer.contentType ?? jsonType], ...plainType);
  for (const header of rateLimit) headers.push(header);
  for (const header of answer.headers) headers.push(header);
  exchange.respond({ status: answer.status, headers, body: answer.body });
}
