/** Requests of `/mcp` as bytes, so that a test sees what a client's own JSON library would round or reorder. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';

export interface McpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's JSON, read by tests
  readonly body: any;
}

export interface McpRequest {
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes go as they are, anything else as JSON. */
  readonly body?: unknown;
}

export class McpCaller {
  readonly #url: string;
  readonly #credential: string | null;
  #ids = 0;

  constructor(url: string, credential: string | null) {
    this.#url = url;
    this.#credential = credential;
  }

  as(credential: string | null): McpCaller {
    return new McpCaller(this.#url, credential);
  }

  send({ method = 'POST', query = '', headers = {}, body }: McpRequest): Promise<McpAnswer> {
    const isPlain = typeof body === 'string' || body instanceof Uint8Array;
    const content = isPlain ? body : body === undefined ? '' : JSON.stringify(body);
    const authorization = this.#credential === null ? {} : { authorization: `Bearer ${this.#credential}` };
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        `${this.#url}/mcp${query}`,
        { method, headers: { 'content-type': 'application/json', ...authorization, ...headers } },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('error', reject);
          answer.on('end', () => {
            const text = Buffer.concat(parts).toString();
            const status = answer.statusCode ?? 0;
            resolve({ status, headers: answer.headers, text, body: text === '' ? null : JSON.parse(text) });
          });
        },
      );
      request.on('error', reject);
      request.end(method === 'GET' ? '' : content);
    });
  }

  /** A tool call of the legacy era. `args` is the JSON of its arguments. */
  async call(name: string, args: string | object, query = ''): Promise<ToolAnswer> {
    const text = typeof args === 'string' ? args : JSON.stringify(args);
    const id = ++this.#ids;
    const params = `{"name":${JSON.stringify(name)},"arguments":${text}}`;
    const answer = await this.send({
      query,
      body: `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`,
    });
    assert.equal(answer.body?.id, id, answer.text.slice(0, 500));
    return { ...answer, ...toolAnswerOf(answer) };
  }
}

export interface ToolAnswer extends McpAnswer {
  /** `structuredContent` as it was written; empty where there is none. */
  readonly structured: string;
  readonly isError: boolean;
}

const structuredMark = '"structuredContent":';

/** Takes the bytes apart, and checks that the text item is the same JSON. */
export function toolAnswerOf({ text, body }: McpAnswer): Pick<ToolAnswer, 'structured' | 'isError'> {
  const result = body?.result;
  if (result?.structuredContent === undefined) return { structured: '', isError: result?.isError === true };
  const begin = text.indexOf(structuredMark, text.indexOf('}],')) + structuredMark.length;
  const tail = [',"isError":true', ',"_meta":']
    .map((mark) => text.lastIndexOf(mark))
    .filter((at) => at > begin);
  const structured = text.slice(begin, tail.length > 0 ? Math.min(...tail) : text.length - 2);
  assert.deepEqual(JSON.parse(structured), result.structuredContent);
  assert.deepEqual(result.content, [{ type: 'text', text: structured }]);
  return { structured, isError: result.isError === true };
}

const metaKey = 'io.modelcontextprotocol';

/** A message of the modern era and its headers; `differing` replaces what is given. */
export function modernRequest(
  method: string,
  params: object = {},
  differing: { readonly headers?: Readonly<Record<string, string | null>>; readonly meta?: object } = {},
): McpRequest {
  const meta = {
    [`${metaKey}/protocolVersion`]: '2026-07-28',
    [`${metaKey}/clientCapabilities`]: {},
    [`${metaKey}/clientInfo`]: { name: 'test', version: '1' },
    ...differing.meta,
  };
  const { name } = params as { readonly name?: unknown };
  const headers: Record<string, string | null> = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    ...differing.headers,
  };
  const kept = Object.entries(headers).filter((each): each is [string, string] => each[1] !== null);
  return {
    headers: Object.fromEntries(kept),
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } },
  };
}
