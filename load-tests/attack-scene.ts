import { type EmbeddingDouble, startEmbeddingDouble } from '../test/support/embedding-doubles.ts';
import { textOption } from './options.ts';
import { threadCpu, treeCpuSeconds } from './processes.ts';
import { type RunningServer, startServer } from './server.ts';

/** The server that is attacked, and what is seen of it meanwhile. */
export type PlansName = 'built-in' | 'lifted';

export const memoryBytes = 2 ** 30;
/** What lanes, matchers and the process itself may take on top. */
export const memoryAllowanceBytes = 600e6;
const sampleEveryMs = 100;

export interface Scene {
  readonly server: RunningServer;
  /** Providers of embeddings: the attacker's, which may be told to hang, and the neighbours'. */
  readonly providers: { readonly attacker: EmbeddingDouble; readonly neighbour: EmbeddingDouble } | null;
  end(): Promise<void>;
}

export const neighbourProvider = { provider: 'mistral', key: 'neighbour0123456789abcdefghijkl' } as const;
const attackerProviderKey = 'sk-attacker-0123456789abcdef';

/** Not supervised: its end is seen. */
export async function openScene(plans: PlansName, withProviders: boolean): Promise<Scene> {
  const providers = withProviders
    ? {
        attacker: await startEmbeddingDouble('openai', { key: attackerProviderKey }),
        neighbour: await startEmbeddingDouble('mistral', { key: neighbourProvider.key }),
      }
    : null;
  const env: Record<string, string> = { TIDEBASE_MEMORY_BYTES: String(memoryBytes) };
  // An empty setting is one that is not made: the built-in plans.
  if (plans === 'built-in') env.TIDEBASE_PLANS_FILE = '';
  if (providers !== null) {
    env.OPENAI_BASE_URL = providers.attacker.baseUrl;
    env.MISTRAL_BASE_URL = providers.neighbour.baseUrl;
  }
  // For `node --cpu-prof`: profiles are written at an orderly end.
  const profiles = textOption('profiles');
  const nodeArguments = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const server = await startServer({ env, nodeArguments });
  return {
    server,
    providers,
    async end() {
      if (server.ending() === null) await (profiles === null ? server.kill() : server.stop());
      await providers?.attacker.close();
      await providers?.neighbour.close();
    },
  };
}

/** What a process took while it was watched. */
export interface Watched {
  /** How it ended. Null: the same process still runs. */
  readonly ending: string | null;
  readonly residentBytesMax: number;
  /** Without pages of files. */
  readonly anonymousBytesMax: number;
  readonly cpuSeconds: number;
  /** Of the threads that used most, in seconds. */
  readonly busiest: string;
  /** What the server has charged to shares, all together, in seconds. */
  readonly chargedSeconds: number;
  /** Of each thread, with its cause, as far as the server tells it. */
  readonly longestTurns: readonly string[];
}

export function watchServer(server: RunningServer): { stop(): Promise<Watched> } {
  let [resident, anonymous] = [0, 0];
  const sample = () => {
    if (server.ending() !== null) return;
    resident = Math.max(resident, server.residentBytes());
    anonymous = Math.max(anonymous, server.anonymousBytes());
  };
  const cpuBefore = treeCpuSeconds(server.processId);
  const threadsBefore = new Map(
    threadCpu(server.processId).map((thread) => [thread.threadId, thread.seconds]),
  );
  const chargedBefore = readMetrics(server).then(chargedSecondsOf);
  chargedBefore.catch(() => undefined);
  const timer = setInterval(sample, sampleEveryMs);
  return {
    async stop() {
      clearInterval(timer);
      const ending = server.ending();
      const watched = { ending, residentBytesMax: resident, anonymousBytesMax: anonymous };
      if (ending !== null)
        return {
          ...watched,
          cpuSeconds: Number.NaN,
          busiest: '',
          chargedSeconds: Number.NaN,
          longestTurns: [],
        };
      const busiest = threadCpu(server.processId)
        .map(({ threadId, name, seconds }) => ({
          name,
          seconds: seconds - (threadsBefore.get(threadId) ?? 0),
        }))
        .toSorted((a, b) => b.seconds - a.seconds)
        .slice(0, 5)
        .map(({ name, seconds }) => `${name} ${seconds.toFixed(1)} s`)
        .join(', ');
      const cpuSeconds = treeCpuSeconds(server.processId) - cpuBefore;
      const metrics = await readMetrics(server);
      const chargedSeconds = chargedSecondsOf(metrics) - (await chargedBefore);
      return { ...watched, cpuSeconds, busiest, chargedSeconds, longestTurns: longestTurnsOf(metrics) };
    },
  };
}

async function readMetrics({ metricsUrl }: RunningServer): Promise<string> {
  return (await fetch(`${metricsUrl}/metrics`)).text();
}

function chargedSecondsOf(metrics: string): number {
  let seconds = 0;
  for (const [, value] of metrics.matchAll(/^tidebase_share_cpu_seconds_total\{.*\} (\S+)$/gm))
    seconds += Number(value);
  return seconds;
}

function longestTurnsOf(metrics: string): string[] {
  const told: string[] = [];
  for (const [, thread, cause, value] of metrics.matchAll(
    /^tidebase_longest_turn_seconds\{thread="([^"]*)",cause="([^"]*)"\} (\S+)$/gm,
  ))
    told.push(`${thread} ${cause} ${Math.round(Number(value) * 1_000)} ms`);
  const front = /^tidebase_front_turn_delay_seconds\{quantile="1"\} (\S+)$/m.exec(metrics)?.[1];
  if (front !== undefined) told.push(`front came late by ${Math.round(Number(front) * 1_000)} ms`);
  return told;
}
