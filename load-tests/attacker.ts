import { Worker } from 'node:worker_threads';
import type { SiteOptions } from './attack-site.ts';

/** What an attacker's thread is given. */
export interface AttackerOptions {
  readonly accounts: readonly SiteOptions[];
  /** The attacks of each account that it does in turn. */
  readonly attacks: readonly (readonly string[])[];
  /** The seconds of each attack, where an account has several. */
  readonly turnSeconds: number;
}

export interface AttackOutcome {
  readonly outcomes: Readonly<Record<string, number>>;
  /** The first refusal of each of them. */
  readonly said: Readonly<Record<string, string>>;
  /** As the server's answers count it. */
  readonly cpuMs: number;
  /** What the attack cost its client's thread, which shares the cores with the server. */
  readonly clientCpuMs: number;
}

/** A thread of its own: what an attack costs its client delays nobody else's clock. */
export interface Attacker {
  /** Begins, once its data is there. */
  start(): void;
  /** Ends it and tells what became of it. */
  stop(): Promise<AttackOutcome>;
}

/** How far an attacker's thread steps back behind the server and its neighbours, as of `nice`. */
export const attackerSteps = 19;

const stopMsMax = 90_000;

/** Resolves when the data of the attacks is written. */
export async function prepareAttacker(options: AttackerOptions): Promise<Attacker> {
  const thread = new Worker(new URL('./attacker-worker.js', import.meta.url), { workerData: options });
  const failed = new Promise<never>((_, reject) => thread.once('error', reject));
  failed.catch(() => undefined);
  const next = <T>() => Promise.race([new Promise<T>((resolve) => thread.once('message', resolve)), failed]);
  await next();
  return {
    start: () => thread.postMessage('start'),
    async stop() {
      const late = new Promise<AttackOutcome>((resolve) => {
        setTimeout(resolve, stopMsMax, {
          outcomes: { 'did not end': 1 },
          said: {},
          cpuMs: 0,
          clientCpuMs: 0,
        }).unref();
      });
      const told = next<AttackOutcome>();
      thread.postMessage('stop');
      const outcome = await Promise.race([told, late]);
      await thread.terminate();
      return outcome;
    },
  };
}
