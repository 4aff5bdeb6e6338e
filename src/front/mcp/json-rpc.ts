/** JSON-RPC 2.0 as MCP uses it: messages out of bytes, and answers as bytes. Ids go back as they were written. */
import type { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { JsonSyntaxError } from '../../base/json.ts';
import { type Member, type Members, readMembers, stringOf } from './json-members.ts';

export interface RpcMessage {
  /** A string or a number, as JSON; null for a notification, which nobody answers. */
  readonly id: string | null;
  readonly method: string;
  readonly params: Members | null;
}

/** JSON-RPC's own codes, and those of MCP. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** A message that is answered with a JSON-RPC error. */
export class RpcError extends Error {
  override name = 'RpcError';
  readonly code: number;
  /** The status of the HTTP answer, where the message came alone. */
  readonly status: number;
  readonly data: unknown;

  constructor(kind: keyof typeof rpcCodes, message: string, more: { status?: number; data?: unknown } = {}) {
    super(message);
    this.code = rpcCodes[kind];
    this.status = more.status ?? 400;
    this.data = more.data;
  }
}

/** What the front refuses before it knows the message: JSON-RPC's shape around the sentence and code of REST. */
export function rpcErrorOf(error: ApiError): RpcError {
  const { message, code, fields, retryAfter, status } = error;
  const kind = status >= 500 ? 'internalError' : 'invalidRequest';
  const data = {
    error: message,
    code,
    ...(fields && { fields }),
    ...(retryAfter && { retry_after: retryAfter }),
  };
  return new RpcError(kind, message, { status, data });
}

export type Received =
  | { readonly kind: 'one'; readonly message: RpcMessage | RpcError }
  | { readonly kind: 'batch'; readonly messages: readonly (RpcMessage | RpcError)[] };

/** The members of a message that are looked into; the others are kept as bytes. */
const messageShape = { params: { arguments: {}, _meta: {} } };

/** Reads a body. A message that is not one becomes the error that it is answered with. Throws RpcError where there is none at all. */
export function readMessages(bytes: Uint8Array): Received {
  try {
    const { isArray, elements } = readMembers(bytes, messageShape, limits.mcpBatchMax);
    if (!isArray) return { kind: 'one', message: messageOf(elements[0]) };
    if (elements.length === 0) throw new RpcError('invalidRequest', 'the batch is empty: send one message');
    return { kind: 'batch', messages: elements.map(messageOf) };
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    if (error.kind === 'syntax') throw new RpcError('parseError', `the body is not JSON: ${error.message}`);
    throw new RpcError('invalidRequest', `the body is too much: ${error.message}; send less at once`);
  }
}

function messageOf(element: Member | undefined): RpcMessage | RpcError {
  const members = element?.members ?? null;
  if (members === null) return invalid('a message must be a JSON object');
  if (stringOf(members.get('jsonrpc')) !== '2.0') return invalid('"jsonrpc" must be "2.0"');
  const method = stringOf(members.get('method'));
  if (method === null)
    return invalid('"method" must be a string: this server takes requests and notifications');
  const id = members.get('id')?.json.toString() ?? null;
  if (id !== null && !/^["\-0-9]/.test(id)) return invalid('"id" must be a string or a number');
  const params = members.get('params');
  if (params !== undefined && params.members === null) return invalid('"params" must be a JSON object');
  return { id, method, params: params?.members ?? null };
}

function invalid(sentence: string): RpcError {
  return new RpcError('invalidRequest', `this is no JSON-RPC request: ${sentence}`);
}

/** An answer as pieces of JSON in UTF-8, one behind the other: what is long in it is copied once, into what is sent. */
export type AnswerParts = readonly Uint8Array[];

const closing = Buffer.from('}');

/** The answer of a message that was done; `result` is JSON, in parts. */
export function resultParts(id: string, result: AnswerParts): AnswerParts {
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), ...result, closing];
}

export function errorParts(id: string | null, error: RpcError): AnswerParts {
  return [Buffer.from(errorJson(id, error))];
}

export function partsBytes(parts: AnswerParts): number {
  return parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

const opening = Buffer.from('[');
const between = Buffer.from(',');
const end = Buffer.from(']');

/** The answers of a batch as one. */
export function batchParts(answers: readonly AnswerParts[]): AnswerParts {
  return [...answers.flatMap((answer, at) => [at === 0 ? opening : between, ...answer]), end];
}

export function errorJson(id: string | null, { code, message, data }: RpcError): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, data })}}`;
}
