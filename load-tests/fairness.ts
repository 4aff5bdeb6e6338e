/**
 * `npm run measure -- fairness`: warm reads of single documents at a set rate, from their intended start, while one client searches
 * the same actor thread as hard as it can: scans of real source code again and again; then patterns made to cost much over
 * documents of 2 MB, which the server may refuse. Ends with 1 where a bar is missed.
 *
 *   --megabytes=150   --seconds=20 (of each)
 */
import { Chance } from '../test/simulation/chance.ts';
import { readCorpusOf } from './corpora.ts';
import { isQuick, type Judge, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { latencyText, type OpenLoop, type OpenLoopResult, percentile, runOpenLoop } from './open-loop.ts';
import { numberOption } from './options.ts';
import { putTexts } from './put-texts.ts';
import { restartFlushed } from './restart-flushed.ts';
import { whenSegmentsRest } from './store-counts.ts';

const megabytes = numberOption('megabytes', isQuick ? 10 : 150);
const seconds = numberOption('seconds', isQuick ? 4 : 20);
const readsPerSecond = 200;
const readConnections = 64;
const readDocuments = 1_000;
const seed = 20_260_101;
const readP99Ms = 15;

/** On one thread, whatever the machine has: reads and scans meet there. */
const env = { TIDEBASE_ACTOR_THREADS: '1' };

const points = 'points';
const source = 'source';
const large = 'large';
const largeBytes = isQuick ? 100_000 : 1_990_000;
/** So many in segments, and as many in a memtable. */
const largeDocuments = 4;

const scanning = ['[0-9]\\w[0-9]\\w[0-9]\\w[0-9]\\w[0-9]{8}q', '\\pL\\d\\pL\\d\\pL\\d\\pL\\d\\pL\\d{9}'];
/** Optional parts that overlap: RE2 keeps hundreds of states for each byte. */
const costly = [
  '(?:[a-q]?[b-p]){500}x',
  '(?:[a-p]?[b-q]){400}[xyz]',
  '(?:[a-q]{1,2}[b-p]?){250}(?:xy|yz)',
  '(?:(?:ab?|[c-q])[a-o]?){300}\\d',
  '(?i)(?:[a-q]?[b-p]){450}z',
];

await judged(async (judge) => {
  const server = await filled(judge);
  const paths = await warmPaths(server);
  const alone = await runOpenLoop({ ...loopOf(server, paths), seconds: Math.min(seconds, 5) });
  judge.tell({
    name: 'reads alone',
    value: `p99 ${percentile(alone.latenciesMs, 0.99).toFixed(1)} ms`,
    note: latencyText(alone.latenciesMs),
  });
  for (const [name, namespace, patterns] of [
    [`scans of ${megabytes} MB`, source, scanning],
    [
      `costly patterns over ${largeDocuments * 2} documents of ${(largeBytes / 1e6).toFixed(1)} MB`,
      large,
      costly,
    ],
  ] as const) {
    const searching = searchOn(server, namespace, patterns);
    const reads = await runOpenLoop(loopOf(server, paths));
    tell(judge, name, reads, await searching.stop());
  }
  await server.process.stop();
});

async function filled({ say }: Judge): Promise<MeasuredServer> {
  const { texts, bytes } = readCorpusOf('source', megabytes * 1e6);
  let server = await startMeasured({ env });
  const chance = new Chance(seed, 0);
  await put(server, source, texts);
  await put(
    server,
    points,
    Array.from({ length: readDocuments }, (_, i) => [`p${i}`, `document ${i}\n${'text '.repeat(200)}`]),
  );
  await put(server, large, largeTexts('segment', chance));
  server = await restartFlushed(server, [source, points, large], { env });
  await put(server, large, largeTexts('memtable', chance));
  await whenSegmentsRest(server.process);
  say(
    `${texts.size} documents, ${(bytes / 1e6).toFixed(1)} MB of source code are stored; ${readsPerSecond} reads a second`,
  );
  return server;
}

async function put(
  { process: server, key }: MeasuredServer,
  namespace: string,
  texts: Iterable<readonly [string, Buffer | string]>,
): Promise<void> {
  const client = new Connections(server.url, key, 1);
  await putTexts(client, namespace, texts);
  client.close();
}

/** Letters that the costly patterns go on with for ever, and never end on. */
function largeTexts(prefix: string, chance: Chance): (readonly [string, Buffer])[] {
  return Array.from({ length: largeDocuments }, (_, i) => [
    `${prefix}-${i}`,
    Buffer.from(Uint8Array.from({ length: largeBytes }, () => chance.integer(0x61, 0x71))),
  ]);
}

async function warmPaths({ process: server, key }: MeasuredServer): Promise<string[]> {
  const paths = Array.from({ length: readDocuments }, (_, i) => `/v1/namespaces/${points}/docs/p${i}`);
  const client = new Connections(server.url, key, 1);
  for (const path of paths) await client.get(path);
  client.close();
  return paths;
}

function loopOf({ process: server, key }: MeasuredServer, paths: readonly string[]): OpenLoop {
  return {
    url: server.url,
    key,
    paths,
    ratePerSecond: readsPerSecond,
    seconds,
    connections: readConnections,
  };
}

/** Answers by their status and code. */
type Outcomes = ReadonlyMap<string, number>;

/** One search after the other until it is stopped. */
function searchOn(
  { process: server, key }: MeasuredServer,
  namespace: string,
  patterns: readonly string[],
): { stop(): Promise<Outcomes> } {
  const client = new Connections(server.url, key, 1);
  const outcomes = new Map<string, number>();
  let stopping = false;
  const running = (async () => {
    for (let i = 0; !stopping; i++) {
      const body = JSON.stringify({ q: patterns[i % patterns.length], regex: true, scan: true });
      const { status, text } = await client.send(
        'POST',
        `/v1/namespaces/${namespace}/search`,
        Buffer.from(body),
      );
      const outcome = outcomeOf(status, JSON.parse(text));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    client.close();
    return outcomes;
  })();
  return {
    stop() {
      stopping = true;
      return running;
    },
  };
}

function outcomeOf(status: number, answer: { readonly code?: string; readonly timed_out?: boolean }): string {
  if (status !== 200) return `${status} ${answer.code}`;
  return answer.timed_out ? 'out of time' : 'whole answers';
}

function tell(
  { tell: tellAll }: Judge,
  name: string,
  { latenciesMs, failures }: OpenLoopResult,
  outcomes: Outcomes,
): void {
  const p99 = percentile(latenciesMs, 0.99);
  tellAll({
    name: `reads beside ${name}`,
    value: `p50 ${percentile(latenciesMs, 0.5).toFixed(1)}, p99 ${p99.toFixed(1)} ms`,
    bar: `p99 ≤ ${readP99Ms} ms`,
    // A server that fails is no fair one: 4xx are refusals, which are allowed.
    ok:
      p99 <= readP99Ms && failures === 0 && ![...outcomes.keys()].some((outcome) => outcome.startsWith('5')),
    note:
      `${latencyText(latenciesMs)}; ${failures} failed; the searches: ` +
      [...outcomes].map(([outcome, times]) => `${times} × ${outcome}`).join(', '),
  });
}
