import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type ListToolsResult,
} from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, Server as ServerV2 } from '@modelcontextprotocol/server';

/**
 * What `/mcp` is compared with: the SDKs' own servers, which answer every tool call with one value from memory and `tools/list` with
 * one list. They search nothing, look up no key and meter nothing. Each is set up as its authors advise for servers that keep no
 * sessions, with the class of it that does the least for a request. A call with the argument `echo` is answered with its
 * arguments. Arguments of the process: `v1` or `v2`, and a file of `SdkAnswers`; the port goes to standard output.
 */
export interface SdkAnswers {
  readonly tools: ListToolsResult['tools'];
  /** What a call answers: as `structuredContent`, and once more as text. */
  readonly answer: Readonly<Record<string, unknown>>;
}

const [generation = '', file = ''] = process.argv.slice(2);
const { tools, answer } = JSON.parse(readFileSync(file, 'utf8')) as SdkAnswers;
const info = { name: 'memory', version: '1' };
const options = { capabilities: { tools: {} } };

function called(args: Readonly<Record<string, unknown>> | undefined): CallToolResult {
  const value = args?.echo === undefined ? answer : args;
  return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: { ...value } };
}

async function answerByV1(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const server = new ServerV1(info, options);
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => called(params.arguments));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.on('close', () => void server.close());
  // Its own types disagree with each other under exactOptionalPropertyTypes.
  await server.connect(transport as never);
  await transport.handleRequest(request, response);
}

function answerByV2(): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const handler = createMcpHandler(
    () => {
      const server = new ServerV2(info, options);
      server.setRequestHandler('tools/call', ({ params }) => called(params.arguments));
      server.setRequestHandler('tools/list', () => ({ tools }) as never);
      return server;
    },
    { responseMode: 'json' },
  );
  return async (request, response) => {
    const body = new Uint8Array(await buffer(request));
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as const);
    const asked = new Request(`http://${request.headers.host}${request.url}`, {
      method: 'POST',
      headers: Object.fromEntries(headers),
      body,
    });
    const given = await handler.fetch(asked);
    response.writeHead(given.status, Object.fromEntries(given.headers));
    response.end(new Uint8Array(await given.arrayBuffer()));
  };
}

const answerOne = generation === 'v1' ? answerByV1 : answerByV2();
const server = createServer((request, response) => {
  answerOne(request, response).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    response.writeHead(500).end();
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
