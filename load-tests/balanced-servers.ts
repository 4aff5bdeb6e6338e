/**
 * The topology of deploy/compose.yml on this machine without containers: three servers on a bucket of an S3 server, and
 * deploy/haproxy.cfg before them. To whoever measures it is one server: its address is the balancer's, its memory and
 * counters are the sums of all three.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { freePorts } from '../test/support/free-ports.ts';
import { newBucket, serverEnvOf, startOwnS3 } from '../test/support/s3-server.ts';
import { sleep } from './judge.ts';
import { missingPrograms } from './outside-programs.ts';
import { type RunningServer, type StartOptions, startServer, temporaryFolder } from './server.ts';

const servers = 3;
const readyMsMax = 60_000;
const lookMs = 50;

interface Place {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly readyUrl: string;
}

export interface BalancedServers {
  /** Starts all of them: the first time on an empty bucket, later on the same, as after a restart of all. */
  readonly start: (options?: StartOptions) => Promise<RunningServer>;
  /** Ends the balancer. */
  end(): Promise<void>;
}

/** Throws where HAProxy is not installed. */
export function balancedServers(): BalancedServers {
  if (missingPrograms('haproxy').length > 0)
    throw new Error('haproxy is not installed: apt-get install haproxy');
  let made: Promise<Topology> | null = null;
  return {
    async start({ env = {} } = {}) {
      made ??= makeTopology();
      return startAll(await made, env);
    },
    async end() {
      const topology = await made;
      topology?.balancer.kill('SIGKILL');
    },
  };
}

interface Topology {
  readonly folder: string;
  readonly url: string;
  readonly places: readonly Place[];
  readonly balancer: ChildProcess;
}

async function makeTopology(): Promise<Topology> {
  const store = serverEnvOf(await newBucket(await s3EnvFile()));
  const folder = temporaryFolder();
  const [listen = 0, ...ports] = await freePorts(1 + 3 * servers);
  const url = `http://127.0.0.1:${listen}`;
  const places = Array.from({ length: servers }, (_, at): Place => {
    const [port = 0, peerPort = 0, metricsPort = 0] = ports.slice(3 * at);
    const own = {
      TIDEBASE_PORT: String(port),
      TIDEBASE_PEER_PORT: String(peerPort),
      TIDEBASE_METRICS_PORT: String(metricsPort),
      TIDEBASE_CLUSTER_KEY: Buffer.alloc(32, 3).toString('base64'),
      TIDEBASE_BASE_URL: url,
    };
    return {
      folder: join(folder, `server-${at + 1}`),
      env: { ...store, ...own },
      readyUrl: `http://127.0.0.1:${metricsPort}/readyz`,
    };
  });
  return { folder, url, places, balancer: startBalancer(listen, places) };
}

let ownS3: ReturnType<typeof startOwnS3> | null = null;

/** The settings file of the S3 server that TIDEBASE_TEST_S3_ENV names, or of one that ends with this run. */
async function s3EnvFile(): Promise<string> {
  // The SDK that makes the bucket says otherwise what it thinks of this version of Node.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
  const given = process.env.TIDEBASE_TEST_S3_ENV;
  if (given !== undefined) return given;
  ownS3 ??= startOwnS3();
  return (await ownS3).envFile;
}

/** Ends the S3 server that was started here, if any. */
export async function endOwnS3(): Promise<void> {
  if (ownS3 !== null) await (await ownS3).end();
  ownS3 = null;
}

function startBalancer(listen: number, places: readonly Place[]): ChildProcess {
  const env: Record<string, string | undefined> = { ...process.env, TIDEBASE_LISTEN: `127.0.0.1:${listen}` };
  for (const [at, { env: of, readyUrl }] of places.entries()) {
    env[`TIDEBASE_${at + 1}`] = `127.0.0.1:${of.TIDEBASE_PORT}`;
    env[`TIDEBASE_READY_${at + 1}`] = new URL(readyUrl).port;
  }
  // What it says of servers that come and go is expected.
  const child = spawn('haproxy', ['-db', '-f', 'deploy/haproxy.cfg'], { env, stdio: 'ignore' });
  process.once('exit', () => child.kill('SIGKILL'));
  child.unref();
  return child;
}

async function startAll({ folder, url, places }: Topology, more: Readonly<Record<string, string>>) {
  const start = ({ folder: own, env }: Place) => startServer({ folder: own, env: { ...more, ...env } });
  const running = await Promise.all(places.map(start));
  await Promise.all(places.map(whenReady));
  await balancerIsReady(url);
  const living = () => running.filter((server) => server.ending() === null);
  const sum = (of: (server: RunningServer) => number) =>
    living().reduce((total, server) => total + of(server), 0);
  const [first] = running;
  if (first === undefined) throw new Error('no server was started');
  const group: RunningServer = {
    url,
    metricsUrl: first.metricsUrl,
    get metricsUrls() {
      return living().map(({ metricsUrl }) => metricsUrl);
    },
    folder,
    dataFolders: places.map((place) => place.folder),
    processId: first.processId,
    get processIds() {
      return living().map(({ processId }) => processId);
    },
    residentBytes: () => sum((server) => server.residentBytes()),
    anonymousBytes: () => sum((server) => server.anonymousBytes()),
    ending: () => (living().length > 0 ? null : (first.ending() ?? 'ended')),
    async stop() {
      await Promise.all(living().map((server) => server.stop()));
    },
    async kill() {
      await Promise.all(living().map((server) => server.kill()));
    },
    async restartInTurn() {
      for (const [at, place] of places.entries()) {
        await running[at]?.stop();
        running[at] = await start(place);
        await whenReady(place);
      }
    },
  };
  return group;
}

async function whenReady({ readyUrl, folder }: Place): Promise<void> {
  await answers(readyUrl, `the server of ${folder} is not ready`);
}

async function balancerIsReady(url: string): Promise<void> {
  await answers(`${url}/healthz`, 'the balancer has no server');
}

/** Resolves when the address answers 200. */
async function answers(url: string, otherwise: string): Promise<void> {
  for (const until = performance.now() + readyMsMax; performance.now() < until; ) {
    if ((await fetch(url).catch(() => null))?.ok === true) return;
    await sleep(lookMs);
  }
  throw new Error(`${otherwise} after ${readyMsMax / 1_000} s`);
}
