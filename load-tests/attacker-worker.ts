import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { threadCpuMs } from '../src/base/thread-cpu.ts';
import { lowerThreadPriority } from '../src/base/thread-priority.ts';
import type { Attack } from './attack.ts';
import { attackNamed } from './attack-catalogue.ts';
import { AttackSite, type SiteOptions } from './attack-site.ts';
import { type AttackerOptions, type AttackOutcome, attackerSteps } from './attacker.ts';
import { sleep } from './judge.ts';

/** The thread of attackers: prepares, waits for the start, attacks until it is told to stop, and tells what became of it. */
const { accounts, attacks, turnSeconds } = workerData as AttackerOptions;
const port = parentPort;
if (port === null) throw new Error('an attacker is a thread');

let isStopping = false;
let cpuMs = 0;
const outcomes = new Map<string, number>();
const said = new Map<string, string>();
const living = new Set<AttackSite>();

/** Each attack of an account has tenants of its own: their allowances hold the data of one. */
function partOf({ keys, ...rest }: SiteOptions, at: number, attacksOfAccount: number): SiteOptions {
  const size = Math.floor(keys.length / attacksOfAccount);
  return { ...rest, keys: keys.slice(at * size, (at + 1) * size) };
}

const plans = accounts.map((account, i) => ({
  attacks: (attacks[i] ?? []).map((name, at, all) => ({
    attack: attackNamed(name),
    options: partOf(account, at, all.length),
  })),
}));

await Promise.all(
  plans.map(async (plan) => {
    for (const { attack, options } of plan.attacks) {
      const site = new AttackSite(options);
      await attack.prepare?.(site);
      site.end();
    }
  }),
);
port.postMessage('prepared');
await once(port, 'message');
// An attacker has a machine of its own: here it takes what the server and its neighbours leave of the cores.
lowerThreadPriority(attackerSteps);
const clientBeganMs = threadCpuMs();
const stopped = once(port, 'message').then(() => {
  isStopping = true;
  for (const site of living) site.end();
});
await Promise.all([...plans.map((plan, i) => attackInTurn(plan.attacks, i)), stopped]);
port.postMessage({
  outcomes: Object.fromEntries(outcomes),
  said: Object.fromEntries(said),
  cpuMs,
  clientCpuMs: threadCpuMs() - clientBeganMs,
} satisfies AttackOutcome);

async function attackInTurn(
  turns: readonly { readonly attack: Attack; readonly options: SiteOptions }[],
  first: number,
): Promise<void> {
  for (let at = first; !isStopping; at++) {
    const turn = turns[at % turns.length];
    if (turn === undefined) return;
    const site = new AttackSite(turn.options);
    living.add(site);
    const alone = turns.length === 1;
    const ended = alone ? null : sleep(turnSeconds * 1_000).then(() => site.end());
    await turn.attack.run(site);
    site.end();
    await ended;
    living.delete(site);
    cpuMs += site.cpuMs;
    const name = alone ? '' : `${turn.attack.name}: `;
    for (const [outcome, text] of site.said) if (!said.has(name + outcome)) said.set(name + outcome, text);
    for (const [outcome, times] of site.outcomes)
      outcomes.set(name + outcome, (outcomes.get(name + outcome) ?? 0) + times);
  }
}
