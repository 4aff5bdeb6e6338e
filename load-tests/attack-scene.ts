import { serverEnvironment } from '../src/cli/supervise.ts';
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
const scrapeEveryMs = 2_000;
const holdsBytesMin = 1e6;

export interface Scene {
  readonly server: RunningServer;
  /** Providers of embeddings: the attacker's, which may be told to hang, and the neighbours'. */
  readonly providers: { readonly attacker: EmbeddingDouble; readonly neighbour: EmbeddingDouble } | null;
  end(): Promise<void>;
}

export const neighbourProvider = { provider: 'mistral', key: 'neighbour0123456789abcdefghijkl' } as const;
const attackerProviderKey = 'sk-attacker-0123456789abcdef';

/** Not supervised, so that its end is seen; with the settings that a supervisor gives its server. */
export async function openScene(plans: PlansName, withProviders: boolean): Promise<Scene> {
  const providers = withProviders
    ? {
        attacker: await startEmbeddingDouble('openai', { key: attackerProviderKey }),
        neighbour: await startEmbeddingDouble('mistral', { key: neighbourProvider.key }),
      }
    : null;
  const env: Record<string, string> = { ...serverEnvironment, TIDEBASE_MEMORY_BYTES: String(memoryBytes) };
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
  /** The threads that used most, in seconds. */
  readonly busiest: string;
  /** What the server has charged to shares, all together, in seconds. */
  readonly chargedSeconds: number;
  /** The longest turn of each thread, with its cause, as far as the server tells it. */
  readonly longestTurns: readonly string[];
  /** What the server knew that it held when it held most, largest first. */
  readonly holds: readonly string[];
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
  const told = new Told(server);
  return {
    async stop() {
      clearInterval(timer);
      told.stop();
      const ending = server.ending();
      const watched = { ending, residentBytesMax: resident, anonymousBytesMax: anonymous };
      if (ending !== null)
        return {
          ...watched,
          cpuSeconds: Number.NaN,
          busiest: '',
          chargedSeconds: Number.NaN,
          longestTurns: [],
          holds: told.holds,
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
      told.learn(metrics);
      const chargedSeconds = chargedSecondsOf(metrics) - (await chargedBefore);
      const { longestTurns, holds } = told;
      return { ...watched, cpuSeconds, busiest, chargedSeconds, longestTurns, holds };
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

/** What the server's metrics tell meanwhile: they have the longest turn since they were last asked. */
class Told {
  readonly #turns = new Map<string, { readonly text: string; readonly seconds: number }>();
  #heldMost = 0;
  holds: readonly string[] = [];
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(server: RunningServer) {
    let isAsking = false;
    this.#timer = setInterval(() => {
      if (isAsking || server.ending() !== null) return;
      isAsking = true;
      readMetrics(server)
        .then((metrics) => this.learn(metrics))
        .catch(() => undefined)
        .finally(() => {
          isAsking = false;
        });
    }, scrapeEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get longestTurns(): readonly string[] {
    return [...this.#turns.values()].map(({ text }) => text);
  }

  learn(metrics: string): void {
    for (const [, thread = '', cause, value] of metrics.matchAll(
      /^tidebase_longest_turn_seconds\{thread="([^"]*)",cause="([^"]*)"\} (\S+)$/gm,
    ))
      this.#turn(thread, `${thread} ${cause}`, Number(value));
    const front = /^tidebase_front_turn_delay_seconds\{quantile="1"\} (\S+)$/m.exec(metrics)?.[1];
    if (front !== undefined) this.#turn('front', 'front came late by', Number(front));
    const held = [
      ...metrics.matchAll(/^tidebase_resident_bytes\{thread="([^"]*)",kind="([^"]*)"\} (\S+)$/gm),
      ...metrics.matchAll(/^tidebase_(log)_(waiting)_bytes (\S+)$/gm),
      ...metrics.matchAll(/^tidebase_(front)_(held)_bytes (\S+)$/gm),
    ].map(([, thread, kind, bytes]) => ({ what: `${thread} ${kind}`, bytes: Number(bytes) }));
    const sum = held.reduce((total, { bytes }) => total + bytes, 0);
    if (sum <= this.#heldMost) return;
    this.#heldMost = sum;
    this.holds = held
      .filter(({ bytes }) => bytes >= holdsBytesMin)
      .toSorted((a, b) => b.bytes - a.bytes)
      .map(({ what, bytes }) => `${what} ${Math.round(bytes / 1e6)} MB`);
  }

  #turn(thread: string, what: string, seconds: number): void {
    if (seconds <= (this.#turns.get(thread)?.seconds ?? 0)) return;
    this.#turns.set(thread, { text: `${what} ${Math.round(seconds * 1_000)} ms`, seconds });
  }
}
