/**
 * One tool call: its arguments become a REST request, which runs as every other one, and the answer's bytes become the result,
 * once as they are and once as text. Nothing of an answer is parsed and printed again.
 */
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { type Tool, tools } from '../../../protocol/mcp-tools.ts';
import type { Principal } from '../../auth/principal.ts';
import type { HttpAnswer, HttpExchange } from '../http-types.ts';
import type { OperationCall } from '../operation-call.ts';
import { stringOf } from './json-members.ts';
import { type AnswerParts, RpcError, type RpcMessage } from './json-rpc.ts';
import type { Era } from './protocol-era.ts';
import { errorForTool, restRequestOf } from './tool-arguments.ts';
import { modernTail } from './tool-list.ts';

export interface ToolResult {
  /** The result's JSON. */
  readonly result: AnswerParts;
  /** Headers of the REST answer that the outer answer repeats: rate limits, and when to try again. */
  readonly headers: HttpAnswer['headers'];
  readonly isError: boolean;
  /** To be released when the outer answer has left. */
  readonly sent: HttpAnswer['sent'];
}

export type RunOperation = (call: OperationCall) => Promise<HttpAnswer>;

/** The tool that a call names. Throws RpcError for a name that no tool has, and for arguments that are no object. */
export function toolOf({ params }: RpcMessage): Tool {
  const name = stringOf(params?.get('name'));
  if (name === null) throw invalidParams('params.name must be the name of a tool');
  const tool = tools.get(name);
  if (tool === undefined) {
    const known = [...tools.keys()].join(', ');
    throw invalidParams(`there is no tool ${JSON.stringify(name.slice(0, 100))}; there are: ${known}`);
  }
  const given = params?.get('arguments');
  if (given !== undefined && given.members === null && given.json.toString() !== 'null')
    throw invalidParams('params.arguments must be a JSON object');
  return tool;
}

/** The message was understood, so HTTP has nothing to say about it. */
function invalidParams(sentence: string): RpcError {
  return new RpcError('invalidParams', sentence, { status: 200 });
}

/** Never rejects for what the call asked: that is a result with `isError`. */
export async function callTool(
  run: RunOperation,
  { tool, message, era }: { readonly tool: Tool; readonly message: RpcMessage; readonly era: Era },
  { principal, outer }: { readonly principal: Principal; readonly outer: HttpExchange },
): Promise<ToolResult> {
  const { operation } = tool;
  let answer: HttpAnswer;
  try {
    const request = restRequestOf(tool, message.params?.get('arguments')?.members ?? null);
    answer = await run({ operation, ...request, principal, outer, surface: 'mcp' });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return failed(era, Buffer.from(error.toBody()).toString());
  }
  const { status, body, sent } = answer;
  const headers = answer.headers.filter(([name]) => isPassedOn(name));
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const text = textOf(bytes);
  if (status >= 400) return { ...failed(era, errorForTool(tool, text)), headers, sent };
  if (text.length > answerCharactersMax) return { ...failed(era, tooLarge()), headers, sent };
  const result = text === '' ? resultOf(era, emptyAnswer, false) : resultOf(era, text, false, bytes);
  return { result, headers, isError: false, sent };
}

/** The result of a tool whose operation answers without a body. */
const emptyAnswer = '{"deleted":true}';
/** No budget allows as much, but names of columns are not counted by it. */
const answerCharactersMax = 2 * limits.toolAnswerBytesMax;

function tooLarge(): string {
  const sentence = 'the answer is too large for a tool: ask for less, with fewer columns or a smaller limit';
  return Buffer.from(new ApiError('too_large', sentence).toBody()).toString();
}

function failed(era: Era, json: string): ToolResult {
  return { result: resultOf(era, json, true), headers: [], isError: true, sent: undefined };
}

/** An error before there was an answer of the operation, such as a refusal of the whole request. */
export function errorResult(era: Era, error: ApiError): AnswerParts {
  return failed(era, Buffer.from(error.toBody()).toString()).result;
}

const tails = {
  modern: { done: Buffer.from(`${modernTail}}`), error: Buffer.from(`,"isError":true${modernTail}}`) },
  legacy: { done: Buffer.from('}'), error: Buffer.from(',"isError":true}') },
};

/** The answer stands in it as a string, and once more as its own bytes. */
function resultOf(
  era: Era,
  answer: string,
  isError: boolean,
  bytes: Uint8Array = Buffer.from(answer),
): AnswerParts {
  const text =
    `{${era === 'modern' ? '"resultType":"complete",' : ''}"content":[{"type":"text","text":${JSON.stringify(answer)}}],` +
    '"structuredContent":';
  return [Buffer.from(text), bytes, tails[era][isError ? 'error' : 'done']];
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

function isPassedOn(name: string): boolean {
  return name.length >= 9 && /^(?:ratelimit|retry-after)/i.test(name);
}
