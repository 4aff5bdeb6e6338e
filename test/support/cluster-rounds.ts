/** Bad days of a cluster under an open loop of reads and writes: faults, one a round, and what became of every answer. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { placementKey } from '../../protocol/placement.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import { type ClusterServer, metric, ServerCluster } from './cluster.ts';
import { ClusterLoad } from './cluster-load.ts';
import { Measured } from './cluster-measured.ts';
import type { S3Bucket } from './s3-server.ts';

export const clusterFaults = [
  'leave and join',
  'kill -9',
  'kill -9, supervised',
  'pause',
  'peer cut',
  'rolling restart',
  'scale in and out',
  'leave beside a join',
  'cut from S3',
  'S3 away',
] as const;
export type ClusterFault = (typeof clusterFaults)[number];
/** Faults of what is between a server and its bucket. */
export const faultsOfS3: readonly ClusterFault[] = ['cut from S3', 'S3 away'];

export interface RoundsOptions {
  readonly fault: ClusterFault;
  readonly rounds: number;
  readonly namespaces: number;
  readonly random: () => number;
  /** Where the objects lie; null: in a folder. */
  readonly bucket: S3Bucket | null;
  /** The folder that keeps what the servers logged and when each fault came; null: none. */
  readonly logFolder: string | null;
  /** The only cores that the servers may run on, as `taskset -c` takes them; null: all. */
  readonly serverCores: string | null;
}

export interface RoundsReport {
  /** What was measured: before the faults, while each lasts, and while all becomes as it was. */
  readonly measured: readonly Measured[];
  readonly answered: number;
  readonly lost: readonly string[];
  readonly wrong: readonly string[];
  /** Why the rounds ended before their time; null where they did not. */
  readonly broken: unknown;
}

/** How long the servers run before a fault, in milliseconds. */
const steadyMs = 4_000;
/** The same where one is to be noticed that is away: a server that has just started suspects nobody. */
const watchfulMs = 11_000;
const faultsToNotice: readonly ClusterFault[] = ['kill -9', 'kill -9, supervised', 'pause', 'cut from S3'];
/** Between two of the reads by which each namespace shows that it is there, in milliseconds. */
const readEachEveryMs = 5;
/** Before everything is read that was written, in milliseconds: allowances that were used up are there again. */
const settledMs = 2_000;
/** How long a paused server sleeps, and one is cut from S3: longer than others wait before they remove it. */
const pauseMs = 30_000;
/** How long two peers do not hear each other, in milliseconds. */
const peerCutMs = 10_000;
/** How long S3 is away: longer than a lease may stand still. */
const storeAwayMs = 20_000;

export async function clusterRounds(options: RoundsOptions): Promise<RoundsReport> {
  const { fault, rounds, namespaces, random, bucket, logFolder, serverCores } = options;
  if (logFolder !== null) mkdirSync(logFolder, { recursive: true });
  const cluster = await ServerCluster.start({
    servers: 3,
    bucket,
    // A proxy takes a connection to a server that has died, which nobody else would.
    breakable: fault === 'peer cut' ? 'peers' : faultsOfS3.includes(fault) ? 'store' : null,
    supervised: fault === 'kill -9, supervised',
    logFolder,
    cores: serverCores,
    // What servers have that nobody sets otherwise.
    env: { TIDEBASE_COMMIT_MS: '250', TIDEBASE_ACTOR_THREADS: '' },
  });
  const asked = new Set(cluster.servers);
  const [first] = cluster.clients(null);
  const { key, tenant_id: tenantId } =
    (await first?.signup('rounds@example.com')) ?? assert.fail('no server');
  const urls = () => [...asked].map(({ process }) => process.url);
  const load = new ClusterLoad({ key, name: 'space', namespaces, everyMs: 5 * namespaces, random, urls });
  const note = (text: string) => {
    const line = `${new Date().toISOString()} ${text}\n`;
    if (logFolder !== null) appendFileSync(join(logFolder, 'faults.log'), line);
  };
  const bad = new BadDays({ cluster, asked, load, tenantId, random, note });
  const lost: string[] = [];
  let broken: unknown = null;
  try {
    await load.fill();
    load.begin();
    for (let round = 0; round < rounds; round++) await bad.round(fault);
    await load.stop();
    await sleep(settledMs);
    for (const { process } of cluster.servers) lost.push(...(await load.lostAt(process.url)));
    await cluster.stop();
  } catch (error) {
    broken = error;
    void load.stop();
    for (const { process } of cluster.running) await process.kill();
  }
  load.close();
  await cluster.closeProxies();
  const { answered, wrong } = load;
  return { measured: bad.measured, answered, lost, wrong, broken };
}

interface Scene {
  readonly cluster: ServerCluster;
  /** Servers that clients ask. */
  readonly asked: Set<ClusterServer>;
  readonly load: ClusterLoad;
  readonly tenantId: number;
  readonly random: () => number;
  /** Keeps a line about what happens now. */
  readonly note: (text: string) => void;
}

class BadDays {
  readonly #scene: Scene;
  readonly #measured = new Map<string, Measured>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  get measured(): readonly Measured[] {
    return [...this.#measured.values()];
  }

  async round(fault: ClusterFault): Promise<void> {
    const { cluster, random } = this.#scene;
    await this.#during('steady', [], () => sleep(faultsToNotice.includes(fault) ? watchfulMs : steadyMs));
    const [some, other, third] = shuffled(cluster.servers, random);
    assert(some !== undefined && other !== undefined && third !== undefined);
    switch (fault) {
      case 'leave and join':
        await this.#during('leave', [some], () => this.#stop(some));
        return this.#during('join', [some], () => this.#start(some));
      case 'kill -9':
        await this.#during('kill -9', [some], async () => {
          this.#scene.asked.delete(some);
          await some.process.kill();
        });
        return this.#during('join after it', [some], () => this.#start(some));
      case 'kill -9, supervised':
        return this.#during('kill -9, supervised', [some], () => this.#killSupervised(some));
      case 'pause':
        await this.#during('pause', [some], () => this.#pause(some));
        return this.#during('join after it', [some], () => this.#start(some));
      case 'peer cut':
        return this.#during('peer cut', cluster.servers, () => this.#cutPeers(some, other));
      case 'rolling restart':
        return this.#during('rolling restart', cluster.servers, async () => {
          for (const server of cluster.servers) {
            await this.#stop(server);
            await this.#start(server);
          }
        });
      case 'scale in and out':
        await this.#during('scale in', [some, other], async () => {
          await this.#stop(some);
          await this.#stop(other);
        });
        return this.#during('scale out', [some, other], async () => {
          await Promise.all([this.#start(some), this.#start(other)]);
        });
      case 'leave beside a join':
        await this.#stop(some);
        await sleep(steadyMs);
        await this.#during('leave beside a join', [some, other], async () => {
          await Promise.all([this.#start(some), this.#stop(other)]);
        });
        return this.#start(other);
      case 'cut from S3':
        await this.#during('cut from S3', [some], () => this.#cutFromStore(some));
        return this.#during('join after it', [some], () => this.#start(some));
      default:
        return this.#during('S3 away', cluster.servers, () => this.#storeAway());
    }
  }

  /**
   * Measures until each namespace is read again. `affected`: servers that own, before or after it, what it is about. Where one of them owns
   * the tenant, all namespaces are affected.
   */
  async #during(name: string, affected: readonly ClusterServer[], work: () => Promise<void>): Promise<void> {
    const { cluster, load, tenantId, note } = this.#scene;
    load.measure();
    note(`${name} begins: ${affected.map((server) => cluster.servers.indexOf(server) + 1).join(', ')}`);
    await work();
    note(`${name}: done`);
    await load.readEach(readEachEveryMs);
    const ids = cluster.servers.map((server) => cluster.idOf(server));
    const ownerIsAffected = (space: string) => {
      const owner = cluster.servers[rendezvousPick(placementKey(tenantId, space), ids)];
      return owner !== undefined && affected.includes(owner);
    };
    // Who owns a tenant is asked each second whether its credentials still hold.
    const tenantIsAffected = ownerIsAffected('');
    const isAffected = (space: string) => tenantIsAffected || ownerIsAffected(space);
    const measured = this.#measured.get(name) ?? new Measured(name);
    this.#measured.set(name, measured);
    const figures = load.figures();
    measured.add(figures, load.failures, isAffected);
    const longest = (values: readonly number[]) => Math.round(Math.max(0, ...values));
    const ofAffected = figures.filter((each) => isAffected(each.name));
    const reads = longest(ofAffected.map(({ readGapMs }) => readGapMs));
    const writes = longest(ofAffected.map(({ writeGapMs }) => writeGapMs));
    const told = JSON.stringify([...load.failures, ...load.sentences]);
    note(`${name} ends: no read for ${reads} ms, no write for ${writes} ms ${told}`);
  }

  /** Clients turn to the others first, as a balancer does that asks `/readyz`. */
  async #stop(server: ClusterServer): Promise<void> {
    this.#scene.asked.delete(server);
    assert.deepEqual(await server.process.stop(), { code: 0, signal: null }, server.process.errors);
  }

  async #start(server: ClusterServer): Promise<void> {
    const { cluster, asked } = this.#scene;
    await cluster.restart(server);
    asked.add(server);
  }

  /** The supervisor starts it again at once. */
  async #killSupervised(server: ClusterServer): Promise<void> {
    const { cluster, asked } = this.#scene;
    const { process } = server;
    const died = process.serverPid;
    asked.delete(server);
    globalThis.process.kill(died, 'SIGKILL');
    const times = process.urls.length;
    await process.listening(times + 1);
    assert.notEqual(process.serverPid, died);
    await cluster.whenActive();
    asked.add(server);
  }

  async #pause(server: ClusterServer): Promise<void> {
    this.#scene.asked.delete(server);
    server.process.signal('SIGSTOP');
    await sleep(pauseMs);
    server.process.signal('SIGCONT');
    // It finds its log sealed, and ends; whoever supervises it starts it again.
    assert.equal((await server.process.end()).code, 1, server.process.errors);
  }

  /** What `from` sends does not come to `to`, whoever of them has dialled. */
  async #cutPeers(from: ClusterServer, to: ClusterServer): Promise<void> {
    to.toPeer?.hold(from.process.pid, 'up');
    from.toPeer?.hold(to.process.pid, 'down');
    await sleep(peerCutMs);
    for (const { toPeer } of [from, to]) toPeer?.heal();
  }

  /** Others take over; it finds its log sealed when it reaches the store again, and ends. */
  async #cutFromStore(server: ClusterServer): Promise<void> {
    this.#scene.asked.delete(server);
    await server.toStore?.set({ mode: 'hang' });
    await sleep(pauseMs);
    await server.toStore?.set({ mode: 'pass' });
    assert.equal((await server.process.end()).code, 1, server.process.errors);
  }

  /** Nobody is evicted for it. */
  async #storeAway(): Promise<void> {
    const { servers } = this.#scene.cluster;
    const evictions = () =>
      Promise.all(servers.map((each) => metric(each.metricsUrl, 'tidebase_cluster_evictions_total')));
    const before = await evictions();
    await Promise.all(servers.map(({ toStore }) => toStore?.set({ mode: 'refuse' })));
    await sleep(storeAwayMs);
    await Promise.all(servers.map(({ toStore }) => toStore?.set({ mode: 'pass' })));
    await sleep(steadyMs);
    assert.deepEqual(await evictions(), before);
    for (const { process } of servers) assert.ok(process.running, process.errors);
  }
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
