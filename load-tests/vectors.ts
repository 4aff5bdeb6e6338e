/**
 * `npm run measure -- vectors`: search by vectors, through HTTP. How fast they come in and are indexed, what the answers miss of the true
 * neighbours, with filters and after a fifth of the documents were replaced or deleted, and how fast they come. Ends with 1
 * where a bar is missed.
 *
 *   --documents=100000   --dims=256   --queries=200   --seed=1   --source=texts   --peer=none
 *
 * `--source=texts` takes real texts' vectors by the built-in model (512 numbers) in place of clustered ones.
 */
import { join } from 'node:path';
import type { SearchAnswer } from '../protocol/search.ts';
import { Chance } from '../test/simulation/chance.ts';
import { thousands } from './bench-report.ts';
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { lanceOf } from './lancedb.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { percentile } from './open-loop.ts';
import { numberOption, textOption } from './options.ts';
import { postUntilTaken } from './put-texts.ts';
import { temporaryFolder } from './server.ts';
import { textVectors } from './text-vectors.ts';
import { whenVectorsIndexed } from './vector-counts.ts';
import {
  clusteredVectors,
  documentOf,
  type LiveRows,
  metaOf,
  type Near,
  rowOf,
  shares,
  trueNeighbours,
  type VectorRows,
  vectorBody,
} from './vector-set.ts';
import { rateOfBodies, wrkIsInstalled } from './wrk.ts';

const documents = numberOption('documents', isQuick ? 5_000 : 100_000);
const fromTexts = textOption('source') === 'texts';
const dims = fromTexts ? 512 : numberOption('dims', 256);
const queries = numberOption('queries', isQuick ? 20 : 200);
const seed = numberOption('seed', 1);
const limit = 10;
const namespace = 'vectors';
const perRequest = 1_000;
const bars = {
  indexedSeconds: 60,
  recall: 0.98,
  warmMs: 1,
  filteredMs: 15,
  ratePerSecond: 1_500,
  connections: 16,
  peerRatio: 3,
};

const everything = { name: 'all', key: null, of: 1 } as const;
type Share = (typeof shares)[number] | typeof everything;

const filterOf = ({ key }: Share) => (key === null ? {} : { filter: { [key]: 0 } });
const keepsOf =
  ({ key }: Share) =>
  (document: number) =>
    key === null || metaOf(document)[key] === 0;

interface World {
  readonly server: MeasuredServer;
  readonly client: Connections;
  readonly vectors: VectorRows;
  readonly live: LiveRows;
}

async function write(
  { client, vectors }: Pick<World, 'client' | 'vectors'>,
  written: readonly { readonly document: number; readonly row: number }[],
): Promise<void> {
  let next = 0;
  const send = async () => {
    while (next < written.length) {
      const some = written.slice(next, next + perRequest);
      next += perRequest;
      const body = vectorBody(
        vectors,
        some,
        (document) => `Document ${document} of those that are searched.`,
      );
      await postUntilTaken(client, `/v1/namespaces/${namespace}/docs`, body);
    }
  };
  await Promise.all([send(), send()]);
}

const bodyOf = (query: Float32Array, share: Share, exact = false) =>
  Buffer.from(JSON.stringify({ vector: [...query], limit, ...filterOf(share), ...(exact && { exact }) }));

async function ask({ client }: World, body: Buffer): Promise<SearchAnswer> {
  return JSON.parse(await client.post(`/v1/namespaces/${namespace}/search`, body)) as SearchAnswer;
}

const all: readonly Share[] = [everything, ...shares];

/** Not timed: they fill caches, and the server's code is compiled while it runs. */
const warmUpMs = 2_000;

/** Recall, times and what was wrong, of one kind of query. */
async function measure(
  judge: Judge,
  world: World,
  asked: readonly { readonly body: Buffer; readonly truth: readonly Near[] }[],
  { share, what }: { readonly share: Share; readonly what: string },
): Promise<void> {
  const keeps = keepsOf(share);
  let [found, wanted, wrong] = [0, 0, 0];
  for (const { body, truth } of asked) {
    const { hits } = await ask(world, body);
    const farthest = truth.at(-1)?.distance ?? 0;
    wanted += truth.length;
    // By distance: of equally near ones any will do.
    found += hits.filter(({ distance = 2 }) => distance <= farthest + 1e-12).length;
    if (hits.length !== truth.length || hits.some(({ id }) => !keeps(documentOf(id)))) wrong++;
  }
  const recall = found / wanted;
  const timesMs: number[] = [];
  const warmSince = performance.now();
  for (let at = 0; timesMs.length < 2 * queries; at++) {
    const { body } = asked[at % queries] as (typeof asked)[number];
    const began = performance.now();
    await ask(world, body);
    if (began - warmSince >= warmUpMs) timesMs.push(performance.now() - began);
  }
  const p50 = percentile(timesMs, 0.5);
  const barMs = share === everything ? bars.warmMs : bars.filteredMs;
  const isWarm = what === 'indexed';
  judge.tell(
    {
      name: `${what}: recall@10, ${share.name}`,
      value: recall.toFixed(4),
      bar: `≥ ${bars.recall}`,
      ok: recall >= bars.recall && wrong === 0,
      ...(wrong > 0 && { note: `WRONG ${wrong} answers had too few hits, or others than the filter keeps` }),
    },
    {
      name: `${what}: one client, ${share.name}`,
      value: `p50 ${p50.toFixed(2)} ms`,
      ...((isWarm || share !== everything) && { bar: `≤ ${barMs} ms`, ok: p50 <= barMs }),
      note: `p90 ${percentile(timesMs, 0.9).toFixed(2)}, p99 ${percentile(timesMs, 0.99).toFixed(2)} ms`,
    },
  );
}

async function measureAll(judge: Judge, before: World, from: number, what: string): Promise<void> {
  const selections = all.map(keepsOf);
  const { vectors, live } = before;
  const truths = Array.from({ length: queries }, (_, at) =>
    trueNeighbours(vectors, live, rowOf(vectors, from + at), { count: limit, selections }),
  );
  const world = withNewClient(before);
  for (const [number, share] of all.entries()) {
    const asked = truths.map((truth, at) => ({
      body: bodyOf(rowOf(world.vectors, from + at), share),
      truth: truth[number] ?? [],
    }));
    await measure(judge, world, asked, { share, what });
  }
  if (what === 'indexed') await tellFloor(judge, world);
  world.client.close();
}

/** Connections that were idle for long are closed by the server at any moment. */
function withNewClient(world: World): World {
  const { process: server, key } = world.server;
  return { ...world, client: new Connections(server.url, key, 4) };
}

/** What a request costs that hardly asks anything: the rest of the above is the search. */
async function tellFloor({ tell }: Judge, { client }: World): Promise<void> {
  const body = Buffer.from(JSON.stringify({ limit }));
  const timesMs: number[] = [];
  for (let at = 0; at < 2 * queries; at++) {
    const began = performance.now();
    await client.post(`/v1/namespaces/${namespace}/search`, body);
    timesMs.push(performance.now() - began);
  }
  const p50 = percentile(timesMs, 0.5);
  tell({ name: `for comparison: the newest ${limit} documents`, value: `p50 ${p50.toFixed(2)} ms` });
}

/** LanceDB's HNSW-SQ index in this process, on the same vectors, asked the same, in the same run; ours through HTTP. */
async function comparePeer({ tell }: Judge, before: World, from: number): Promise<void> {
  const peer = await lanceOf(before.vectors, documents);
  const world = withNewClient(before);
  const timesMs: { readonly ours: number[]; readonly theirs: number[] } = { ours: [], theirs: [] };
  let [found, foundByUs, wanted] = [0, 0, 0];
  const bodies = Array.from({ length: queries }, (_, at) =>
    bodyOf(rowOf(world.vectors, from + at), everything),
  );
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < queries; at++) {
      const query = rowOf(world.vectors, from + at);
      let began = performance.now();
      const theirs = await peer.search(query, limit);
      const theirMs = performance.now() - began;
      began = performance.now();
      const { hits } = await ask(world, bodies[at] as Buffer);
      const ourMs = performance.now() - began;
      if (round > 0) {
        timesMs.theirs.push(theirMs);
        timesMs.ours.push(ourMs);
        continue;
      }
      const [truth = []] = trueNeighbours(world.vectors, world.live, query, {
        count: limit,
        selections: [() => true],
      });
      const good = new Set(truth.map(({ document }) => document));
      wanted += truth.length;
      found += theirs.filter((row) => good.has(row)).length;
      foundByUs += hits.filter(({ id }) => good.has(documentOf(id))).length;
    }
  }
  peer.close();
  world.client.close();
  const [ours, theirs] = [percentile(timesMs.ours, 0.5), percentile(timesMs.theirs, 0.5)];
  const ratio = theirs / ours;
  const isBetter = foundByUs >= found;
  tell({
    name: "LanceDB's HNSW-SQ in this process",
    value: `${ratio.toFixed(1)} × slower`,
    bar: `≥ ${bars.peerRatio} ×`,
    ok: ratio >= bars.peerRatio && isBetter,
    note:
      `p50 ${theirs.toFixed(2)} ms at recall ${(found / wanted).toFixed(4)}, built in ${peer.buildSeconds.toFixed(1)} s; ` +
      `ours, in turn with it, ${ours.toFixed(2)} ms at ${(foundByUs / wanted).toFixed(4)}`,
  });
}

await judged(async (judge) => {
  const { say, tell } = judge;
  const replaced = Math.floor(documents / 10);
  const rows = documents + replaced + queries;
  const vectors = fromTexts ? await textVectors(rows, say) : clusteredVectors(rows, dims, seed);
  const live: LiveRows = Int32Array.from({ length: documents }, (_, document) => document);
  const server = await startMeasured();
  const client = new Connections(server.process.url, server.key, 4);
  const world = { server, client, vectors, live };

  const began = performance.now();
  await write(
    world,
    Array.from(live, (row, document) => ({ document, row })),
  );
  const writtenSeconds = (performance.now() - began) / 1_000;
  const last = await ask(world, bodyOf(rowOf(vectors, documents - 1), everything));
  const isThere = documentOf(last.hits[0]?.id ?? '') === documents - 1;
  await whenVectorsIndexed(server.process, documents * 0.9);
  const indexedSeconds = (performance.now() - began) / 1_000;
  tell(
    {
      name: `${thousands(documents)} × ${dims} written`,
      value: `${writtenSeconds.toFixed(1)} s`,
      bar: 'searchable at once',
      ok: isThere,
    },
    {
      name: 'and indexed, from the first write',
      value: `${indexedSeconds.toFixed(1)} s`,
      bar: `≤ ${bars.indexedSeconds} s`,
      ok: indexedSeconds <= bars.indexedSeconds,
    },
  );
  const from = documents + replaced;
  await measureAll(judge, world, from, 'indexed');

  if (wrkIsInstalled()) {
    const script = join(temporaryFolder(), 'vectors.lua');
    const bodies = Array.from({ length: queries }, (_, at) =>
      bodyOf(rowOf(vectors, from + at), everything).toString(),
    );
    const rate = await rateOfBodies({
      url: `${server.process.url}/v1/namespaces/${namespace}/search`,
      key: server.key,
      script,
      bodies,
      connections: bars.connections,
      seconds: isQuick ? 2 : 10,
    });
    tell({
      name: `${bars.connections} connections`,
      value: `${thousands(rate)} queries/s`,
      bar: `≥ ${thousands(bars.ratePerSecond)}`,
      ok: rate >= bars.ratePerSecond,
    });
  } else say('the rate was not measured: it wants wrk, which is not installed');

  if (textOption('peer') !== 'none') await comparePeer(judge, world, from);
  const changing = withNewClient(world);
  const chance = new Chance(seed, 3);
  const changed = [...new Set(Array.from({ length: documents }, () => chance.integer(0, documents - 1)))];
  const gone = changed.slice(0, replaced);
  const anew = changed
    .slice(replaced, 2 * replaced)
    .map((document, at) => ({ document, row: documents + at }));
  for (let at = 0; at < gone.length; at += perRequest) {
    const ids = gone.slice(at, at + perRequest).map((document) => `document-${document}`);
    await postUntilTaken(
      changing.client,
      `/v1/namespaces/${namespace}/delete`,
      Buffer.from(JSON.stringify({ ids })),
    );
  }
  for (const document of gone) live[document] = -1;
  await write(changing, anew);
  for (const { document, row } of anew) live[document] = row;
  changing.client.close();
  await measureAll(judge, world, from, 'a fifth replaced or deleted');
  await sleep(isQuick ? 0 : 10_000);
  await whenVectorsIndexed(server.process, 0);
  await measureAll(judge, world, from, 'later');
  client.close();
  await server.process.stop();
});
