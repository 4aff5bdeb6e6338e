/**
 * The four providers' embedding calls, from their public descriptions: what a request looks like, to the last field, and
 * what is answered to it. Each wire refuses what its description does not have.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { KeyedProvider } from '../../actors/embedding/embedding-models.ts';

export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** What a request asks for. `dims` and `purpose` are null where it says nothing of them. */
export interface Asked {
  readonly model: string;
  readonly texts: readonly string[];
  readonly dims: number | null;
  readonly purpose: string | null;
}

export type WireErrorKind =
  | 'bad-key'
  | 'unknown-model'
  | 'bad-request'
  | 'rate-limit'
  | 'quota'
  | 'server-error';

/** The request is refused, in the provider's way. */
export class WireError extends Error {
  readonly kind: WireErrorKind;
  constructor(kind: WireErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface WireAnswer {
  readonly status: number;
  readonly body: unknown;
}

export interface Wire {
  /** Behind the server's address: what a base URL of this provider ends with. */
  readonly basePath: string;
  /** The provider's own models: their lengths, the default first. Several: the request may choose. */
  readonly models: Readonly<
    Record<string, readonly number[] | { readonly min: number; readonly own: number }>
  >;
  /** @throws WireError */
  read(request: WireRequest): Asked;
  /** The key that the request came with. */
  keyOf(headers: IncomingHttpHeaders): string;
  answer(asked: Asked, vectors: readonly unknown[], tokens: number): unknown;
  error(kind: WireErrorKind, message: string): WireAnswer;
}

/** Texts of more bytes are refused as texts of too many tokens: at worst a byte is a token. */
const tokensMax = 8_192;

const openai: Wire = {
  basePath: '/v1',
  models: {
    'text-embedding-3-small': { min: 1, own: 1_536 },
    'text-embedding-3-large': { min: 1, own: 3_072 },
    'text-embedding-ada-002': [1_536],
  },
  read({ method, path, body }) {
    route(method, path, '/v1/embeddings');
    const fields = only(body, ['model', 'input', 'encoding_format'], ['dimensions']);
    equal(fields.encoding_format, 'float', 'encoding_format');
    const texts = textsOf(fields.input, { count: 2_048, each: tokensMax, all: 300_000 });
    return { model: String(fields.model), texts, dims: numberOf(fields.dimensions), purpose: null };
  },
  keyOf: bearer,
  answer: ({ model }, vectors, tokens) => ({
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }),
  error(kind, message) {
    const [status, type, code] = {
      'bad-key': [401, 'invalid_request_error', 'invalid_api_key'],
      'unknown-model': [404, 'invalid_request_error', 'model_not_found'],
      'bad-request': [400, 'invalid_request_error', null],
      'rate-limit': [429, 'requests', 'rate_limit_exceeded'],
      quota: [429, 'insufficient_quota', 'insufficient_quota'],
      'server-error': [500, 'server_error', null],
    }[kind] as [number, string, string | null];
    return { status, body: { error: { message, type, param: null, code } } };
  },
};

const cohere: Wire = {
  basePath: '/v2',
  models: {
    'embed-v4.0': [1_536, 256, 512, 1_024],
    'embed-english-v3.0': [1_024],
    'embed-multilingual-v3.0': [1_024],
    'embed-english-light-v3.0': [384],
    'embed-multilingual-light-v3.0': [384],
  },
  read({ method, path, body }) {
    route(method, path, '/v2/embed');
    const fields = only(body, ['model', 'texts', 'input_type', 'embedding_types'], ['output_dimension']);
    equal(JSON.stringify(fields.embedding_types), '["float"]', 'embedding_types');
    oneOf(fields.input_type, ['search_document', 'search_query'], 'input_type');
    // Longer texts are cut there.
    const texts = textsOf(fields.texts, { count: 96, each: Number.POSITIVE_INFINITY, all: 128_000 });
    const purpose = String(fields.input_type);
    return { model: String(fields.model), texts, dims: numberOf(fields.output_dimension), purpose };
  },
  keyOf: bearer,
  answer: ({ texts }, vectors, tokens) => ({
    id: '5f3c2a3e-1f1c-4b0f-9a37-2f5d7f1f0c11',
    texts,
    embeddings: { float: vectors },
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: tokens } },
    response_type: 'embeddings_by_type',
  }),
  error(kind, message) {
    const status = {
      'bad-key': 401,
      'unknown-model': 404,
      'bad-request': 400,
      'rate-limit': 429,
      quota: 402,
      'server-error': 500,
    }[kind];
    return { status, body: { id: '0b2a7a53-90b4-4c3c-8b1e-6c9b5c7d7a10', message } };
  },
};

const google: Wire = {
  basePath: '/v1beta',
  models: {
    'gemini-embedding-001': { min: 128, own: 3_072 },
    'gemini-embedding-2': { min: 128, own: 3_072 },
  },
  read({ method, path, body }) {
    const [, model = '', call = ''] = /^\/v1beta\/models\/([\w.-]+):(\w+)$/.exec(path) ?? [];
    route(method, call, 'embedContent', 'batchEmbedContents');
    const requests = call === 'embedContent' ? [body] : only(body, ['requests'], []).requests;
    if (!Array.isArray(requests)) throw new WireError('bad-request', 'requests: must be an array');
    const asked = requests.map((request) => readGoogle(request, model));
    const { dims = null, purpose = null } = asked[0] ?? {};
    const texts = textsOf(
      asked.map(({ text }) => text),
      { count: 100, each: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY },
    );
    return { model, texts, dims, purpose };
  },
  keyOf: ({ 'x-goog-api-key': key }) => String(key ?? ''),
  // A single text is sent to the call for one, and answered in another shape.
  answer: ({ texts }, vectors) =>
    texts.length === 1
      ? { embedding: { values: vectors[0] } }
      : { embeddings: vectors.map((values) => ({ values })) },
  error(kind, message) {
    const [code, status, reason] = {
      'bad-key': [400, 'INVALID_ARGUMENT', 'API_KEY_INVALID'],
      'unknown-model': [404, 'NOT_FOUND', null],
      'bad-request': [400, 'INVALID_ARGUMENT', null],
      'rate-limit': [429, 'RESOURCE_EXHAUSTED', null],
      quota: [429, 'RESOURCE_EXHAUSTED', null],
      'server-error': [500, 'INTERNAL', null],
    }[kind] as [number, string, string | null];
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' };
    const details = reason === null ? {} : { details: [info] };
    return { status: code, body: { error: { code, message, status, ...details } } };
  },
};

function readGoogle(
  request: unknown,
  model: string,
): { readonly text: unknown; readonly dims: number | null; readonly purpose: string | null } {
  const fields = only(request, ['model', 'content'], ['outputDimensionality', 'taskType']);
  equal(fields.model, `models/${model}`, 'model');
  const content = only(fields.content, ['parts'], ['role']);
  const part = only(Array.isArray(content.parts) ? content.parts[0] : undefined, ['text'], []);
  const purpose = fields.taskType === undefined ? null : String(fields.taskType);
  if (purpose !== null) {
    oneOf(purpose, ['RETRIEVAL_DOCUMENT', 'RETRIEVAL_QUERY'], 'taskType');
    if (model !== 'gemini-embedding-001') throw new WireError('bad-request', 'taskType is not supported');
  }
  return { text: part.text, dims: numberOf(fields.outputDimensionality), purpose };
}

const mistral: Wire = {
  basePath: '/v1',
  models: { 'mistral-embed': [1_024], 'codestral-embed': [1_536] },
  read({ method, path, body }) {
    route(method, path, '/v1/embeddings');
    const fields = only(body, ['model', 'input'], ['encoding_format']);
    const texts = textsOf(fields.input, { count: 512, each: tokensMax, all: 16_384 });
    return { model: String(fields.model), texts, dims: null, purpose: null };
  },
  keyOf: bearer,
  answer: ({ model }, vectors, tokens) => ({
    id: 'b0c2a2c1e0a94b6a8a5ce1a1c7d5d0f3',
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', embedding, index })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0 },
  }),
  error(kind, message) {
    if (kind === 'bad-key') return { status: 401, body: { detail: 'Unauthorized' } };
    const [status, type, code] = {
      'unknown-model': [400, 'invalid_model', '1500'],
      'bad-request': [400, 'invalid_request_prompt', '3210'],
      'rate-limit': [429, 'rate_limited', '1300'],
      quota: [402, 'payment_required', null],
      'server-error': [500, 'internal_server_error', '3000'],
    }[kind] as [number, string, string | null];
    return { status, body: { object: 'error', message, type, param: null, code } };
  },
};

export const wires: Readonly<Record<KeyedProvider, Wire>> = { openai, cohere, google, mistral };

function bearer({ authorization = '' }: IncomingHttpHeaders): string {
  return authorization.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : '';
}

function route(method: string, path: string, ...paths: readonly string[]): void {
  if (method !== 'POST' || !paths.includes(path)) throw new WireError('bad-request', `no ${method} ${path}`);
}

/** The fields of an object that has all of the first and none beside both. */
function only(
  value: unknown,
  required: readonly string[],
  optional: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new WireError('bad-request', 'must be an object');
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of required) {
    if (fields[name] === undefined) throw new WireError('bad-request', `${name}: is missing`);
  }
  for (const name of Object.keys(fields)) {
    if (!required.includes(name) && !optional.includes(name))
      throw new WireError('bad-request', `${name}: is unexpected`);
  }
  return fields;
}

function equal(value: unknown, expected: string, name: string): void {
  if (value !== expected) throw new WireError('bad-request', `${name}: must be ${expected}`);
}

function oneOf(value: unknown, expected: readonly string[], name: string): void {
  if (!expected.includes(String(value)))
    throw new WireError('bad-request', `${name}: must be one of ${expected}`);
}

function numberOf(value: unknown): number | null {
  if (value === undefined) return null;
  if (!Number.isSafeInteger(value)) throw new WireError('bad-request', 'a length must be an integer');
  return Number(value);
}

function textsOf(
  value: unknown,
  max: { readonly count: number; readonly each: number; readonly all: number },
): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) throw new WireError('bad-request', 'texts: must be given');
  if (value.length > max.count) throw new WireError('bad-request', `texts: at most ${max.count}`);
  const lengths = value.map((text) => {
    if (typeof text !== 'string' || text === '')
      throw new WireError('bad-request', 'a text must not be empty');
    return Buffer.byteLength(text);
  });
  if (lengths.some((length) => length > max.each)) throw new WireError('bad-request', 'a text is too long');
  if (lengths.reduce((sum, length) => sum + length, 0) > max.all)
    throw new WireError('bad-request', 'too many tokens in batch');
  return value;
}
