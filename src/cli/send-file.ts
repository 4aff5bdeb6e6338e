import { createReadStream, readFileSync, statSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { limits } from '../../protocol/limits.ts';
import { systemClock } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import {
  type ImportArguments,
  importUsage,
  importUsageLine,
  parseImportArguments,
} from './import-arguments.ts';
import { ProgressBar } from './progress-bar.ts';
import { UsageError } from './target-arguments.ts';

/** `tidebase import`: answers the exit code, 0 imported, 1 not imported, 2 not understood. */
export async function sendFile(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  try {
    const asked = parseImportArguments(args, env);
    if (asked === null) {
      process.stdout.write(importUsage);
      return 0;
    }
    return await send(asked, sizeOf(asked.file), definitionOf(asked));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`tidebase import: ${error.message}\n\n${importUsageLine}`);
    return 2;
  }
}

function sizeOf(file: string): number {
  let found: { readonly size: number; isFile(): boolean };
  try {
    found = statSync(file);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(isMissing ? `there is no file ${file}` : `${file}: ${describeError(error)}`);
  }
  if (!found.isFile()) throw new UsageError(`${file} is no file`);
  if (found.size > limits.importBodyBytesMax)
    throw new UsageError(
      `${file} has ${found.size} bytes, and an import has at most ${limits.importBodyBytesMax}`,
    );
  return found.size;
}

function definitionOf({ schemaFile }: ImportArguments): string | undefined {
  if (schemaFile === undefined) return undefined;
  try {
    return readFileSync(schemaFile, 'utf8');
  } catch (error) {
    throw new UsageError(`--schema ${schemaFile}: ${describeError(error)}`);
  }
}

interface Outcome {
  readonly status: number;
  readonly text: string;
}

async function send(asked: ImportArguments, size: number, schema: string | undefined): Promise<number> {
  const bar = new ProgressBar();
  const show = (sent: number) => {
    const doing = sent < size ? 'sent' : 'sent, now being imported';
    bar.show(`of ${Math.ceil(size / 1e6)} MB ${doing}`, sent / Math.max(1, size));
  };
  try {
    const { status, text } = await post(asked, { size, schema, onSent: show });
    bar.clear();
    return tell(asked, status, text);
  } catch (error) {
    bar.clear();
    process.stderr.write(`tidebase import: ${asked.url} did not answer: ${describeError(error)}\n`);
    return 1;
  }
}

function tell({ namespace }: ImportArguments, status: number, text: string): number {
  const answer = parsedAnswer(text);
  if (status === 200 && answer !== null) {
    const seconds = (Number(answer.took_ms) / 1_000).toFixed(1);
    process.stdout.write(`${answer.rows} rows imported into ${namespace} in ${seconds} s\n`);
    if (Number(answer.text_only) > 0)
      process.stdout.write(
        `${answer.text_only} of them have texts that are too long for meta: SQL and filters do not see these\n`,
      );
    return 0;
  }
  const said = answer === null ? text.slice(0, 300) : String(answer.error);
  process.stderr.write(`tidebase import: ${said} (${status})\n`);
  return 1;
}

function parsedAnswer(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function post(
  { file, url, namespace, key, format, id, text, vector, columns, skip, packing }: ImportArguments,
  body: {
    readonly size: number;
    readonly schema: string | undefined;
    readonly onSent: (bytes: number) => void;
  },
): Promise<Outcome> {
  const target = new URL(`${url}/v1/namespaces/${namespace}/import`);
  for (const [name, value] of Object.entries({
    format,
    id,
    text,
    vector,
    columns,
    skip,
    schema: body.schema,
  }))
    if (value !== undefined) target.searchParams.set(name, value);
  const headers: Record<string, string | number> = {
    'x-api-key': key,
    'content-type': 'application/octet-stream',
  };
  if (packing !== null) headers['content-encoding'] = packing;
  if (body.size <= declaredBytesMax) headers['content-length'] = body.size;
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sending = request(target, { method: 'POST', headers }, (answer) => {
      textOf(answer).then((said) => resolve({ status: answer.statusCode ?? 0, text: said }), reject);
    });
    // A refusal may come, and the connection end, while the file is still being sent.
    sending.on('error', (error) => {
      void systemClock.sleep(refusalMs).then(() => reject(error));
    });
    let sent = 0;
    const content = createReadStream(file, { highWaterMark: 256 * 1024 });
    content.on('data', (chunk) => {
      sent += chunk.length;
      body.onSent(sent);
    });
    content.on('error', reject);
    content.pipe(sending);
  });
}

/** A server with the packaged uWebSockets takes no longer number: larger files go in chunks, without one. */
const declaredBytesMax = 999_999_999;
/** How long an answer may follow on a connection that takes no more. */
const refusalMs = 500;

async function textOf(answer: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
