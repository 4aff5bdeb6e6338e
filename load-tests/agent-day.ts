/**
 * `npm run measure -- agent-day`: 30 questions about the kernel's sources (`agent-questions.json`), answered by tool calls alone, through
 * the SDKs' clients of both generations. The right answers come from ripgrep and the files. What counts is what a model reads: each
 * call's arguments and the text of its result, four bytes to a token. Wants `npm run corpora` and ripgrep. Ends with 1 where an
 * answer is wrong or took more than its bar.
 */
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type Question, readQuestions } from './agent-questions.ts';
import { solve } from './agent-solve.ts';
import { truthOf } from './agent-truth.ts';
import { thousands } from './bench-report.ts';
import { corporaFolder, kernelPackage, madeMark, textsFolder } from './corpora.ts';
import { type Corpus, readCorpus } from './corpus.ts';
import { type Judge, judged } from './judge.ts';
import { runLoad } from './load-command.ts';
import { startMeasured } from './measured-server.ts';
import { ripgrepIsInstalled } from './ripgrep.ts';
import { temporaryFolder } from './server.ts';

const folders = 'fs kernel mm block ipc init io_uring lib net security include/linux include/net'.split(' ');
const filesMin = 5_000;
const bars = { calls: 6, tokens: 20_000, resultTokens: 10_000 };
const namespace = 'kernel';

interface Conversation {
  calls: number;
  bytes: number;
  largest: number;
}

interface AnyClient {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

const info = { name: 'agent', version: '1' };
const clients: Readonly<Record<string, (url: URL, key: string) => Promise<AnyClient>>> = {
  'SDK 2.x, 2026-07-28': async (url, key) => {
    const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    // Their own types disagree with each other under exactOptionalPropertyTypes, here and below.
    await client.connect(new HttpV2(url, withKey(key)) as never);
    return client as unknown as AnyClient;
  },
  'SDK 1.x': async (url, key) => {
    const client = new ClientV1(info);
    await client.connect(new HttpV1(url, withKey(key)) as never);
    return client as unknown as AnyClient;
  },
};

const withKey = (key: string) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });
const tokensOf = (bytes: number) => Math.ceil(bytes / 4);

interface Result {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent: unknown;
}

/** Answers what the tool answers, and adds to the conversation what a model would read. */
async function counted(
  client: AnyClient,
  talk: Conversation,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const result = (await client.callTool({ name, arguments: args })) as Result;
  const text = result.content[0]?.text ?? '';
  const bytes = Buffer.byteLength(text);
  talk.calls++;
  talk.bytes += bytes + Buffer.byteLength(JSON.stringify(args));
  talk.largest = Math.max(talk.largest, bytes);
  if (result.isError === true) throw new Error(`${name}: ${text}`);
  return result.structuredContent;
}

interface Asked extends Conversation {
  readonly question: Question;
  readonly isRight: boolean;
  readonly said: string;
  readonly truth: string;
}

async function ask(client: AnyClient, corpus: Corpus, question: Question): Promise<Asked> {
  const talk: Conversation = { calls: 0, bytes: 0, largest: 0 };
  const truth = truthOf(corpus, question);
  const said = await solve((name, args) => counted(client, talk, name, args), question).catch(
    (error: unknown) => `no answer: ${error instanceof Error ? error.message : String(error)}`,
  );
  return { ...talk, question, isRight: said === truth && truth !== '', said, truth };
}

function row({ question, calls, bytes, largest, isRight, said, truth }: Asked): string {
  const numbers = [calls, tokensOf(bytes), tokensOf(largest)].map((each) => thousands(each).padStart(7));
  const line = `${question.ask.slice(0, 66).padEnd(66)} ${numbers.join(' ')}  ${isRight ? 'right' : 'WRONG'}`;
  return isRight ? line : `${line}\n    said ${shortened(said)}\n    is   ${shortened(truth)}`;
}

const shortened = (text: string) => JSON.stringify(text.length > 600 ? `${text.slice(0, 600)}…` : text);

async function day({ say, tell }: Judge): Promise<void> {
  const corpus = kernelSources();
  say(`${corpus.files} files, ${(corpus.bytes / 1e6).toFixed(1)} MB of the kernel's sources`);
  if (corpus.files < filesMin) throw new Error(`this wants ${filesMin} files`);
  const server = await startMeasured();
  const target = { url: server.process.url, key: server.key };
  const { code, errors } = await runLoad([corpus.folder, '--namespace', namespace], target);
  if (code !== 0) throw new Error(`tidebase load ended with ${code}: ${errors}`);
  const questions = readQuestions();
  for (const [name, connect] of Object.entries(clients)) {
    const client = await connect(new URL(`${target.url}/mcp`), target.key);
    say(`\n${name.padEnd(66)} ${['calls', 'tokens', 'largest'].map((each) => each.padStart(7)).join(' ')}`);
    const all: Asked[] = [];
    for (const question of questions) {
      const asked = await ask(client, corpus, question);
      all.push(asked);
      say(row(asked));
    }
    await client.close();
    const most = (of: (asked: Asked) => number) => Math.max(...all.map(of));
    const bar = (what: string, value: number, max: number) =>
      tell({
        name: `${name}: ${what}`,
        value: thousands(value),
        bar: `≤ ${thousands(max)}`,
        ok: value <= max,
      });
    const right = all.filter(({ isRight }) => isRight).length;
    say('');
    tell({
      name: `${name}: right answers`,
      value: `${right} of ${questions.length}`,
      bar: `= ${questions.length}`,
      ok: right === questions.length,
    });
    bar(
      'most calls',
      most(({ calls }) => calls),
      bars.calls,
    );
    bar(
      'most tokens',
      most(({ bytes }) => tokensOf(bytes)),
      bars.tokens,
    );
    bar(
      'largest result, tokens',
      most(({ largest }) => tokensOf(largest)),
      bars.resultTokens,
    );
  }
  await server.process.stop();
}

/** A copy of the folders that are asked about, which `tidebase load` and ripgrep read both. */
function kernelSources(): Corpus {
  if (!existsSync(madeMark('source')))
    throw new Error(`the kernel's sources are not in ${corporaFolder}: npm run corpora`);
  const to = temporaryFolder();
  for (const folder of folders) {
    mkdirSync(join(to, folder), { recursive: true });
    cpSync(join(textsFolder('source'), kernelPackage, folder), join(to, folder), { recursive: true });
  }
  return readCorpus(to);
}

if (ripgrepIsInstalled()) await judged(day);
else {
  process.stdout.write('skipped: ripgrep is not installed (apt-get install ripgrep)\n');
  process.exitCode = 2;
}
