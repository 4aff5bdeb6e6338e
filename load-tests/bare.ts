import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { ConstantAnswer } from './bare-server.ts';

/** An answer of ours as it travels, and a bare uWebSockets server that sends the same. */
const rawAnswerMsMax = 30_000;

/** What is not a plain GET. */
export interface RawRequest {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer's bytes as they travel. */
export async function rawAnswer(
  url: string,
  path: string,
  key: string,
  status: number,
  request: RawRequest = {},
): Promise<string> {
  const { method = 'GET', body, headers = {} } = request;
  const { hostname, port } = new URL(url);
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  const authorization = key === '' ? {} : { Authorization: `Bearer ${key}` };
  const head = Object.entries({ Host: `${hostname}:${port}`, ...authorization, ...length, ...headers });
  const socket = connect(Number(port), hostname).setTimeout(rawAnswerMsMax, () => socket.destroy());
  const lines = [`${method} ${path} HTTP/1.1`, ...head.map(([name, value]) => `${name}: ${value}`)];
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
  let text = '';
  for await (const part of socket.setEncoding('latin1')) {
    text += String(part);
    const headEnd = text.indexOf('\r\n\r\n') + 4;
    const length = /^content-length: (\d+)\r$/im.exec(text)?.[1];
    if (headEnd >= 4 && text.length >= headEnd + Number(length)) break;
  }
  if (!text.startsWith(`HTTP/1.1 ${status} `))
    throw new Error(`${path} was not answered with ${status}: ${text.slice(0, 500)}`);
  return text;
}

export function constantOf(answer: string): ConstantAnswer {
  const headEnd = answer.indexOf('\r\n\r\n');
  const [status = '', ...headers] = answer.slice(0, headEnd).split('\r\n');
  const others = headers.filter((line) => !/^(?:content-length|date):/i.test(line));
  return {
    head: [status.slice('HTTP/1.1 '.length), ...others].join('\r\n'),
    body: answer.slice(headEnd + 4),
  };
}

const bareFile = fileURLToPath(new URL('./bare-server.js', import.meta.url));

/** A bare server that gives every request this answer; its process is the caller's to end. */
export async function startBare(
  answer: ConstantAnswer,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [bareFile, JSON.stringify(answer)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = () => child.kill();
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${Number(port.toString())}`, child };
}
