import { Chance } from '../test/simulation/chance.ts';
import { type Account, signUp, verifyAddress } from './attack-accounts.ts';
import { inParallel } from './in-parallel.ts';
import { Connections } from './measured-server.ts';
import type { LoopRequest, RequestLoop, RequestStream } from './request-loop.ts';
import type { RunningServer } from './server.ts';

/** People who do nothing wrong while somebody else attacks. */
const documents = 3_000;
const documentsAtOnce = 1_000;
const settledAtOnce = 8;
const words =
  'tide harbour noon dusk water moon rock sand wind sail rope mast hull keel deck anchor buoy gull'.split(
    ' ',
  );
/** A regex that is judged on a lane of its own, as it is costly. */
const costlyRegex = '(?:[a-q]?[b-p]){500}x';
const largeTextBytes = 1_000_000;
const importRows = 200;

export interface Neighbours {
  readonly server: RunningServer;
  readonly accounts: readonly Account[];
  /** They have a namespace `meaning` that an embedding provider serves. */
  readonly embed: string | null;
}

export interface NeighbourOptions {
  readonly count: number;
  /** They have the whole free plan; who is unverified has 1 % of it. */
  readonly verified: boolean;
  /** An embedding provider and its key. */
  readonly embed: { readonly provider: string; readonly key: string } | null;
}

/** Signs them up and fills a namespace of some thousand small documents for each. */
export async function settleNeighbours(
  server: RunningServer,
  options: NeighbourOptions,
): Promise<Neighbours> {
  const { count, verified, embed } = options;
  const accounts: Account[] = [];
  await inParallel(count, settledAtOnce, async (i) => {
    const chance = new Chance(7, i);
    const account = await signUp(server, `neighbour-${i}`);
    accounts[i] = account;
    if (verified) await verifyAddress(server, account);
    const client = new Connections(server.url, account.keys[0] ?? '', 4);
    for (let from = 0; from < documents; from += documentsAtOnce)
      await client.post('/v1/namespaces/notes/docs', docsBody(documentsOf(chance, from)));
    await client.post('/v1/namespaces/words/docs', docsBody(lettersOf(chance)));
    if (embed !== null && i === 0) await settleMeaning(client, embed);
    client.close();
  });
  return { server, accounts, embed: embed?.provider ?? null };
}

const docsBody = (docs: readonly object[]) => Buffer.from(JSON.stringify({ docs }));

function documentsOf(chance: Chance, from: number): object[] {
  return Array.from({ length: documentsAtOnce }, (_, at) => ({
    id: `d${from + at}`,
    text: `${from + at} ${Array.from({ length: 12 }, () => words[chance.integer(0, words.length - 1)]).join(' ')}`,
    meta: { n: from + at, word: words[(from + at) % words.length] ?? '' },
  }));
}

/** A few kilobytes on which the costly regex goes on for long. */
function lettersOf(chance: Chance): object[] {
  return Array.from({ length: 4 }, (_, i) => ({
    id: `w${i}`,
    text: String.fromCharCode(...Array.from({ length: 2_000 }, () => chance.integer(0x61, 0x70))),
  }));
}

async function settleMeaning(
  client: Connections,
  { provider, key }: { readonly provider: string; readonly key: string },
): Promise<void> {
  const stored = await client.send(
    'PUT',
    `/v1/embedding-keys/${provider}`,
    Buffer.from(JSON.stringify({ key })),
  );
  if (stored.status >= 300) throw new Error(`the provider's key: ${stored.status} ${stored.text}`);
  const made = { name: 'meaning', embed: { provider } };
  await client.post('/v1/namespaces', Buffer.from(JSON.stringify(made)));
  const docs = words.map((word, i) => ({ id: `m${i}`, text: `${word} and ${words[i - 1] ?? 'nothing'}` }));
  await client.post('/v1/namespaces/meaning/docs', docsBody(docs));
}

const notes = '/v1/namespaces/notes';

function searchesOf(count: number): LoopRequest[] {
  return words.flatMap((word) =>
    Array.from({ length: count }, (_, client) => ({
      client,
      method: 'GET',
      path: `${notes}/search?q=${word}&limit=10`,
    })),
  );
}

/** One request of each neighbour, in turn. */
function ofEach(count: number, request: (client: number) => Omit<LoopRequest, 'client'>): LoopRequest[] {
  return Array.from({ length: count }, (_, client) => ({ client, ...request(client) }));
}

const smallWrite = (client: number) => ({
  method: 'POST',
  path: `${notes}/docs`,
  body: JSON.stringify({ docs: [{ id: `written-${client}`, text: `low water ${client}` }] }),
});

/** A body that the server has to find room for. */
const largeWrite = (client: number) => ({
  method: 'POST',
  path: '/v1/namespaces/large/docs',
  body: JSON.stringify({ docs: [{ id: `l${client}`, text: 'tide '.repeat(largeTextBytes / 5) }] }),
});

const smallImport = () => ({
  method: 'POST',
  path: '/v1/namespaces/table/import?format=csv&id=a',
  body: `a,b,c\n${Array.from({ length: importRows }, (_, i) => `${i},${i * 7},row ${i}\n`).join('')}`,
});

const costlyCount = () => ({
  method: 'POST',
  path: '/v1/namespaces/words/count',
  body: JSON.stringify({ q: costlyRegex, regex: true, scan: true }),
});

export interface NeighbourLoad {
  readonly seconds: number;
  readonly searchesPerSecond: number;
  readonly importsPerSecond: number;
}

/** Fewer than a tenant of the free plan may have in flight: what waits for a slow server waits here, and is timed. */
const connectionsOfNeighbour = 12;

/** Warm searches, which are judged by their latency, and everything else that must not fail beside an attack. */
export function neighbourLoop({ server, accounts, embed }: Neighbours, load: NeighbourLoad): RequestLoop {
  const count = accounts.length;
  const { searchesPerSecond, importsPerSecond, seconds } = load;
  const streams: RequestStream[] = [
    { kind: 'search', ratePerSecond: searchesPerSecond, requests: searchesOf(count) },
    { kind: 'healthz', ratePerSecond: 20, requests: [{ client: count, method: 'GET', path: '/healthz' }] },
    { kind: 'write', ratePerSecond: 1, requests: ofEach(count, smallWrite) },
    { kind: 'write of 1 MB', ratePerSecond: 0.5, requests: ofEach(count, largeWrite) },
    { kind: 'import', ratePerSecond: importsPerSecond, requests: ofEach(count, smallImport) },
    { kind: 'costly regex', ratePerSecond: 0.5, requests: ofEach(count, costlyCount) },
  ];
  if (embed !== null) streams.push({ kind: 'semantic', ratePerSecond: 1, requests: meaningSearches() });
  return loopOf(server, accounts, streams, seconds);
}

function meaningSearches(): LoopRequest[] {
  return words.map((word) => ({
    client: 0,
    method: 'GET',
    path: `/v1/namespaces/meaning/search?semantic=${word}&limit=3`,
  }));
}

/** Four reads of a document, a search and a small write a second of each. */
export function ordinaryLoop({ server, accounts }: Neighbours, seconds: number): RequestLoop {
  const count = accounts.length;
  const reads = Array.from({ length: 50 }, (_, i) =>
    ofEach(count, () => ({ method: 'GET', path: `${notes}/docs/d${i * 37}` })),
  ).flat();
  const streams: RequestStream[] = [
    { kind: 'read', ratePerSecond: 4 * count, requests: reads },
    { kind: 'search', ratePerSecond: count, requests: searchesOf(count) },
    { kind: 'write', ratePerSecond: count, requests: ofEach(count, smallWrite) },
    { kind: 'healthz', ratePerSecond: 20, requests: [{ client: count, method: 'GET', path: '/healthz' }] },
  ];
  return loopOf(server, accounts, streams, seconds);
}

function loopOf(
  server: RunningServer,
  accounts: readonly Account[],
  streams: readonly RequestStream[],
  seconds: number,
): RequestLoop {
  const clients = [...accounts.map(({ keys }) => keys[0] ?? ''), ''];
  return { url: server.url, clients, connections: connectionsOfNeighbour, streams, seconds };
}
