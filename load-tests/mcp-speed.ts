/**
 * `npm run measure -- mcp-speed`: calls of the tool `search` beside the same search over REST, in turns, warm: one log line of many, and
 * a page of hits in this repository's own files; `tools/list`; and the SDKs' own servers, which answer the same call from memory. Every answer is checked: the
 * tool's `structuredContent` is REST's answer, and the server counted no refused call. Needs wrk. Ends with 1 where a bar is missed.
 *
 *   --cpu-prof=FOLDER   has the server write a profile of each of its threads there
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Chance } from '../test/simulation/chance.ts';
import { modernRequest } from '../test/support/mcp-calls.ts';
import { startBare } from './bare.ts';
import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { filesBelow } from './corpus.ts';
import { isQuick, type Judge, judged } from './judge.ts';
import { type LogLine, logLines, traceOf } from './log-line-texts.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { textOption } from './options.ts';
import { treeCpuSeconds } from './processes.ts';
import { restartFlushed } from './restart-flushed.ts';
import type { SdkAnswers } from './sdk-mcp-server.ts';
import { temporaryFolder } from './server.ts';
import { rateOfBodies, wrkIsInstalled } from './wrk.ts';

const sources = 'sources';
const lines = 'lines';
const linesWritten = isQuick ? 2_000 : 10_000;
const connections = 32;
const rounds = isQuick ? 1 : 3;
const roundSeconds = isQuick ? 1 : 3;
const bars = { ratio: 0.7, callsPerSecond: 5_000, listsPerSecond: 10_000 };
/** Keeps its 64 bits, or does not. */
const serial = '435090932899640449';

/** The budget and lines around a match that a tool call has by itself, said to both. */
const budget = { context: 2, max_bytes: 32_768, limit: 20 };

interface MeasuredSearch {
  readonly name: string;
  readonly namespace: string;
  readonly query: string;
  /** Whether its rate is judged, and not only its share of REST's. */
  readonly isLean: boolean;
}

const pageOfHits: MeasuredSearch = {
  name: 'a page of 20 hits',
  namespace: sources,
  query: 'readonly',
  isLean: false,
};

interface Target {
  readonly name: string;
  /** The server's, whose processor time is told. */
  readonly processId: number;
  readonly url: string;
  readonly key: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const script = join(temporaryFolder(), 'bodies.lua');

/** One run of wrk. */
interface Run {
  readonly rate: number;
  /** Microseconds of the server's processor time for each answer. */
  readonly cpuMicros: number;
}

async function runTarget({ processId, url, key, body, headers }: Target, seconds: number): Promise<Run> {
  const before = treeCpuSeconds(processId);
  const rate = await rateOfBodies({ url, key, script, seconds, bodies: [body], connections, headers });
  return { rate, cpuMicros: ((treeCpuSeconds(processId) - before) * 1e6) / (rate * seconds) };
}

/** In turns, because the machine's speed drifts: the runs of each target. */
async function alternate(targets: readonly Target[]): Promise<readonly (readonly Run[])[]> {
  const runs = targets.map((): Run[] => []);
  for (const target of targets) await runTarget(target, isQuick ? 1 : 2);
  for (let round = 0; round < rounds; round++)
    for (const [i, target] of targets.entries()) runs[i]?.push(await runTarget(target, roundSeconds));
  return runs;
}

const ratesOf = (runs: readonly Run[]) => runs.map(({ rate }) => rate);
const medianRate = (runs: readonly Run[]) => median(ratesOf(runs));
const cpuText = (runs: readonly Run[]) => `${median(runs.map(({ cpuMicros }) => cpuMicros)).toFixed(0)} µs`;

/** A message of the newest revision, with the headers that it wants, and those that the SDKs' servers insist on. */
function message(method: string, params: object): Pick<Target, 'body' | 'headers'> {
  const { body, headers = {} } = modernRequest(method, params);
  const types = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  return { body: JSON.stringify(body), headers: { ...headers, ...types } };
}

/** As clients of 2025-11-25 and before send it. */
function legacyMessage(method: string, params: object): Pick<Target, 'body' | 'headers'> {
  const { headers } = message(method, params);
  const { 'content-type': type = '', accept = '' } = headers;
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    headers: { 'content-type': type, accept },
  };
}

async function textOf({ url, key, body, headers }: Target): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${key}` },
    body,
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${text.slice(0, 500)}`);
  return text;
}

interface Filled {
  readonly server: MeasuredServer;
  readonly searches: readonly MeasuredSearch[];
}

async function startFilled(): Promise<Filled> {
  const profiles = textOption('cpu-prof');
  const nodeArguments = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const server = await startMeasured();
  const client = new Connections(server.process.url, server.key, 1);
  const files = ['protocol', 'src', 'actors'].flatMap((folder) =>
    filesBelow(folder).map((path) => `${folder}/${path}`),
  );
  await client.post(
    ...docsOf(
      sources,
      files.map((id) => ({ id, text: readFileSync(id, 'utf8') })),
    ),
  );
  const written = [...logLines(linesWritten, new Chance(1, 0))];
  await client.post(...docsOf(lines, written));
  client.close();
  const middle = written[linesWritten >> 1] ?? { id: '', text: '' };
  const line = { name: 'one line by its trace', namespace: lines, query: traceOf(middle), isLean: true };
  return {
    server: await restartFlushed(server, [sources, lines], { nodeArguments }),
    searches: [line, pageOfHits],
  };
}

function docsOf(namespace: string, documents: readonly LogLine[]): [path: string, body: Buffer] {
  const docs = documents.map(
    ({ id, text }) =>
      `{"id":${JSON.stringify(id)},"text":${JSON.stringify(text)},"meta":{"serial":${serial}}}`,
  );
  return [`/v1/namespaces/${namespace}/docs`, Buffer.from(`{"docs":[${docs.join(',')}]}`)];
}

async function measureSearch(
  { say, tell }: Judge,
  { process: { url, processId }, key }: MeasuredServer,
  { name, namespace, query, isLean }: MeasuredSearch,
): Promise<void> {
  const rest: Target = {
    name: 'REST',
    processId,
    url: `${url}/v1/namespaces/${namespace}/search`,
    key,
    body: JSON.stringify({ q: query, ...budget }),
    headers: {},
  };
  const call = { name: 'search', arguments: { namespace, query, ...budget } };
  const mcp = { processId, url: `${url}/mcp`, key };
  const modern: Target = { name: '2026-07-28', ...mcp, ...message('tools/call', call) };
  const legacy: Target = { name: 'older', ...mcp, ...legacyMessage('tools/call', call) };
  const { bytes, hits } = await checkSame(rest, [modern, legacy]);
  say(`\n${name}: ${hits} hits, ${bytes} bytes over REST`);
  const [byRest = [], ...byMcp] = await alternate([rest, modern, legacy]);
  for (const [i, each] of [modern, legacy].entries()) {
    const runs = byMcp[i] ?? [];
    const ratio = medianRate(runs) / medianRate(byRest);
    const ratios = runs.map(({ rate }, round) => rate / (byRest[round]?.rate ?? Number.NaN));
    const title = `${name}, ${each.name}`;
    tell({
      name: `${title}: share of REST`,
      value: ratio.toFixed(2),
      bar: `≥ ${bars.ratio}`,
      ok: ratio >= bars.ratio,
      note:
        `${thousands(medianRate(runs))} against ${thousands(medianRate(byRest))} a second; ratios of ${rounds} rounds ` +
        `${spread(ratios, 2)}; the server's processor time ${cpuText(runs)} a call against ${cpuText(byRest)}`,
    });
    if (isLean) tell(rateMeasurement(`${title}: calls a second`, runs, bars.callsPerSecond));
  }
}

/** Throws where one of the tools' answers is not REST's, but for its times. */
async function checkSame(rest: Target, calls: readonly Target[]): Promise<{ bytes: number; hits: number }> {
  // The first answer says that it was not warm.
  await textOf(rest);
  const text = await textOf(rest);
  for (const call of calls) {
    const answer = withoutTimes(await textOf(call));
    if (!answer.includes(`"structuredContent":${withoutTimes(text)}`))
      throw new Error(`the tool does not answer what REST answers:\n${text}\n${answer}`);
  }
  const { hits } = JSON.parse(text) as { readonly hits: readonly unknown[] };
  if (hits.length === 0) throw new Error(`the search finds nothing: ${rest.body}`);
  return { bytes: Buffer.byteLength(text), hits: hits.length };
}

function rateMeasurement(name: string, runs: readonly Run[], bar: number): Measurement {
  const rate = medianRate(runs);
  return {
    name,
    value: thousands(rate),
    bar: `≥ ${thousands(bar)}`,
    ok: rate >= bar,
    note: `rounds ${spread(ratesOf(runs), 0)}; the server's processor time ${cpuText(runs)} each`,
  };
}

const withoutTimes = (text: string) => text.replace(/(_ms\\?":)[\d.]+/g, '$10');

async function measureLists(
  judge: Judge,
  { process: { url, processId }, key }: MeasuredServer,
): Promise<SdkAnswers['tools']> {
  const modern: Target = {
    name: '2026-07-28',
    processId,
    url: `${url}/mcp`,
    key,
    ...message('tools/list', {}),
  };
  const text = await textOf(modern);
  judge.say(`\ntools/list: ${text.length} bytes`);
  const [runs = []] = await alternate([modern]);
  judge.tell(rateMeasurement('tools/list a second', runs, bars.listsPerSecond));
  return (JSON.parse(text) as { readonly result: { readonly tools: SdkAnswers['tools'] } }).result.tools;
}

/** Calls that were errors: a refusal is quick, and its status is 200. The end of a run cuts off what is on its way, and no more. */
async function tellRefused(
  { tell }: Judge,
  { metricsUrl }: MeasuredServer['process'],
  runs: number,
): Promise<void> {
  const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
  const counted = [
    ...metrics.matchAll(/^tidebase_mcp_messages_total\{name="[^"]+",outcome="(\w+)"\} (\d+)$/gm),
  ];
  const sum = (outcome: string) =>
    counted.reduce((total, [, each, count]) => total + (each === outcome ? Number(count) : 0), 0);
  const [done, refused] = [sum('done'), sum('refused')];
  const cutOff = runs * connections;
  tell({
    name: 'calls refused, or cut off when a run ended',
    value: thousands(refused),
    bar: `≤ ${cutOff}`,
    ok: refused <= cutOff && done > 0,
    note: `of ${thousands(done + refused)}`,
  });
}

const sdkFile = fileURLToPath(new URL('./sdk-mcp-server.js', import.meta.url));

async function startSdk(
  generation: 'v1' | 'v2',
  answers: SdkAnswers,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const file = join(temporaryFolder(), 'answers.json');
  writeFileSync(file, JSON.stringify(answers));
  const child = spawn(process.execPath, [sdkFile, generation, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => child.kill());
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${Number(port.toString())}/mcp`, child };
}

/** The SDKs' servers answer the page of 20 hits from memory; told, not judged. */
async function measureSdks(
  { say, tell }: Judge,
  { process: { url, processId }, key }: MeasuredServer,
  tools: SdkAnswers['tools'],
): Promise<void> {
  const call = { name: 'search', arguments: { namespace: sources, query: pageOfHits.query, ...budget } };
  const ours: Target = { name: 'ours', processId, url: `${url}/mcp`, key, ...message('tools/call', call) };
  const ownText = await textOf(ours);
  const { result } = JSON.parse(ownText) as {
    readonly result: { readonly structuredContent: SdkAnswers['answer'] };
  };
  const answers: SdkAnswers = { tools, answer: result.structuredContent };
  const bare = await startBare({ head: '200 OK\r\ncontent-type: application/json', body: ownText });
  const [v1, v2] = [await startSdk('v1', answers), await startSdk('v2', answers)];
  const servers = {
    'a bare server that sends the same bytes': bare,
    'SDK 1.x (@modelcontextprotocol/sdk)': v1,
    'SDK 2.x (@modelcontextprotocol/server)': v2,
  };
  say('\nthe page of 20 hits from memory, without a search, a key or a meter');
  for (const [name, { url: at, child }] of Object.entries(servers)) {
    const dialect = child === v1.child ? legacyMessage : message;
    const from = { name, processId: child.pid ?? 0, url: at, key };
    const calls: Target = { ...from, ...dialect('tools/call', call) };
    const lists: Target = { ...from, ...dialect('tools/list', {}) };
    const echo: Target = { ...calls, ...dialect('tools/call', { name: 'search', arguments: { echo: 0 } }) };
    const digits = child === bare.child ? '' : `; ${serial} comes back as ${await echoed(echo)}`;
    const [runs = [], listRuns = []] = await alternate([calls, lists]);
    child.kill();
    await once(child, 'exit');
    tell({
      name,
      value: `${thousands(medianRate(runs))} calls a second`,
      note: `processor time ${cpuText(runs)} each; tools/list ${thousands(medianRate(listRuns))}${digits}`,
    });
  }
  if (!ownText.includes(`"serial":${serial}`))
    throw new Error(`the integer of 64 bits has other digits in\n${ownText}`);
  say(`    ours: ${serial} comes back as it was written`);
}

/** What becomes of an integer of 64 bits on its way through the server. */
async function echoed(target: Target): Promise<string> {
  const text = await textOf({ ...target, body: target.body.replace('"echo":0', `"echo":${serial}`) });
  return /"echo":(\d+)/.exec(text)?.[1] ?? text;
}

if (wrkIsInstalled()) {
  await judged(async (judge) => {
    const { server, searches } = await startFilled();
    for (const search of searches) await measureSearch(judge, server, search);
    const tools = await measureLists(judge, server);
    // Two eras of calls for each search, and the lists; each is run once more to warm up.
    await tellRefused(judge, server.process, (2 * searches.length + 1) * (rounds + 1));
    await measureSdks(judge, server, tools);
    await server.process.stop();
  });
} else {
  process.stdout.write('skipped: wrk is not installed (apt-get install wrk)\n');
  process.exitCode = 2;
}
