/**
 * A small client of the public API. Every answer it gets is held against the operations table: the schema of its
 * operation, the one shape of errors, and the headers that are promised.
 */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { Me, NewKey, SignupAnswer } from '../../protocol/account.ts';
import type { StoredDocument } from '../../protocol/document.ts';
import { errorKinds } from '../../protocol/errors.ts';
import type { Namespace, NamespaceList } from '../../protocol/namespace.ts';
import type { Operation } from '../../protocol/operations.ts';
import { findOperation } from '../../protocol/routing.ts';
import type { CountAnswer, SearchAnswer } from '../../protocol/search.ts';
import type { WriteResult } from '../../protocol/write.ts';

/**
 * How long an idle connection is kept, in milliseconds. Servers cut it after 8 to 12 s, and a request that is sent at that very moment has no
 * answer.
 */
export const idleConnectionMs = 5_000;

export interface ApiAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Throws where the body is not JSON. */
  json(): unknown;
}

export interface ErrorBody {
  readonly error: string;
  readonly code: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly retry_after?: number;
}

export interface RequestOptions {
  /** Bytes and text go as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in chunks of these, without a Content-Length. */
  readonly chunks?: Iterable<Uint8Array>;
}

/** An answer that a test did not expect. */
export class ApiFailure extends Error {
  override name = 'ApiFailure';
  readonly status: number;
  readonly code: string;
  readonly body: ErrorBody;

  constructor(what: string, answer: ApiAnswer) {
    super(`${what}: ${answer.status} ${answer.body.toString().slice(0, 500)}`);
    this.status = answer.status;
    this.body = answer.json() as ErrorBody;
    this.code = this.body.code;
  }
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  /** Names that must be among `fields`; where left out there may be none at all. */
  readonly fields?: readonly string[];
}

export class ApiClient {
  readonly url: string;
  readonly key: string | null;
  readonly #agent: Agent;
  /** Sees every answer, also those of `as`. */
  onAnswer: (answer: ApiAnswer, method: string, path: string) => void = () => {};

  constructor(
    url: string,
    key: string | null = null,
    agent = new Agent({ keepAlive: true, maxSockets: 256, timeout: idleConnectionMs }),
  ) {
    this.url = url;
    this.key = key;
    this.#agent = agent;
  }

  /** The same server, somebody else. */
  as(key: string | null): ApiClient {
    const other = new ApiClient(this.url, key, this.#agent);
    other.onAnswer = this.onAnswer;
    return other;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Any request. Rejects only where there was no answer. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<ApiAnswer> {
    const answer = await this.#send(method, path, options);
    this.onAnswer(answer, method, path);
    checkAnswer(method, path, answer, options.headers?.['x-tenant'] !== undefined);
    return answer;
  }

  /** The answer's JSON, or null where it has none. Throws ApiFailure for anything but success. */
  async call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.request(method, path, body === undefined ? {} : { body });
    if (answer.status >= 300) throw new ApiFailure(`${method} ${path}`, answer);
    return (answer.body.byteLength === 0 ? null : answer.json()) as Answer;
  }

  /** Asserts that the request is refused in exactly this way. */
  async refused(
    refusal: Refusal,
    method: string,
    path: string,
    options: RequestOptions = {},
  ): Promise<ErrorBody> {
    const answer = await this.request(method, path, options);
    const shown = `${method} ${path.slice(0, 100)}: ${answer.body.toString().slice(0, 300)}`;
    assert.equal(answer.status, refusal.status, shown);
    const body = answer.json() as ErrorBody;
    assert.equal(body.code, refusal.code, shown);
    for (const field of refusal.fields ?? []) {
      assert.ok(
        body.fields !== undefined && Object.hasOwn(body.fields, field),
        `fields lack ${field}: ${shown}`,
      );
    }
    return body;
  }

  signup(email: string, name = 'A Tester', password = 'correct horse'): Promise<SignupAnswer> {
    return this.call('POST', '/v1/signup', { email, name, password });
  }

  async login(email: string, password = 'correct horse'): Promise<string> {
    return (await this.call<{ token: string }>('POST', '/v1/login', { email, password })).token;
  }

  me(): Promise<Me> {
    return this.call('GET', '/v1/me');
  }

  createKey(request: object): Promise<NewKey> {
    return this.call('POST', '/v1/keys', request);
  }

  revokeKey(id: number): Promise<null> {
    return this.call('DELETE', `/v1/keys/${id}`);
  }

  createNamespace(name: string): Promise<Namespace> {
    return this.call('POST', '/v1/namespaces', { name });
  }

  getNamespace(name: string): Promise<Namespace> {
    return this.call('GET', `/v1/namespaces/${name}`);
  }

  listNamespaces(query = ''): Promise<NamespaceList> {
    return this.call('GET', `/v1/namespaces${query}`);
  }

  deleteNamespace(name: string): Promise<null> {
    return this.call('DELETE', `/v1/namespaces/${name}`);
  }

  put(namespace: string, docs: readonly object[], rest: object = {}): Promise<WriteResult> {
    return this.call('POST', `/v1/namespaces/${namespace}/docs`, { docs, ...rest });
  }

  patch(namespace: string, docs: readonly object[], rest: object = {}): Promise<WriteResult> {
    return this.call('PATCH', `/v1/namespaces/${namespace}/docs`, { docs, ...rest });
  }

  deleteDocuments(namespace: string, ids: readonly string[]): Promise<WriteResult> {
    return this.call('POST', `/v1/namespaces/${namespace}/delete`, { ids });
  }

  get(namespace: string, id: string, query = ''): Promise<StoredDocument> {
    return this.call('GET', documentPath(namespace, id) + query);
  }

  search(namespace: string, request: object = {}): Promise<SearchAnswer> {
    return this.call('POST', `/v1/namespaces/${namespace}/search`, request);
  }

  /** All pages. */
  async searchAll(namespace: string, request: object = {}): Promise<SearchAnswer['hits']> {
    const hits: SearchAnswer['hits'] = [];
    for (let cursor = ''; ; ) {
      const page = await this.search(namespace, { limit: 1_000, ...request, cursor });
      hits.push(...page.hits);
      if (page.next === '') return hits;
      cursor = page.next;
    }
  }

  count(namespace: string, request: object = {}): Promise<CountAnswer> {
    return this.call('POST', `/v1/namespaces/${namespace}/count`, request);
  }

  #send(method: string, path: string, options: RequestOptions): Promise<ApiAnswer> {
    const bytes = bytesOf(options.body);
    const headers: Record<string, string> = { ...options.headers };
    if (this.key !== null) headers.authorization ??= `Bearer ${this.key}`;
    if (bytes !== null) headers['content-type'] ??= 'application/json';
    if (bytes !== null) headers['content-length'] ??= String(bytes.byteLength);
    // A path may hold what the URL class would rewrite: `..`, `//`, escapes.
    const { hostname, port } = new URL(this.url);
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        { hostname, port, agent: this.#agent, method, path, headers },
        (incoming) => {
          collect(incoming).then(resolve, reject);
        },
      );
      request.once('error', reject);
      if (options.chunks === undefined) request.end(bytes ?? undefined);
      else writeChunks(request, options.chunks).catch(reject);
    });
  }
}

/** Each part of the id escaped, its slashes kept. */
export function documentPath(namespace: string, id: string): string {
  return `/v1/namespaces/${namespace}/docs/${id.split('/').map(encodeURIComponent).join('/')}`;
}

function bytesOf(body: unknown): Buffer | null {
  if (body === undefined) return null;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

async function writeChunks(
  request: ReturnType<typeof httpRequest>,
  chunks: Iterable<Uint8Array>,
): Promise<void> {
  // The server may refuse and go before all is sent: then the rest stays here.
  const gone = new Promise<void>((resolve) => request.once('close', resolve));
  for (const chunk of chunks) {
    if (request.destroyed) return;
    if (!request.write(chunk))
      await Promise.race([gone, new Promise((resolve) => request.once('drain', resolve))]);
  }
  request.end();
}

async function collect(incoming: IncomingMessage): Promise<ApiAnswer> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    body,
    json: () => JSON.parse(body.toString()) as unknown,
  };
}

const rateLimitNames = [
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'ratelimit-policy',
  'ratelimit',
] as const;

/** What holds for every answer of every operation. */
function checkAnswer(method: string, path: string, answer: ApiAnswer, asksForTenant: boolean): void {
  const shown = `${method} ${path.slice(0, 200)} → ${answer.status} ${answer.body.toString().slice(0, 300)}`;
  const route = routeOf(method, path);
  const operation = route?.kind === 'found' ? route.operation : null;
  assert.notEqual(answer.status, 500, shown);
  if (answer.status >= 400) checkError(method, answer, shown);
  else checkSuccess(method, operation, answer, shown);
  // Whose limits would they be where the tenant is not the caller's?
  const isNobodys = asksForTenant && answer.status === 404 && answer.headers[rateLimitNames[0]] === undefined;
  checkHeaders(isNobodys ? null : operation, answer, shown);
}

function routeOf(method: string, path: string): ReturnType<typeof findOperation> | null {
  try {
    return findOperation(method, path.split('?')[0] ?? '');
  } catch {
    return null;
  }
}

function checkError(method: string, answer: ApiAnswer, shown: string): void {
  assert.equal(answer.headers['content-type'], 'application/json', shown);
  if (method === 'HEAD') return assert.equal(answer.body.byteLength, 0, shown);
  const { error, code, fields, retry_after, ...rest } = answer.json() as ErrorBody;
  assert.ok(typeof error === 'string' && error.length > 0 && error.length < 2_000, shown);
  assert.deepEqual(rest, {}, `an error has no other fields: ${shown}`);
  const kind = Object.hasOwn(errorKinds, code) ? errorKinds[code as keyof typeof errorKinds] : undefined;
  assert.ok(kind !== undefined, `an unknown code: ${shown}`);
  const others = code === 'bad_request' ? [405, 408, 415] : [];
  assert.ok([kind.status, ...others].includes(answer.status), `status and code disagree: ${shown}`);
  if (fields !== undefined) {
    for (const problem of Object.values(fields)) assert.equal(typeof problem, 'string', shown);
  }
  const header = answer.headers['retry-after'];
  assert.equal(header, retry_after === undefined ? undefined : String(retry_after), `Retry-After: ${shown}`);
  if (answer.status === 429) assert.notEqual(header, undefined, `a 429 says when: ${shown}`);
}

function checkSuccess(method: string, operation: Operation | null, answer: ApiAnswer, shown: string): void {
  if (operation === null) throw new Error(`nothing is there, and it answers success: ${shown}`);
  assert.equal(answer.status, operation.success, shown);
  if (operation.answer === null || method === 'HEAD') {
    assert.equal(answer.body.byteLength, 0, shown);
    return;
  }
  if (operation.answer === 'text') return;
  assert.equal(answer.headers['content-type'], 'application/json', shown);
  const value = answer.json();
  const parsed = operation.answer.safeParse(value);
  assert.ok(parsed.success, `the answer is not of its schema: ${parsed.error?.message}: ${shown}`);
  // Schemas of answers drop what they do not know, so a difference is a field that nobody described.
  assert.ok(isDeepStrictEqual(parsed.data, value), `a field is not in the schema: ${shown}`);
}

function checkHeaders(operation: Operation | null, answer: ApiAnswer, shown: string): void {
  assert.match(String(answer.headers['x-request-id']), /^[\w.-]{4,}$/, `X-Request-Id: ${shown}`);
  if (answer.status !== 204) assert.equal(answer.headers['x-content-type-options'], 'nosniff', shown);
  if (operation?.rateLimitHeaders !== true || answer.status === 401) return;
  // Nor is it known whose request it is while the store does not say.
  if (answer.status === 503 && answer.headers[rateLimitNames[0] ?? ''] === undefined) return;
  // What the door refuses before it knows whose request it is has no limit to tell of.
  if (answer.headers.connection === 'close') return;
  for (const name of rateLimitNames) assert.ok(answer.headers[name] !== undefined, `${name}: ${shown}`);
}
