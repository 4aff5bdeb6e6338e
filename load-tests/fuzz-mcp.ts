import { errorKinds } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type Tool, tools } from '../protocol/mcp-tools.ts';
import {
  type Answer,
  type Credential,
  credentials,
  headersOf,
  rightValue,
  type Schema,
  type SentRequest,
} from './fuzz-requests.ts';
import {
  chance,
  type Draw,
  damaged,
  damagedText,
  jsonText,
  naughtyStrings,
  oddString,
  pick,
} from './fuzz-values.ts';

/**
 * Messages for `/mcp` of both eras, right, nearly right and wrong: envelopes, `_meta`, headers, batches, and arguments that are made
 * from each tool's own `inputSchema`. And what is wrong with an answer.
 */
export interface McpFuzzRequest extends SentRequest {
  readonly kind: 'mcp';
  /** The tool that it calls rightly named, if it does. */
  readonly tool: Tool | null;
}

const definitions = [...tools.values()].map((tool) => ({
  tool,
  schema: (JSON.parse(tool.definition) as { readonly inputSchema: Schema }).inputSchema,
}));
/** What is deleted can't be asked about: one in twenty of them is sent. */
const rareTools: ReadonlySet<string> = new Set(['delete_namespace', 'create_namespace']);
const noComponents = { paths: {}, components: { schemas: {} } };
const metaKey = 'io.modelcontextprotocol';
const versions = [
  '2026-07-28',
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2099-01-01',
  'x',
  '',
];
const otherMethods = [
  'tools/list',
  'tools/list',
  'initialize',
  'server/discover',
  'ping',
  'notifications/initialized',
  'notifications/cancelled',
  'resources/list',
  'prompts/get',
  'logging/setLevel',
  'completion/complete',
  'subscriptions/listen',
  'Tools/Call',
  '',
];

interface Message {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly tool: Tool | null;
}

export function mcpRequest(draw: Draw, number: number): McpFuzzRequest {
  const message = messageOf(draw);
  const isModern = chance(draw, 0.5);
  const modern = isModern ? modernParts(draw, message) : null;
  const params = modern === null ? message.params : { ...message.params, _meta: modern.meta };
  const whole = envelopeOf(draw, message.method, params);
  const way = draw();
  let value: unknown = way > 0.7 ? damaged(draw, whole) : whole;
  const isBatch = chance(draw, 0.05);
  if (isBatch) value = [value, ...Array.from({ length: 3 }, () => plainMessage(draw))];
  const text = jsonText(value);
  return {
    kind: 'mcp',
    number,
    tool: isBatch || way > 0.7 ? null : message.tool,
    method: chance(draw, 0.97) ? 'POST' : pick(draw, ['GET', 'DELETE', 'OPTIONS', 'PUT', 'HEAD']),
    path: `/mcp${queryOf(draw)}`,
    headers: { ...headersOf(draw, 'application/json'), ...modern?.headers, ...oddHeaders(draw) },
    body: way > 0.96 ? damagedText(draw, text) : Buffer.from(text),
    isChunked: chance(draw, 0.1),
    credential: chance(draw, 0.6) ? 'admin' : pick(draw, mcpCredentials),
  };
}

const mcpCredentials: readonly Credential[] = [
  ...credentials,
  'oauth',
  'oauth',
  'oauth read',
  'oauth limited',
];

function messageOf(draw: Draw): Message {
  if (chance(draw, 0.22)) {
    const method = chance(draw, 0.85) ? pick(draw, otherMethods) : String(oddString(draw));
    const params: Record<string, unknown> =
      method === 'initialize'
        ? { protocolVersion: pick(draw, versions), capabilities: {}, clientInfo: { name: 'f', version: '1' } }
        : chance(draw, 0.3)
          ? { cursor: pick(draw, ['', 'x', null]) }
          : {};
    return { method, params, tool: null };
  }
  let { tool, schema } = pick(draw, definitions);
  if (rareTools.has(tool.name) && !chance(draw, 0.05)) ({ tool, schema } = pick(draw, definitions));
  let args: unknown = rightValue(draw, noComponents, schema, '');
  const way = draw();
  if (way > 0.5) args = damaged(draw, args);
  if (way > 0.8) args = damaged(draw, args);
  const name = chance(draw, 0.97) ? tool.name : oddString(draw);
  const isNamed = name === tool.name && typeof args === 'object' && args !== null && !Array.isArray(args);
  return { method: 'tools/call', params: { name, arguments: args }, tool: isNamed ? tool : null };
}

function plainMessage(draw: Draw): unknown {
  const { method, params } = messageOf(draw);
  return envelopeOf(draw, method, params);
}

function envelopeOf(draw: Draw, method: string, params: unknown): Record<string, unknown> {
  const id = chance(draw, 0.8)
    ? 7
    : pick<unknown>(draw, ['a', -1, 0.5, null, {}, '', 2 ** 60, naughtyStrings[5]]);
  const isNotification = method.startsWith('notifications/') || chance(draw, 0.02);
  return { jsonrpc: '2.0', ...(isNotification ? {} : { id }), method, params };
}

/** The envelope of the modern era, mostly whole and agreeing with the message. */
function modernParts(draw: Draw, { method, params }: Message) {
  const version = chance(draw, 0.9) ? '2026-07-28' : pick(draw, versions);
  const whole = {
    [`${metaKey}/protocolVersion`]: version,
    [`${metaKey}/clientCapabilities`]: {},
    [`${metaKey}/clientInfo`]: { name: 'fuzz', version: '1' },
  };
  const meta: unknown = chance(draw, 0.85) ? whole : damaged(draw, whole);
  const headers: Record<string, string> = {};
  if (chance(draw, 0.95))
    headers['mcp-protocol-version'] = chance(draw, 0.95) ? version : pick(draw, versions);
  if (chance(draw, 0.95)) headers['mcp-method'] = headerText(chance(draw, 0.95) ? method : 'ping');
  const { name } = params as { readonly name?: unknown };
  if (typeof name === 'string' && chance(draw, 0.95)) headers['mcp-name'] = nameHeader(draw, name);
  return { meta, headers };
}

function nameHeader(draw: Draw, name: string): string {
  const isPlain = /^[\x21-\x7e]+$/.test(name) && chance(draw, 0.8);
  if (isPlain) return name;
  const encoded = Buffer.from(name).toString('base64');
  return chance(draw, 0.9) ? `=?base64?${encoded.slice(0, 4_000)}?=` : '=?base64?&?=';
}

/** Node's client sends nothing else in a header. */
const headerText = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 4_000);

function oddHeaders(draw: Draw): Record<string, string> {
  const headers: Record<string, string> = {};
  if (chance(draw, 0.03)) headers['mcp-protocol-version'] = pick(draw, versions);
  if (chance(draw, 0.02)) headers['mcp-session-id'] = pick(draw, ['x', '']);
  if (chance(draw, 0.02))
    headers.host = pick(draw, ['evil.example', 'localhost', '127.0.0.1:1', ':', '[::1]']);
  if (chance(draw, 0.02)) headers['last-event-id'] = '5';
  return headers;
}

function queryOf(draw: Draw): string {
  if (!chance(draw, 0.1)) return '';
  return pick(draw, [
    '?read_only=1',
    '?read_only=2',
    '?namespaces=fuzz-1,fuzz-2*',
    '?namespaces=',
    '?namespaces=A',
    `?namespaces=${'a,'.repeat(200)}`,
    '?read_only=1&read_only=0',
    '?x=1',
    '?%ff',
    '?=',
    '?',
  ]);
}

const statuses: ReadonlySet<number> = new Set([200, 202, 400, 401, 403, 404, 405, 413, 415, 429]);
const rpcCodes: ReadonlySet<unknown> = new Set([-32700, -32600, -32601, -32602, -32020, -32022]);

/** What is wrong with an answer of `/mcp`, or null. */
export function problemOfMcp(
  { method, tool }: McpFuzzRequest,
  { status, type, body, retryAfter }: Answer,
): string | null {
  // Changes of an account can overtake whoever looks it up: they are told to try again.
  const isBusy = status === 503 && retryAfter !== undefined && body.includes('"code":"unavailable"');
  if (isBusy) return null;
  if (!statuses.has(status)) return `answered ${status}`;
  if (method === 'HEAD' || status === 202) return body === '' ? null : 'a body where there is none';
  if (type !== 'application/json') return `an answer of type "${type}"`;
  const answer = parsedJson(body);
  if (answer === undefined) return 'an answer that is no JSON';
  if (Array.isArray(answer)) return answer.map((each) => problemOfMessage(each, null)).find(Boolean) ?? null;
  return problemOfMessage(answer, status === 200 ? tool : null);
}

interface RpcAnswer {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly error?: { readonly code: unknown; readonly message: unknown };
  readonly result?: {
    readonly isError?: boolean;
    readonly content?: readonly { readonly text: string }[];
    readonly structuredContent?: unknown;
  };
}

function problemOfMessage(answer: RpcAnswer | null, tool: Tool | null): string | null {
  if (answer?.jsonrpc !== '2.0' || !Object.hasOwn(answer, 'id')) return 'an answer without jsonrpc or id';
  const { error, result } = answer;
  if ((error === undefined) === (result === undefined)) return 'an answer with result and error, or neither';
  if (error !== undefined) {
    if (!rpcCodes.has(error.code)) return `an error of the code ${String(error.code)}`;
    const isSentence = typeof error.message === 'string' && /^\S.{5,4000}$/s.test(error.message);
    return isSentence ? null : 'an error without a sentence';
  }
  return result?.structuredContent === undefined ? null : problemOfCall(result, tool);
}

function problemOfCall(result: NonNullable<RpcAnswer['result']>, tool: Tool | null): string | null {
  const { structuredContent, content, isError = false } = result;
  const [text] = content ?? [];
  if (JSON.stringify(parsedJson(text?.text ?? '')) !== JSON.stringify(structuredContent))
    return 'a text that is not the structured content';
  if (isError) {
    const { error, code } = structuredContent as { readonly error?: unknown; readonly code?: string };
    if (typeof error !== 'string' || error === '') return 'a refused call without a sentence';
    if (code === undefined || !Object.hasOwn(errorKinds, code)) return `a refused call of the code ${code}`;
    return code === 'internal' ? 'a call that failed inside' : null;
  }
  if ((text?.text.length ?? 0) > limits.toolAnswerBytesMax) return 'an answer that is over any budget';
  const answer = tool?.operation.answer;
  if (tool === null || answer === null || answer === undefined || typeof answer === 'string') return null;
  const checked = answer.safeParse(structuredContent);
  return checked.success ? null : `an answer that is not of its schema: ${checked.error.message}`;
}

/** The name of the tool that an answer is a success of, or null. */
export function succeededTool({ tool }: McpFuzzRequest, { status, body }: Answer): string | null {
  if (tool === null || status !== 200) return null;
  const { result } = (parsedJson(body) ?? {}) as RpcAnswer;
  return result?.structuredContent !== undefined && result.isError !== true ? tool.name : null;
}

function parsedJson(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
