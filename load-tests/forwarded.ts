/**
 * `npm run measure -- forwarded`: warm reads of documents through their owner and through another server of the same cluster, in turns: what
 * each costs in processor time of all servers together, and how much later a single read is answered. Three servers on one folder, so
 * rates of this machine would say little; the table says what follows for the throughput of n machines. Needs wrk. Ends with 1 where a bar is
 * missed.
 *
 *   --cpu-prof=FOLDER   has each server write a profile of each of its threads there
 */
import { join } from 'node:path';
import { freePorts } from '../test/support/free-ports.ts';
import { type Measurement, median, spread, thousands } from './bench-report.ts';
import { batchBody, documentIdOf } from './documents.ts';
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { textOption } from './options.ts';
import { treeCpuSeconds } from './processes.ts';
import { type RunningServer, startServer, temporaryFolder } from './server.ts';
import { requestsPerSecond, writePathScript, wrkIsInstalled } from './wrk.ts';

const serversStarted = 3;
const namespaces = 24;
const documents = 200;
const rounds = isQuick ? 1 : 5;
const roundSeconds = isQuick ? 1 : 4;
/** Until V8 has compiled what is hot, on both sides: of each of the other servers half as much is asked as of this one. */
const warmUpRounds = isQuick ? 1 : 4;
const idleSeconds = isQuick ? 1 : 8;
const readsAlone = isQuick ? 200 : 2_000;
const clusterSizes = [1, 2, 3, 5, 10, 50];
const bars = { ratio: 2.5, laterMs: 1 };

interface Way {
  readonly name: string;
  readonly paths: readonly string[];
  readonly script: string;
  /** Microseconds of processor time for each request, of all servers; one figure a round. */
  readonly micros: number[];
  /** How much of that the server took that the client asked. */
  readonly askedMicros: number[];
}

async function startCluster(): Promise<readonly RunningServer[]> {
  const folder = temporaryFolder();
  const profiles = textOption('cpu-prof');
  const nodeArguments = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const ports = await freePorts(serversStarted);
  const secret = (byte: number) => Buffer.alloc(32, byte).toString('base64');
  return Promise.all(
    ports.map((port, at) =>
      startServer({
        folder: join(folder, `server-${at + 1}`),
        nodeArguments,
        env: {
          TIDEBASE_OBJECTS_DIR: join(folder, 'objects'),
          TIDEBASE_PEER_PORT: String(port),
          TIDEBASE_BASE_URL: 'http://127.0.0.1:1',
          TIDEBASE_CLUSTER_KEY: secret(1),
          TIDEBASE_LOGIN_TOKEN_KEY: secret(2),
          TIDEBASE_KEY_ENCRYPTION_KEY: secret(3),
          TIDEBASE_ACTOR_THREADS: '1',
        },
      }),
    ),
  );
}

async function whenActive(servers: readonly RunningServer[]): Promise<void> {
  for (const { metricsUrl } of servers)
    while ((await fetch(`${metricsUrl}/readyz`).catch(() => null))?.ok !== true) await sleep(50);
}

const pathOf = (namespace: string, number: number) =>
  `/v1/namespaces/${namespace}/docs/${documentIdOf(number)}`;

/** Requests of this server's clients that others have answered. */
async function answeredByOthers({ metricsUrl }: RunningServer): Promise<number> {
  const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
  const [, value] = /^tidebase_forwards_total\{outcome="answered"\} (\d+)$/m.exec(metrics) ?? [];
  if (value === undefined) throw new Error('the server counts no forwards');
  return Number(value);
}

/** Writes each namespace through the first server, and tells which of them it had to ask others for. */
async function fill({ process: server, key }: MeasuredServer): Promise<ReadonlyMap<string, boolean>> {
  const client = new Connections(server.url, key, 1);
  const isForwarded = new Map<string, boolean>();
  const forwards = () => answeredByOthers(server);
  for (let at = 0; at < namespaces; at++) {
    const name = `forwarded-${at}`;
    await client.post(`/v1/namespaces/${name}/docs`, batchBody(0, documents));
    await client.get(pathOf(name, 0));
    const before = await forwards();
    for (let read = 0; read < 20; read++) await client.get(pathOf(name, read));
    isForwarded.set(name, (await forwards()) - before >= 20);
  }
  client.close();
  return isForwarded;
}

function wayOf(name: string, of: readonly string[]): Way {
  if (of.length === 0)
    throw new Error(`no namespace is ${name}: start again, their places are drawn by chance`);
  const paths = Array.from({ length: 1_000 }, (_, i) => pathOf(of[i % of.length] ?? '', i % documents));
  const script = join(temporaryFolder(), 'paths.lua');
  writePathScript(script, paths);
  return { name, paths, script, micros: [], askedMicros: [] };
}

const cpuOf = (servers: readonly Pick<RunningServer, 'processId'>[]) =>
  servers.reduce((sum, { processId }) => sum + treeCpuSeconds(processId), 0);

interface Idle {
  /** Seconds of processor time in a second: of the server that is asked, and of all. */
  readonly asked: number;
  readonly all: number;
}

/** What the servers use while nobody asks them anything: leases, views and metrics, which are of no request. */
async function idleOf(asked: MeasuredServer, servers: readonly RunningServer[]): Promise<Idle> {
  const before = [cpuOf([asked.process]), cpuOf(servers)] as const;
  await sleep(idleSeconds * 1_000);
  const [own, all] = [cpuOf([asked.process]) - before[0], cpuOf(servers) - before[1]];
  return { asked: own / idleSeconds, all: all / idleSeconds };
}

async function round(
  asked: MeasuredServer,
  servers: readonly RunningServer[],
  { way, idle }: { readonly way: Way; readonly idle: Idle },
): Promise<void> {
  const [ownBefore, allBefore, beganMs] = [cpuOf([asked.process]), cpuOf(servers), performance.now()];
  const { url } = asked.process;
  const rate = await requestsPerSecond({ url, key: asked.key, script: way.script, seconds: roundSeconds });
  const seconds = (performance.now() - beganMs) / 1_000;
  const each = 1e6 / (rate * roundSeconds);
  way.micros.push((cpuOf(servers) - allBefore - idle.all * seconds) * each);
  way.askedMicros.push((cpuOf([asked.process]) - ownBefore - idle.asked * seconds) * each);
}

/** Milliseconds of reads that are made one at a time, in turns of the ways. */
async function medianMs({ process: server, key }: MeasuredServer, ways: readonly Way[]): Promise<number[]> {
  const client = new Connections(server.url, key, 1);
  const took = ways.map((): number[] => []);
  for (let read = 0; read < readsAlone; read++)
    for (const [at, { paths }] of ways.entries()) {
      const began = performance.now();
      await client.get(paths[read % paths.length] ?? '');
      took[at]?.push(performance.now() - began);
    }
  client.close();
  return took.map(median);
}

function table(local: number, forwarded: number): string {
  const lines = clusterSizes.map((n) => {
    const each = local / n + (forwarded * (n - 1)) / n;
    const cells = [n, `${each.toFixed(1)} µs`, `${((n * local) / each).toFixed(2)} ×`];
    return cells.map((cell) => String(cell).padStart(18)).join('');
  });
  const head = ['servers', 'each read', 'reads of one server'].map((cell) => cell.padStart(18)).join('');
  return ['what follows where a balancer knows no owners, by processor time:', head, ...lines].join('\n');
}

async function measure(judge: Judge): Promise<readonly Measurement[]> {
  const servers = await startCluster();
  await whenActive(servers);
  const [first] = servers;
  if (first === undefined) throw new Error('no server was started');
  const asked = await startMeasured({}, async () => first);
  const isForwarded = await fill(asked);
  const named = (wanted: boolean) => [...isForwarded].filter(([, is]) => is === wanted).map(([name]) => name);
  const local = wayOf('its own', named(false));
  const forwarded = wayOf('forwarded', named(true));
  const ways = [local, forwarded];
  const idle = await idleOf(asked, servers);
  for (let turn = 0; turn < warmUpRounds + rounds; turn++)
    for (const way of ways) await round(asked, servers, { way, idle });
  for (const { micros, askedMicros } of ways)
    for (const figures of [micros, askedMicros]) figures.splice(0, warmUpRounds);
  const [localMs = 0, forwardedMs = 0] = await medianMs(asked, ways);
  for (const server of servers) await server.stop();

  const [ownMicros, otherMicros] = [median(local.micros), median(forwarded.micros)];
  const ratio = otherMicros / ownMicros;
  const ratios = forwarded.micros.map((micros, at) => micros / (local.micros[at] ?? Number.NaN));
  const askedMicros = median(forwarded.askedMicros);
  judge.say(table(ownMicros, otherMicros));
  return [
    {
      name: 'processor time of a forwarded read',
      value: `${ratio.toFixed(2)} of an own one`,
      bar: `≤ ${bars.ratio}`,
      ok: ratio <= bars.ratio,
      note:
        `${otherMicros.toFixed(1)} µs (${askedMicros.toFixed(1)} where it is asked, ${(otherMicros - askedMicros).toFixed(1)} at its owner) ` +
        `against ${ownMicros.toFixed(1)}, without ${(idle.all * 1e3).toFixed(0)} ms a second of all when idle; ratios of ${rounds} rounds ${spread(ratios, 2)}`,
    },
    {
      name: 'one at a time, later at the median',
      value: `${(forwardedMs - localMs).toFixed(2)} ms`,
      bar: `≤ ${bars.laterMs} ms`,
      ok: forwardedMs - localMs <= bars.laterMs,
      note: `${forwardedMs.toFixed(2)} against ${localMs.toFixed(2)} ms, of ${thousands(readsAlone)} reads each`,
    },
  ];
}

if (!wrkIsInstalled()) throw new Error('wrk is not installed: apt-get install wrk');
await judged(async (judge) => judge.tell(...(await measure(judge))));
