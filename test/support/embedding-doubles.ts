/**
 * Embedding providers for tests: a server on this machine that speaks like one (`embedding-wires.ts`), answers vectors made
 * of the texts' words, so that texts that share words are near, and fails as it is told to.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises';
import type { KeyedProvider } from '../../actors/embedding/embedding-models.ts';
import { type Asked, type Wire, WireError, type WireErrorKind, wires } from './embedding-wires.ts';

/** How the double fails, instead of answering. */
export type FaultMode =
  | WireErrorKind
  | 'hang'
  /** In the middle of the answer. */
  | 'hang-midway'
  | 'reset'
  /** In the middle of the answer. */
  | 'reset-midway'
  | 'redirect'
  | 'wrong-length'
  | 'null-number'
  | 'text-number'
  /** 1e999, which JSON may have and no double can hold. */
  | 'huge-number'
  | 'beyond-float32'
  | 'too-few'
  | 'not-json'
  | 'endless'
  /** Refuses the request, quoting the key. */
  | 'quote-key';

export interface FaultOptions {
  /** Requests that fail; the next ones are answered. Absent: all, until another fault or null. */
  readonly times?: number;
  /** With a status: the header, seconds or a date. */
  readonly retryAfter?: string;
}

/** A request as it came. `problem` is why the double refused it, if it did. */
export interface SeenRequest extends Asked {
  readonly path: string;
  readonly key: string;
  readonly problem: string | null;
}

export interface EmbeddingDouble {
  /** As the environment variable of this provider wants it. */
  readonly baseUrl: string;
  readonly requests: readonly SeenRequest[];
  fault(mode: FaultMode | null, options?: FaultOptions): void;
  /** Requests that `hang` has left without an answer. */
  readonly hanging: number;
  /** Closes the connections of requests that `hang` has left without an answer. */
  dropHanging(): void;
  close(): Promise<void>;
}

export interface DoubleOptions {
  readonly key: string;
  /** Vectors of the last texts first, each with its index. */
  readonly backwards?: boolean;
  /** More requests at once are refused, as too many for this key. */
  readonly inFlightMax?: number;
  /** How long an answer takes. */
  readonly delayMs?: number;
  /** Beside the provider's own. */
  readonly models?: Wire['models'];
}

export async function startEmbeddingDouble(
  provider: KeyedProvider,
  options: DoubleOptions,
): Promise<EmbeddingDouble> {
  const own = wires[provider];
  const wire = { ...own, models: { ...own.models, ...options.models } };
  const requests: SeenRequest[] = [];
  const hanging = new Set<ServerResponse>();
  let inFlight = 0;
  let fault: { mode: FaultMode; times: number; retryAfter: string | undefined } | null = null;

  const server = createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    const key = wire.keyOf(request.headers);
    const body = await readJson(request);
    const read = readAsked(wire, { request, path, body, options, key });
    requests.push({ ...read, path, key });
    if (fault !== null && fault.times > 0) {
      fault.times--;
      if (fault.mode === 'hang') return void hanging.add(response);
      return fail(response, { ...fault, mode: fault.mode, wire, asked: read, key });
    }
    if (inFlight >= (options.inFlightMax ?? Number.POSITIVE_INFINITY))
      return sendError(response, wire, 'rate-limit', 'too many requests at once');
    inFlight++;
    if (options.delayMs !== undefined) await setTimeout(options.delayMs);
    inFlight--;
    if (read.error !== null) return sendError(response, wire, read.error.kind, read.error.message);
    const answer = wire.answer(read, vectorsOf(read, wire), tokensOf(read.texts)) as { data?: unknown[] };
    if (options.backwards === true) answer.data?.reverse();
    send(response, 200, JSON.stringify(answer));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}${wire.basePath}`,
    requests,
    fault(mode, { times = Number.POSITIVE_INFINITY, retryAfter } = {}) {
      fault = mode === null ? null : { mode, times, retryAfter };
    },
    get hanging() {
      return hanging.size;
    },
    dropHanging() {
      for (const response of hanging) response.destroy();
      hanging.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The vector that a double answers for a text: of length 1, but for Gemini's first model where it is asked for a short one. */
export function embeddingOf(model: string, text: string, dims: number): number[] {
  const vector = new Array<number>(dims).fill(0);
  const add = (word: string, weight: number) => {
    const digest = createHash('sha256').update(word).digest();
    for (let i = 0; i < 32; i += 4) {
      const at = digest.readUInt32LE(i);
      vector[at % dims] = (vector[at % dims] ?? 0) + (at & 0x80000000 ? -weight : weight);
    }
  };
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) add(word, 1);
  // Texts of the same words differ a little.
  add(`${model} ${text}`, 0.01);
  const length = Math.hypot(...vector) * (model === 'gemini-embedding-001' && dims < 3_072 ? 2 : 1);
  return vector.map((value) => value / length);
}

/** Tokens that a double counts. */
export function tokensOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / 4), 0);
}

interface Read extends Asked {
  readonly problem: string | null;
  readonly error: WireError | null;
}

function readAsked(
  wire: Wire,
  {
    request,
    path,
    body,
    options,
    key,
  }: { request: IncomingMessage; path: string; body: unknown; options: DoubleOptions; key: string },
): Read {
  const nothing = { model: '', texts: [], dims: null, purpose: null };
  try {
    if (key !== options.key) throw new WireError('bad-key', 'the key is wrong');
    const { method = '', headers } = request;
    const asked = wire.read({ method, path, headers, body });
    checkDims(asked, wire);
    return { ...asked, problem: null, error: null };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { ...nothing, problem: error.message, error };
  }
}

function checkDims({ model, dims }: Asked, wire: Wire): void {
  const lengths = Object.hasOwn(wire.models, model) ? wire.models[model] : undefined;
  if (lengths === undefined) throw new WireError('unknown-model', `the model \`${model}\` does not exist`);
  if (dims === null) return;
  const several = 'own' in lengths ? dims >= lengths.min && dims <= lengths.own : lengths.length > 1;
  if (!several || (Array.isArray(lengths) && !lengths.includes(dims)))
    throw new WireError('bad-request', 'this model does not support specifying this length');
}

function vectorsOf({ model, texts, dims }: Asked, wire: Wire): number[][] {
  const lengths = wire.models[model] ?? [];
  const own = 'own' in lengths ? lengths.own : (lengths[0] ?? 0);
  return texts.map((text) => embeddingOf(model, text, dims ?? own));
}

interface Failing {
  readonly mode: Exclude<FaultMode, 'hang'>;
  readonly retryAfter: string | undefined;
  readonly wire: Wire;
  readonly asked: Asked;
  readonly key: string;
}

async function fail(response: ServerResponse, failing: Failing): Promise<void> {
  const { mode, retryAfter, wire, asked, key } = failing;
  const answer = (change: (vectors: unknown[]) => unknown[]) => {
    const vectors = change(vectorsOf(asked, wire));
    // JSON.stringify has no infinity.
    return JSON.stringify(wire.answer(asked, vectors, 1)).replaceAll('"huge"', '1e999');
  };
  const withFirst = (value: unknown) => (vectors: unknown[]) =>
    vectors.map((vector) => [value, ...(vector as unknown[]).slice(1)]);
  switch (mode) {
    case 'hang-midway':
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"data":[');
      return;
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'reset-midway':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000000' });
      response.write('{"data":[');
      await nextTurn();
      response.socket?.resetAndDestroy();
      return;
    case 'redirect':
      response.writeHead(307, { location: '/elsewhere' }).end();
      return;
    case 'endless':
      return sendForEver(response);
    case 'not-json':
      return send(response, 200, '<html>all is well</html>');
    case 'wrong-length':
      return send(
        response,
        200,
        answer((vectors) => vectors.map((vector) => (vector as unknown[]).slice(1))),
      );
    case 'null-number':
      return send(response, 200, answer(withFirst(null)));
    case 'text-number':
      return send(response, 200, answer(withFirst('0.5')));
    case 'huge-number':
      return send(response, 200, answer(withFirst('huge')));
    case 'beyond-float32':
      return send(response, 200, answer(withFirst(1e39)));
    case 'too-few':
      return send(
        response,
        200,
        answer((vectors) => vectors.slice(1)),
      );
    case 'quote-key':
      return sendError(response, wire, 'bad-request', `do not know what to do with ${key} here`);
    default:
      return sendError(response, wire, mode, `told to fail: ${mode}`, retryAfter);
  }
}

function sendError(
  response: ServerResponse,
  wire: Wire,
  kind: WireErrorKind,
  message: string,
  retryAfter?: string,
): void {
  const { status, body } = wire.error(kind, message);
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
  send(response, status, JSON.stringify(body));
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}

async function sendForEver(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  const spaces = ' '.repeat(65_536);
  while (!response.destroyed) {
    response.write(spaces);
    await nextTurn();
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
