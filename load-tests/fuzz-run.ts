import { Agent, request as httpRequest } from 'node:http';
import { errorKinds } from '../protocol/errors.ts';
import { tools } from '../protocol/mcp-tools.ts';
import { type OperationName, operations } from '../protocol/operations.ts';
import { findOperation } from '../protocol/routing.ts';
import { type FuzzAccount, makeCredentials, makeOauth } from './fuzz-accounts.ts';
import { type McpFuzzRequest, mcpRequest, problemOfMcp, succeededTool } from './fuzz-mcp.ts';
import { type OauthFuzzRequest, type OauthKnown, oauthRequest, problemOfOauth } from './fuzz-oauth.ts';
import {
  type Answer,
  type ApiDescription,
  type FuzzRequest,
  type FuzzTarget,
  fuzzDims,
  fuzzNamespaces,
  fuzzRequest,
  type SentRequest,
  targetsOf,
} from './fuzz-requests.ts';
import { seededRandom } from './seeded-random.ts';

/**
 * Sends what fuzz-requests.ts, fuzz-mcp.ts and fuzz-oauth.ts make, and holds each answer against what is promised: its status, and the
 * shape of answers and errors.
 */
export interface FuzzOptions {
  readonly url: string;
  readonly seed: number;
  readonly requests: number;
  /** The first request's number: others are made again alone. */
  readonly from?: number;
  readonly atOnce?: number;
}

export interface FuzzReport {
  readonly sent: number;
  readonly statuses: ReadonlyMap<number, number>;
  /** Operations and tools that answered a success at least once, and all that there are. */
  readonly succeeded: ReadonlySet<string>;
  readonly known: readonly string[];
  /** How many of each kind were sent. */
  readonly kinds: ReadonlyMap<string, number>;
  readonly failures: readonly FuzzFailure[];
}

export interface FuzzFailure {
  readonly number: number;
  readonly what: string;
  readonly request: string;
  readonly answer: string;
}

/** More are the same fault again. */
const failuresMax = 50;
const answerMsMax = 60_000;
/** Requests between two writes of the first documents. */
const writtenAgainEvery = 200;
/** What any operation may answer, as the description says for all of them together. */
const anywhere: ReadonlySet<number> = new Set([429]);
const elsewhere: ReadonlySet<number> = new Set([403, 404, 405, 409, 415, 501]);

type AnyRequest = FuzzRequest | McpFuzzRequest | OauthFuzzRequest;

/** What requests are made of. */
interface Makings {
  readonly description: ApiDescription;
  readonly targets: readonly FuzzTarget[];
  readonly oauth: OauthKnown;
  readonly seed: number;
}

export async function runFuzz({
  url,
  seed,
  requests,
  from = 0,
  atOnce = 8,
}: FuzzOptions): Promise<FuzzReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  try {
    const description = JSON.parse(
      (await send(agent, url, plain('GET', '/openapi.json'))).body,
    ) as ApiDescription;
    const account: FuzzAccount = { email: `fuzz-${Date.now()}@example.com`, password: 'correct horse' };
    const headersBy = await makeCredentials(url, account);
    for (const { status, body } of await writeFirstDocuments(agent, url, headersBy.admin))
      if (status !== 200) throw new Error(`a first write answered ${status} ${body}`);
    const targets = targetsOf(description);
    const makings: Makings = { description, targets, oauth: await makeOauth(url, account), seed };
    const statuses = new Map<number, number>();
    const kinds = new Map<string, number>();
    const succeeded = new Set<string>();
    const failures: FuzzFailure[] = [];
    let next = from;
    const lane = async () => {
      while (next < from + requests && failures.length < failuresMax) {
        const number = next++;
        // What earlier requests have deleted: others are to find something.
        if (number % writtenAgainEvery === 0) await writeFirstDocuments(agent, url, headersBy.admin);
        const request = madeRequest(makings, number);
        kinds.set(request.kind, (kinds.get(request.kind) ?? 0) + 1);
        const headers = { ...headersBy[request.credential], ...request.headers };
        const answer = await send(agent, url, { ...request, headers }).catch((error: Error) => error);
        if (answer instanceof Error) {
          failures.push(failureOf(request, `no answer: ${answer.message}`, ''));
          continue;
        }
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        const success = successOf(request, answer);
        if (success !== null) succeeded.add(success);
        const problem = problemOf(request, answer, makings.oauth);
        if (problem !== null) failures.push(failureOf(request, problem, answer.body));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    const known = [
      ...targets.map(({ operation }) => operation.operationId),
      ...tools.keys(),
      'authorization',
    ];
    return { sent: next - from, statuses, succeeded, known, kinds, failures };
  } finally {
    agent.destroy();
  }
}

/** So many are messages of `/mcp`, and so many are for the authorization server. */
const mcpShare = 0.3;
const oauthShare = 0.12;

function madeRequest({ description, targets, oauth, seed }: Makings, number: number): AnyRequest {
  // Neighbouring numbers must not draw alike.
  const draw = seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const kind = draw();
  if (kind < mcpShare) return mcpRequest(draw, number);
  if (kind < mcpShare + oauthShare) return oauthRequest(oauth, draw, number);
  return fuzzRequest(description, targets, { draw, number });
}

function successOf(request: AnyRequest, answer: Answer): string | null {
  switch (request.kind) {
    case 'mcp':
      return succeededTool(request, answer);
    case 'oauth':
      return answer.status === 303 && answer.location?.includes('code=') === true ? 'authorization' : null;
    case 'operation':
      return answer.status < 300 && !request.isAstray ? request.target.operation.operationId : null;
  }
}

function problemOf(request: AnyRequest, answer: Answer, oauth: OauthKnown): string | null {
  switch (request.kind) {
    case 'mcp':
      return problemOfMcp(request, answer);
    case 'oauth':
      return problemOfOauth(request, answer, oauth);
    case 'operation':
      return problemOfOperation(request, answer);
  }
}

/** What is wrong with an answer, or null. */
function problemOfOperation(request: FuzzRequest, answer: Answer): string | null {
  const { status } = answer;
  const { target, isAstray, method } = request;
  const isFiveHundred = status >= 500 && !target.statuses.has(status);
  if (isFiveHundred || status === 500) return `answered ${status}`;
  const isKnown = target.statuses.has(status) || anywhere.has(status) || (isAstray && elsewhere.has(status));
  if (!isKnown && !isAstray) return `answered ${status}, which its description does not name`;
  if (status >= 400 && method !== 'HEAD') return problemOfError(answer);
  return isAstray || method !== target.method ? null : problemOfSuccess(request, answer);
}

function problemOfError({ status, type, body, retryAfter }: Answer): string | null {
  if (type !== 'application/json') return `an error of type "${type}"`;
  const error = parsed(body);
  if (typeof error !== 'object' || error === null) return 'an error that is no JSON object';
  const { error: sentence, code, fields, retry_after, ...rest } = error as Record<string, unknown>;
  if (typeof sentence !== 'string' || sentence === '' || sentence.length > 4_000)
    return 'an error without a sentence';
  if (Object.keys(rest).length > 0) return `an error with the field ${Object.keys(rest)[0]}`;
  const kind = Object.entries(errorKinds).find(([name]) => name === code)?.[1];
  if (kind === undefined) return `an unknown code ${String(code)}`;
  const others = code === 'bad_request' ? [405, 408, 415, 431] : [];
  if (kind.status !== status && !others.includes(status))
    return `the code ${String(code)} with the status ${status}`;
  if (fields !== undefined && !isTextRecord(fields)) return 'fields that are no sentences';
  const told = retry_after === undefined ? undefined : String(retry_after);
  return told === retryAfter ? null : `Retry-After ${String(retryAfter)} beside retry_after ${String(told)}`;
}

function isTextRecord(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((each) => typeof each === 'string')
  );
}

function problemOfSuccess({ target, path, method }: FuzzRequest, { body, type }: Answer): string | null {
  const name = target.operation.operationId.replace(/ByQuery$/, '') as OperationName;
  const { answer } = operations[name];
  if (findOperation(method, path.split('?', 1)[0] ?? '').kind !== 'found') return 'a success of no operation';
  if (answer === null) return body === '' ? null : 'a body where none is described';
  if (answer === 'text') return null;
  if (type !== 'application/json') return `an answer of type "${type}"`;
  const value = parsed(body);
  if (value === undefined) return 'an answer that is no JSON';
  const checked = answer.safeParse(value);
  return checked.success ? null : `an answer that is not of its schema: ${checked.error.message}`;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function failureOf(request: SentRequest, what: string, answer: string): FuzzFailure {
  const { number, method, path, headers, body, credential } = request;
  const shown = `${method} ${path.slice(0, 300)} as ${credential} ${JSON.stringify(headers).slice(0, 200)} ${body?.toString().slice(0, 600) ?? ''}`;
  return { number, what, request: shown, answer: answer.slice(0, 400) };
}

type Sent = Pick<SentRequest, 'method' | 'path' | 'headers' | 'body' | 'isChunked'>;

function plain(method: string, path: string, body: unknown = null, headers = {}): Sent {
  const bytes = body === null ? null : Buffer.from(JSON.stringify(body));
  return { method, path, body: bytes, headers, isChunked: false };
}

function send(agent: Agent, url: string, { method, path, headers, body, isChunked }: Sent): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const sentHeaders: Record<string, string | number> = { ...headers };
  if (body !== null && !isChunked) sentHeaders['content-length'] = body.byteLength;
  if (body !== null && isChunked) sentHeaders['transfer-encoding'] = 'chunked';
  return new Promise((resolve, reject) => {
    const options = { hostname, port, agent, method, path, headers: sentHeaders, timeout: answerMsMax };
    const request = httpRequest(options, (incoming) => {
      const parts: Buffer[] = [];
      incoming.on('data', (part: Buffer) => parts.push(part));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          type: incoming.headers['content-type'] ?? '',
          retryAfter: incoming.headers['retry-after'],
          location: incoming.headers.location,
          body: Buffer.concat(parts).toString(),
        }),
      );
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${answerMsMax} ms`)));
    request.on('error', reject);
    request.end(body ?? undefined);
  });
}

/** A document for each namespace, which a namespace that was made again meanwhile may refuse. */
async function writeFirstDocuments(
  agent: Agent,
  url: string,
  admin: Readonly<Record<string, string>>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (const [i, name] of fuzzNamespaces.entries()) {
    const vector = Array.from({ length: fuzzDims }, (_, at) => at + i);
    const document = { id: 'a', text: 'The tide turns at noon.', meta: { n: i, name: 'Dover' } };
    const docs = [i < 4 ? document : { ...document, vector }];
    answers.push(await send(agent, url, plain('POST', `/v1/namespaces/${name}/docs`, { docs }, admin)));
  }
  return answers;
}
