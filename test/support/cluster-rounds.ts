/** Bad days of a cluster under an open loop of reads and writes: one fault a round, and what became of every answer. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ClusterServer, ServerCluster } from './cluster.ts';
import { ClusterLoad } from './cluster-load.ts';
import { eventually } from './eventually.ts';

export const clusterFaults = ['kill -9', 'pause', 'rolling restart', 'scale in and out'] as const;
export type ClusterFault = (typeof clusterFaults)[number];

export interface RoundsOptions {
  readonly fault: ClusterFault;
  readonly rounds: number;
  readonly namespaces: number;
  readonly random: () => number;
  /** How long a paused server sleeps: longer than others wait before they remove it. */
  readonly pauseMs: number;
}

export interface RoundsReport {
  readonly fault: ClusterFault;
  readonly rounds: number;
  readonly answered: number;
  /** The longest time for which a namespace was not read in each round, in milliseconds, sorted. */
  readonly gapsMs: readonly number[];
  readonly lost: readonly string[];
  readonly wrong: readonly string[];
  readonly failures: ReadonlyMap<string, number>;
}

/** How long the servers run before a fault, in milliseconds: one that has just started suspects nobody. */
const steadyMs = 11_000;

export async function clusterRounds(options: RoundsOptions): Promise<RoundsReport> {
  const { fault, rounds, namespaces, random, pauseMs } = options;
  const cluster = await ServerCluster.start({ servers: 3 });
  const asked = new Set(cluster.servers);
  const [first] = cluster.clients(null);
  const { key } = (await first?.signup('rounds@example.com')) ?? assert.fail('no server');
  const urls = () => [...asked].map(({ process }) => process.url);
  const load = new ClusterLoad({ key, name: 'space', namespaces, everyMs: 5 * namespaces, random, urls });
  await load.fill();
  await sleep(steadyMs);
  const gapsMs: number[] = [];
  const lost: string[] = [];
  load.begin();
  for (let round = 0; round < rounds; round++) {
    load.measure();
    await eventually(() => load.areAllRead, 'all are read before the fault');
    load.measure();
    const some = cluster.servers[Math.floor(random() * 3)] ?? assert.fail('no server');
    await faulty(fault, { cluster, some, asked, load, pauseMs });
    gapsMs.push(load.gaps().at(-1) ?? Number.NaN);
    await cluster.whenActive();
    if (fault !== 'rolling restart' && fault !== 'scale in and out') await sleep(steadyMs);
  }
  await load.stop();
  for (const { process } of cluster.servers) lost.push(...(await load.lostAt(process.url)));
  load.close();
  await cluster.stop();
  const { answered, wrong, failures } = load;
  return { fault, rounds, answered, gapsMs: gapsMs.sort((a, b) => a - b), lost, wrong, failures };
}

interface Scene {
  readonly cluster: ServerCluster;
  readonly some: ClusterServer;
  /** Servers that clients ask. */
  readonly asked: Set<ClusterServer>;
  readonly load: ClusterLoad;
  readonly pauseMs: number;
}

async function faulty(fault: ClusterFault, scene: Scene): Promise<void> {
  const { cluster, some, asked, load, pauseMs } = scene;
  switch (fault) {
    case 'kill -9':
      asked.delete(some);
      await some.process.kill();
      await readAgain(load);
      await cluster.restart(some);
      asked.add(some);
      return;
    case 'pause':
      asked.delete(some);
      some.process.signal('SIGSTOP');
      await sleep(pauseMs);
      some.process.signal('SIGCONT');
      // It finds its log sealed, and ends; whoever supervises it starts it again.
      assert.equal((await some.process.end()).code, 1, some.process.errors);
      await readAgain(load);
      await cluster.restart(some);
      asked.add(some);
      return;
    case 'rolling restart':
      for (const server of cluster.servers) await stopAndStart(cluster, [server], asked);
      return;
    default:
      await stopAndStart(cluster, cluster.servers.slice(1), asked);
  }
}

/** Clients turn to the others first, as a balancer does that asks `/readyz`. */
async function stopAndStart(
  cluster: ServerCluster,
  servers: readonly ClusterServer[],
  asked: Set<ClusterServer>,
): Promise<void> {
  for (const server of servers) {
    asked.delete(server);
    assert.deepEqual(await server.process.stop(), { code: 0, signal: null }, server.process.errors);
  }
  for (const server of servers) {
    await cluster.restart(server);
    asked.add(server);
  }
}

async function readAgain(load: ClusterLoad): Promise<void> {
  const readBefore = load.reads();
  await eventually(
    () => load.reads().every((count, at) => count > (readBefore[at] ?? 0)),
    'every namespace is read again',
  );
}

/** One line of a table. */
export function lineOfRounds(report: RoundsReport): string {
  const { fault, rounds, answered, gapsMs, lost, wrong, failures } = report;
  const quantile = (part: number) =>
    Math.round(gapsMs[Math.min(gapsMs.length - 1, Math.ceil(part * gapsMs.length) - 1)] ?? 0);
  const kinds = [...failures].map(([kind, count]) => `${count} × ${kind}`).join(', ');
  return (
    `${fault}: ${rounds} rounds, ${answered} answers; longest without a read p50 ${quantile(0.5)} ms, ` +
    `p95 ${quantile(0.95)} ms, max ${quantile(1)} ms; ${lost.length} lost, ${wrong.length} wrong; errors: ${kinds || 'none'}`
  );
}
