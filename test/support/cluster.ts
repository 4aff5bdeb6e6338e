/** Several real servers on one folder of objects, or one bucket, each a process of its own. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { placementKey } from '../../protocol/placement.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import { ownersOf, readView } from '../../src/cluster/view.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { ApiClient } from './api-client.ts';
import { eventually } from './eventually.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { freePorts } from './free-ports.ts';
import { PeerProxy } from './peer-proxy.ts';
import { type S3Bucket, serverEnvOf } from './s3-server.ts';
import {
  type ServerProcess,
  type ServerProcessOptions,
  startServer,
  temporaryFolder,
} from './server-process.ts';

const secretOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
export const clusterKey = secretOf(3);
/** What all servers must agree on. */
export const clusterSecrets: Readonly<Record<string, string>> = {
  TIDEBASE_CLUSTER_KEY: clusterKey,
  TIDEBASE_LOGIN_TOKEN_KEY: secretOf(1),
  TIDEBASE_KEY_ENCRYPTION_KEY: secretOf(2),
};

export interface ClusterServer {
  /** The process that serves now. */
  process: ServerProcess;
  readonly metricsUrl: string;
  readonly options: ServerProcessOptions;
  /** What its objects go through; null where they lie in a folder, or nothing is to be broken. */
  readonly toStore: FaultProxy | null;
  /** What others connect to; null where nothing is to be broken. */
  readonly toPeer: PeerProxy | null;
}

export interface ClusterOptions {
  readonly servers: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Where the objects lie; default: in a folder. */
  readonly bucket?: S3Bucket | null;
  /** What can be broken: what is between the servers, or between each of them and the bucket. Default: neither. */
  readonly breakable?: 'peers' | 'store' | null;
  /** Whether a server that dies is started again by its supervisor. */
  readonly supervised?: boolean;
  /** The folder into which each server writes what it logs; null, the default: none. */
  readonly logFolder?: string | null;
  /** The only cores that the servers may run on, as `taskset -c` takes them; null, the default: all. */
  readonly cores?: string | null;
}

export class ServerCluster {
  readonly servers: readonly ClusterServer[];
  readonly folder: string;

  private constructor(servers: readonly ClusterServer[], folder: string) {
    this.servers = servers;
    this.folder = folder;
  }

  /** Starts the servers; resolves when all are active. */
  static async start(asked: ClusterOptions): Promise<ServerCluster> {
    const { servers: count, bucket = null, breakable = null, supervised = false } = asked;
    const { logFolder = null, cores = null } = asked;
    const env = { ...(bucket === null ? {} : serverEnvOf(bucket)), ...asked.env };
    const folder = temporaryFolder();
    const ports = await freePorts(4 * count);
    const servers = await Promise.all(
      Array.from({ length: count }, async (_, at): Promise<ClusterServer> => {
        const [peerPort = 0, metricsPort = 0, port = 0, proxyPort = 0] = ports.slice(4 * at);
        const toStore =
          breakable === 'store' && bucket !== null
            ? await startFaultProxy({ targetPort: bucket.port })
            : null;
        const toPeer =
          breakable === 'peers' ? await PeerProxy.start({ port: proxyPort, targetPort: peerPort }) : null;
        const options: ServerProcessOptions = {
          folder: join(folder, `server-${at + 1}`),
          command: supervised ? 'serve' : 'server',
          ...(logFolder === null ? {} : { logFile: join(logFolder, `server-${at + 1}.log`) }),
          ...(cores === null ? {} : { cores }),
          env: {
            // The same after a restart, as behind a balancer.
            TIDEBASE_PORT: String(port),
            TIDEBASE_BASE_URL: 'http://127.0.0.1:1',
            ...(env.TIDEBASE_OBJECT_STORE === 's3' ? {} : { TIDEBASE_OBJECTS_DIR: join(folder, 'objects') }),
            TIDEBASE_PEER_PORT: String(peerPort),
            TIDEBASE_METRICS_PORT: String(metricsPort),
            ...clusterSecrets,
            TIDEBASE_ACTOR_THREADS: '1',
            TIDEBASE_COMPUTE_THREADS: '1',
            TIDEBASE_COMMIT_MS: '25',
            ...env,
            ...(toStore === null ? {} : { S3_ENDPOINT: toStore.url }),
            ...(toPeer === null ? {} : { TIDEBASE_PEER_ADDRESS: `127.0.0.1:${proxyPort}` }),
          },
        };
        const process = await startServer(options);
        return { process, metricsUrl: `http://127.0.0.1:${metricsPort}`, options, toStore, toPeer };
      }),
    );
    const cluster = new ServerCluster(servers, folder);
    await cluster.whenActive();
    return cluster;
  }

  get running(): readonly ClusterServer[] {
    return this.servers.filter(({ process }) => process.running);
  }

  /** Lets everything flow again, and ends what stands between the servers. */
  async closeProxies(): Promise<void> {
    for (const { toStore, toPeer } of this.servers) {
      toPeer?.close();
      await toStore?.close();
    }
  }

  clients(key: string | null): readonly ApiClient[] {
    return this.running.map(({ process }) => new ApiClient(process.url, key));
  }

  /**
   * Resolves when each that runs, and was not asked to end, knows as many active members as run. They may become more or fewer meanwhile:
   * others are started or stopped beside it.
   */
  async whenActive(): Promise<void> {
    for (const { metricsUrl, process } of this.running.filter(({ process: { isStopping } }) => !isStopping))
      await eventually(
        async () => {
          if (!process.running) throw new Error(`a server has ended\n${process.errors}`);
          if ((await stateOf(metricsUrl)) !== 'active') return false;
          return (
            (await metric(metricsUrl, 'tidebase_cluster_members{state="active"}')) === this.running.length
          );
        },
        () => `${this.running.length} active servers at ${metricsUrl}\n${process.errors}`,
        50,
      );
  }

  /** Stops all servers at once. Throws where one of them does not end in order. */
  async stop(): Promise<void> {
    await Promise.all(
      this.running.map(async ({ process }) => {
        const { code } = await process.stop();
        if (code !== 0) throw new Error(`a server ended with ${code}\n${process.errors}`);
      }),
    );
  }

  /** The server that owns a namespace, or with an empty name the tenant itself, by the view in the store. Of a folder of objects only. */
  async ownerOf(tenantId: number, namespace: string): Promise<ClusterServer> {
    const folder = join(this.folder, 'objects');
    const store = await FsObjectStore.open(folder, systemClock, systemRandom);
    const view = await readView(store);
    await store.close();
    const { servers } = ownersOf(view, '');
    const serverId = servers[rendezvousPick(placementKey(tenantId, namespace), servers)];
    const { address = '' } = view.members.find((member) => member.serverId === serverId) ?? {};
    const owner = this.servers.find(({ options }) => address.endsWith(`:${options.env?.TIDEBASE_PEER_PORT}`));
    return owner ?? assert.fail(`no server has the address ${address}`);
  }

  /** Starts all servers that do not run, at once. */
  async startAgain(): Promise<void> {
    const gone = this.servers.filter(({ process }) => !process.running);
    await Promise.all(
      gone.map(async (server) => {
        server.process = await startServer(server.options);
      }),
    );
    await this.whenActive();
  }

  async restart(server: ClusterServer): Promise<void> {
    server.process = await startServer(server.options);
    await this.whenActive();
  }

  /** The id by which data is placed on a server. */
  idOf({ options }: ClusterServer): string {
    return readFileSync(join(options.folder, 'server-id'), 'utf8').trim();
  }
}

/** Asks a server's `/readyz` for its state. */
export async function stateOf(metricsUrl: string): Promise<string> {
  const answer = await fetch(`${metricsUrl}/readyz`);
  const state = (await answer.text()).trim();
  return answer.ok === (state === 'active') ? state : `${state} with ${answer.status}`;
}

/** A sample by its name and labels, as `/metrics` has it; NaN where it is not there. */
export async function metric(metricsUrl: string, sample: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  return line === undefined ? Number.NaN : Number(line.slice(sample.length + 1));
}
