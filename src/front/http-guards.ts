/**
 * The checks of a request head that both engines share, pure. uWebSockets accepts two different Content-Length headers
 * and takes any Transfer-Encoding for chunked; each is a way to smuggle a second request past a proxy in front of us.
 * node:http refuses most of this itself; it passes here as well, so that both engines give one answer.
 *
 * A head travels as a flat list: name, value, name, value; names in lower case, in the order sent.
 */
import { SocketAddress } from 'node:net';
import { ApiError } from '../../protocol/errors.ts';
import { assert } from '../base/assert.ts';
import type { HttpAnswer } from './http-types.ts';

/** What `checkHead` returns in place of a length where the body comes in chunks. */
export const CHUNKED_BODY = -1;

/** Fifteen digits stay below 2^53, so no length is ever rounded; and no body of a petabyte is welcome. */
const declaredLength = /^[0-9]{1,15}$/;

/** The bytes of body that the head declares (0 without a body) or `CHUNKED_BODY`. Throws ApiError (400). */
export function checkHead(headers: readonly string[]): number {
  let hosts = 0;
  let length: string | undefined;
  let coding: string | undefined;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at];
    if (name === 'host') hosts += 1;
    else if (name === 'content-length') {
      if (length !== undefined) throw refused('more than one Content-Length header');
      length = headers[at + 1];
    } else if (name === 'transfer-encoding') {
      if (coding !== undefined) throw refused('more than one Transfer-Encoding header');
      coding = headers[at + 1];
    }
  }
  if (hosts !== 1) throw refused(hosts === 0 ? 'no Host header' : 'more than one Host header');
  if (length === undefined && coding === undefined) return 0;
  return bodyLength(length, coding);
}

function bodyLength(length: string | undefined, coding: string | undefined): number {
  if (coding !== undefined) {
    if (length !== undefined) throw refused('both Content-Length and Transfer-Encoding');
    if (coding.toLowerCase() !== 'chunked') throw refused('a Transfer-Encoding other than chunked');
    return CHUNKED_BODY;
  }
  if (length === undefined || !declaredLength.test(length))
    throw refused('a Content-Length that is no number');
  return Number(length);
}

function refused(what: string): ApiError {
  return new ApiError('bad_request', `the request head has ${what}`);
}

/** The values of equal names joined with ", ", or undefined. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== name) continue;
    const value = headers[at + 1] ?? '';
    found = found === undefined ? value : `${found}, ${value}`;
  }
  return found;
}

const notHeaderText = /[^\t\x20-\x7e]/;

/** Asserts that a header's value has no line break: it would let a caller's text write headers, or a whole second answer. */
export function assertHeaderText(value: string): void {
  assert(!notHeaderText.test(value), () => 'a header of an answer holds a character that no header may hold');
}

/** The header of every answer with a body: it is what its type says, whatever it looks like to a browser. */
export const plainType: HttpAnswer['headers'] = [['x-content-type-options', 'nosniff']];

/** What the engines answer on their own account. The connection ends: what follows on it can't be trusted. */
export function errorAnswer(error: ApiError, requestId: string): HttpAnswer {
  const retry: [string, string][] =
    error.retryAfter === undefined ? [] : [['retry-after', String(error.retryAfter)]];
  return {
    status: error.status,
    headers: [
      ['x-request-id', requestId],
      ['content-type', 'application/json'],
      ...plainType,
      ...error.headers,
      ...retry,
    ],
    body: error.toBody(),
    close: true,
  };
}

/** Answers that have no body whatever was given: also no length is announced with them. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** What the door answers when the handler throws. */
export function brokenHandler(): ApiError {
  return new ApiError('internal', 'the server failed to answer: its log says why');
}

/** What the door answers when the handler is silent. */
export function silentHandler(mayTakeEffect: boolean): ApiError {
  if (mayTakeEffect) {
    const sentence = 'the request took longer than the server allows: it may or may not be applied';
    return new ApiError('write_unknown', sentence, { retryAfter: 1 });
  }
  return new ApiError('unavailable', 'the request took longer than the server allows: try again', {
    retryAfter: 1,
  });
}

export function lateBody(): ApiError {
  return new ApiError('bad_request', 'the request body did not arrive in time', { status: 408 });
}

/** What a body fails with that came so slowly that others needed its memory. */
export function evictedBody(): ApiError {
  return new ApiError(
    'bad_request',
    'the request body came slowly while others waited for the memory that it takes; send it faster, or in smaller requests',
    { status: 408 },
  );
}

/** Four bytes, or sixteen of which the mapped form of four is written as four; empty for anything else. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.byteLength === 4) return bytes.join('.');
  if (bytes.byteLength !== 16) return '';
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2)
    groups.push((((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16));
  return plainAddress(new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address);
}

/** An IPv4 address that came over an IPv6 socket, without its prefix. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
