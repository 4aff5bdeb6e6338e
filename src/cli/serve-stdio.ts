import type { Readable, Writable } from 'node:stream';
import { limits } from '../../protocol/limits.ts';
import { stringOf } from '../front/mcp/json-members.ts';
import { errorJson, RpcError, type RpcMessage, readMessages } from '../front/mcp/json-rpc.ts';
import { modernVersion } from '../front/mcp/protocol-era.ts';
import { type McpArguments, mcpUsage, mcpUsageLine, parseMcpArguments } from './mcp-arguments.ts';
import { UsageError } from './target-arguments.ts';
import { reasonOf } from './write-request.ts';

/**
 * `tidebase mcp`: an MCP server on standard input and output, for clients that start programs. It has no tools of its own: each line is
 * sent to `/mcp` of a server as it is, with the headers that HTTP wants, and the answer is written as one line. Requests run side by
 * side; `notifications/cancelled` ends the one that it names.
 */
export async function serveStdio(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  try {
    const target = parseMcpArguments(args, env);
    if (target === null) {
      process.stdout.write(mcpUsage);
      return 0;
    }
    await forwardLines(target, process.stdin, process.stdout);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`tidebase mcp: ${error.message}\n\n${mcpUsageLine}`);
    return 2;
  }
}

/** Requests that are under way at once; the next line is read when one of them has ended. As many as a free tenant may have in flight. */
const forwardedAtOnceMax = 16;

interface Forwarding {
  readonly target: McpArguments;
  readonly output: Writable;
  /** By the id of their request, as it is written: what ends them. */
  readonly running: Map<string, AbortController>;
  readonly open: Set<Promise<void>>;
}

/** Resolves when the input has ended and everything is answered. */
export async function forwardLines(target: McpArguments, input: Readable, output: Writable): Promise<void> {
  const forwarding: Forwarding = { target, output, running: new Map(), open: new Set() };
  for await (const line of linesOf(input)) {
    if (line.length > 0) begin(forwarding, line);
    if (forwarding.open.size >= forwardedAtOnceMax) await Promise.race(forwarding.open);
  }
  await Promise.all(forwarding.open);
}

const lineFeed = 0x0a;

/** Lines without their ends; one that is longer than a message may be ends the input with an error. */
async function* linesOf(input: Readable): AsyncGenerator<Buffer, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of input) {
    const bytes = chunk as Buffer;
    let from = 0;
    for (let feed = bytes.indexOf(lineFeed); feed >= 0; feed = bytes.indexOf(lineFeed, from)) {
      yield trimmed(Buffer.concat([rest, bytes.subarray(from, feed)]));
      rest = Buffer.alloc(0);
      from = feed + 1;
    }
    rest = Buffer.concat([rest, bytes.subarray(from)]);
    if (rest.length > 2 * limits.mcpBodyBytesMax)
      throw new UsageError('a message has no end: each is one line');
  }
  yield trimmed(rest);
}

function trimmed(line: Buffer): Buffer {
  return line.at(-1) === 0x0d ? line.subarray(0, -1) : line;
}

function begin(forwarding: Forwarding, line: Buffer): void {
  const work = forward(forwarding, line).finally(() => forwarding.open.delete(work));
  forwarding.open.add(work);
}

async function forward(forwarding: Forwarding, line: Buffer): Promise<void> {
  const message = messageIn(line);
  const id = message?.id ?? null;
  const abort = new AbortController();
  if (message?.method === 'notifications/cancelled') cancel(forwarding, message);
  if (id !== null) forwarding.running.set(id, abort);
  try {
    const answer = await ask(forwarding.target, { line, message, signal: abort.signal });
    if (answer !== '') forwarding.output.write(`${answer}\n`);
  } catch (error) {
    // The client wants no answer to what it has cancelled, and none to a notification.
    if (abort.signal.aborted || id === null) return;
    const { origin } = new URL(forwarding.target.url);
    const refusal = new RpcError(
      'internalError',
      `the server at ${origin} cannot be reached: ${reasonOf(error)}`,
    );
    forwarding.output.write(`${errorJson(id, refusal)}\n`);
  } finally {
    if (id !== null) forwarding.running.delete(id);
  }
}

/** Reads one message; null for a batch, and for what is none: the server says what is wrong with it. */
function messageIn(line: Buffer): RpcMessage | null {
  try {
    const received = readMessages(line);
    return received.kind === 'one' && !(received.message instanceof RpcError) ? received.message : null;
  } catch (error) {
    if (error instanceof RpcError) return null;
    throw error;
  }
}

function cancel({ running }: Forwarding, { params }: RpcMessage): void {
  const id = params?.get('requestId')?.json.toString();
  if (id !== undefined) running.get(id)?.abort();
}

interface Asked {
  readonly line: Buffer;
  readonly message: RpcMessage | null;
  readonly signal: AbortSignal;
}

/** The answer as one line; empty for none. */
async function ask({ url, key }: McpArguments, { line, message, signal }: Asked): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headersOf(message) },
    body: new Uint8Array(line),
    // A redirect would hand the key to another server.
    redirect: 'error',
    signal,
  });
  // A line feed stands between values alone: within strings JSON writes it as an escape.
  const text = (await answer.text()).replace(/[\r\n]+/g, ' ');
  if (text.startsWith('{') || text.startsWith('[')) return withId(text, message?.id ?? null);
  if (message?.id == null) return '';
  const sentence = `the server answered ${answer.status} and no message; is this its address?`;
  return errorJson(message.id, new RpcError('internalError', sentence));
}

const unnamedError = '{"jsonrpc":"2.0","id":null,';

/** What is refused before the message is read does not know its id. */
function withId(text: string, id: string | null): string {
  if (id === null || !text.startsWith(unnamedError)) return text;
  return `{"jsonrpc":"2.0","id":${id},${text.slice(unnamedError.length)}`;
}

/** The headers that a modern request has over HTTP: what its body says, once more. */
function headersOf(message: RpcMessage | null): Record<string, string> {
  const meta = message?.params?.get('_meta')?.members;
  const version = stringOf(meta?.get('io.modelcontextprotocol/protocolVersion'));
  if (message === null || version === null || version < modernVersion) return {};
  const name = stringOf(message.params?.get('name'));
  return {
    'mcp-protocol-version': headerText(version),
    'mcp-method': headerText(message.method),
    ...(name === null ? {} : { 'mcp-name': headerText(name) }),
  };
}

function headerText(text: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
