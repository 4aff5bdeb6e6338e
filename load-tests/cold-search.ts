/**
 * `npm run measure -- cold-search`: the first search of a namespace of real source code by a process with an empty cache that has
 * served other namespaces, where each GET takes 60 ms. Each search has a process of its own; they take turns between a
 * selective literal, a selective regex and a frequent word. Rounds are counted where the requests go by, at the proxy. Ends with 1 where a bar
 * is missed or an answer is not what was counted in the texts.
 *
 *   --megabytes=50   --starts=30   --seed=N   --process=new (nothing is searched before)
 */
import { Chance } from '../test/simulation/chance.ts';
import { delayMs, type FarStore, startCold, startFarStore } from './cold-server.ts';
import { readCorpusOf } from './corpora.ts';
import { roundsOf } from './delay-proxy.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import { numberOption, seedOption, textOption } from './options.ts';
import { putTexts } from './put-texts.ts';
import { restartFlushed } from './restart-flushed.ts';
import { type CountedPattern, findPatterns, patternLine } from './search-patterns.ts';
import { SearchClient } from './search-times.ts';

const megabytes = numberOption('megabytes', isQuick ? 3 : 50);
const starts = numberOption('starts', isQuick ? 3 : 30);
const seed = seedOption();
/** With `--process=new` the search is the first of its process, whose code is not compiled yet. */
const isNewProcess = textOption('process') === 'new';
/** Cold ones, too, that are searched before. */
const otherNamespaces = ['other-0', 'other-1', 'other-2'];
const otherTexts = 300;
const patternsPerClass = 5;
const namespace = 'cold-source';
const bars = { p50Ms: 350, rounds: 4 };

interface First {
  readonly kind: string;
  readonly ms: number;
  readonly rounds: number;
  readonly gets: number;
  readonly isRight: boolean;
}

await judged(async ({ say, tell }) => {
  const { texts, bytes } = readCorpusOf('source', megabytes * 1e6);
  const patterns = findPatterns([...texts.values()], new Chance(seed, 0), patternsPerClass);
  const kinds = {
    'selective literal': patterns.selectiveLiterals,
    'selective regex': patterns.selectiveRegexes,
    'frequent word': patterns.frequentWords,
  };
  const store = await startFarStore();
  let server = await startMeasured({ env: store.nearEnv });
  await fill(server, namespace, texts);
  const others = [...texts].slice(0, otherTexts);
  for (const name of otherNamespaces) await fill(server, name, others);
  server = await restartFlushed(server, [namespace, ...otherNamespaces], { env: store.nearEnv });
  say(
    `seed ${seed}; ${texts.size} documents, ${(bytes / 1e6).toFixed(1)} MB of source code in one namespace`,
  );
  for (const [kind, all] of Object.entries(kinds)) say(`    ${kind}: ${all.map(patternLine).join(', ')}`);

  const turns = Object.entries(kinds);
  const found: First[] = [];
  for (let i = 0; i < starts; i++) {
    const [kind = '', of = []] = turns[i % turns.length] ?? [];
    const pattern = of[Math.floor(i / turns.length) % of.length];
    if (pattern === undefined) throw new Error(`no pattern of the kind "${kind}"`);
    server = await startCold(server, store);
    if (!isNewProcess) await runIn(server, kinds);
    found.push({ kind, ...(await firstSearch(server, store, pattern)) });
  }
  for (const [kind] of turns) tell({ name: kind, ...summary(found.filter((each) => each.kind === kind)) });
  const all = summary(found);
  const p50 = percentile(
    found.map(({ ms }) => ms),
    0.5,
  );
  tell({
    name: `cold first search, GETs of ${delayMs * 2} ms`,
    ...all,
    bar: `≤ ${bars.p50Ms} ms, ≤ ${bars.rounds} rounds`,
    ok: p50 <= bars.p50Ms && found.every(({ rounds, isRight }) => rounds <= bars.rounds && isRight),
  });
  await server.process.stop();
  store.proxy.close();
});

/** What a process that has served others has compiled; nothing of the namespace that is measured comes near. */
async function runIn(
  server: MeasuredServer,
  kinds: Readonly<Record<string, readonly CountedPattern[]>>,
): Promise<void> {
  for (const name of otherNamespaces) {
    const client = new SearchClient(server, name);
    for (const pattern of Object.values(kinds).flat()) await client.search(pattern);
    client.close();
  }
}

async function fill(
  { process: server, key }: MeasuredServer,
  namespace: string,
  texts: Iterable<readonly [string, Buffer]>,
): Promise<void> {
  const client = new Connections(server.url, key, 1);
  await putTexts(client, namespace, texts);
  client.close();
}

async function firstSearch(
  server: MeasuredServer,
  { proxy }: FarStore,
  pattern: CountedPattern,
): Promise<Omit<First, 'kind'>> {
  const client = new SearchClient(server, namespace);
  proxy.takeRequests();
  const began = performance.now();
  const { hits, temperature, store_gets: gets } = await client.search(pattern);
  const ms = performance.now() - began;
  const rounds = roundsOf(proxy.takeRequests().filter(({ line }) => isRead(line)));
  client.close();
  const isRight =
    hits.length === Math.min(pattern.documents, SearchClient.pageHits) && temperature === 'cold';
  return { ms, rounds, gets, isRight };
}

/** Whether a query reads it: the log and the lease go on meanwhile. */
function isRead(line: string): boolean {
  return /^GET \S*\/(?:ns|tenant)\//.test(line);
}

function summary(found: readonly First[]): { readonly value: string; readonly note: string } {
  const times = found.map(({ ms }) => ms);
  const spread = (values: readonly number[]) => `${Math.min(...values)} to ${Math.max(...values)}`;
  const wrong = found.filter(({ isRight }) => !isRight).length;
  return {
    value: `p50 ${percentile(times, 0.5).toFixed(0)} ms`,
    note:
      `${latencyText(times)}; rounds ${spread(found.map(({ rounds }) => rounds))}, ` +
      `GETs ${spread(found.map(({ gets }) => gets))}; ${wrong} of ${found.length} answers wrong`,
  };
}
