/**
 * `npm run attacks`: what one account can do to others, at full strength. For each attack a server of its own with
 * neighbours, first alone, then beside the attack. Ends with 1 where a bar is missed. Attacks only what it starts itself.
 *
 *   --list   --only=A1,A13   --plans=built-in or lifted (default: both)   --requests=10000 (searches of neighbours)
 *   --rate=900 (a second)   --neighbours=15   --verified (the attacker's address too)
 *   --quick: a smoke run of few requests, whose figures say little
 *   --profiles=FOLDER: the server writes CPU profiles of its threads there when it ends
 *   --mix: twenty accounts that mix all of it beside fifty neighbours; --minutes=5
 */
import type { Attack } from './attack.ts';
import { signUp, verifyAddress } from './attack-accounts.ts';
import { attackCatalogue, attacksNamed } from './attack-catalogue.ts';
import { neighbourLoop, ordinaryLoop, settleNeighbours } from './attack-neighbours.ts';
import { type Row, rowText } from './attack-row.ts';
import {
  memoryAllowanceBytes,
  memoryBytes,
  neighbourProvider,
  openScene,
  type PlansName,
  type Scene,
  watchServer,
} from './attack-scene.ts';
import type { SiteOptions } from './attack-site.ts';
import { type Attacker, type AttackOutcome, prepareAttacker } from './attacker.ts';
import { machineLines } from './bench-report.ts';
import { inParallel } from './in-parallel.ts';
import { isQuick, sleep } from './judge.ts';
import { numberOption, textOption } from './options.ts';
import { runRequestLoop } from './request-loop.ts';
import { whenSegmentsRest } from './store-counts.ts';

const requests = numberOption('requests', isQuick ? 1_500 : 10_000);
const searchesPerSecond = numberOption('rate', isQuick ? 200 : 900);
const neighbourCount = numberOption('neighbours', isQuick ? 5 : 15);
const isVerified = process.argv.includes('--verified');
const idleSeconds = isQuick ? 2 : 5;
const settleMs = 500;

const mixAccounts = 20;
const mixThreads = 4;
/** Tenants of an account: two for each of its attacks. */
const mixTenants = 6;
const mixAttacksOfAccount = 3;
const mixTurnSeconds = 15;
const mixNeighbours = 50;
const signedUpAtOnce = 8;
const mixMinutes = numberOption('minutes', 5);

const say = (line: string) => process.stdout.write(`${line}\n`);
const asked = textOption('only');
const attacks = asked === null ? attackCatalogue : attacksNamed(asked.split(','));

if (process.argv.includes('--list')) {
  for (const { name, about } of attackCatalogue) say(`${name.padEnd(14)} ${about}`);
} else {
  await runAll();
}

async function runAll(): Promise<void> {
  for (const line of machineLines()) say(line);
  say(`memory   TIDEBASE_MEMORY_BYTES ${memoryBytes}, and ${memoryAllowanceBytes} on top`);
  const missed: string[] = [];
  const tell = (row: Row) => {
    const { text, ok } = rowText(row);
    say(`\n${text}`);
    if (!ok) missed.push(row.name);
  };
  for (const plans of plansAsked()) {
    if (process.argv.includes('--mix')) tell(await mix(plans));
    else
      for (const attack of attacks) {
        // One that could not be made is a miss, and the others are made.
        const name = `${attack.name} ${plans}`;
        try {
          tell(await attackOnce(attack, plans));
        } catch (error) {
          say(`\n${name}: ${String(error)}`);
          missed.push(name);
        }
      }
  }
  say(missed.length === 0 ? '\nevery bar is held' : `\nmissed: ${missed.join(', ')}`);
  process.exitCode = missed.length === 0 ? 0 : 1;
}

function plansAsked(): readonly PlansName[] {
  const plans = textOption('plans');
  if (plans === null) return ['built-in', 'lifted'];
  if (plans === 'built-in' || plans === 'lifted') return [plans];
  throw new Error(`--plans wants built-in or lifted, not ${plans}`);
}

async function attackOnce(attack: Attack, plans: PlansName): Promise<Row> {
  const scene = await openScene(plans, attack.hasHangingProvider === true);
  const { server } = scene;
  try {
    const embed = scene.providers === null ? null : neighbourProvider;
    const verified = plans === 'built-in';
    const neighbours = await settleNeighbours(server, { count: neighbourCount, verified, embed });
    const account = await signUp(server, 'attacker', attack.tenants ?? 1);
    if (isVerified) await verifyAddress(server, account);
    const site = { url: server.url, keys: account.keys, isLarge: plans === 'lifted' };
    const attacker = await prepareAttacker({ accounts: [site], attacks: [[attack.name]], turnSeconds: 0 });
    if (!isQuick) await whenSegmentsRest(server);
    const importsPerSecond = attack.importsPerSecond ?? 0.2;
    const load = { searchesPerSecond, importsPerSecond };
    await runRequestLoop(neighbourLoop(neighbours, { ...load, seconds: 2 }));
    const idle = await runRequestLoop(neighbourLoop(neighbours, { ...load, seconds: idleSeconds }));
    const seconds = Math.max(requests / searchesPerSecond, isQuick ? 0 : (attack.secondsMin ?? 0));
    const beside = await besideAttack(scene, [attacker], () =>
      runRequestLoop(neighbourLoop(neighbours, { ...load, seconds })),
    );
    return {
      name: `${attack.name} ${plans}`,
      about: attack.about,
      idle,
      ...beside,
      isMemoryJudged: attack.isMemoryJudged === true,
      isHealthJudged: attack.isHealthJudged === true,
    };
  } finally {
    await scene.end();
  }
}

async function besideAttack(
  { server, providers }: Scene,
  attackers: readonly Attacker[],
  run: () => ReturnType<typeof runRequestLoop>,
): Promise<Pick<Row, 'beside' | 'watched' | 'outcome' | 'clientsCpuSeconds'>> {
  const watch = watchServer(server);
  const cpuBefore = process.cpuUsage();
  providers?.attacker.fault('hang');
  for (const attacker of attackers) attacker.start();
  await sleep(settleMs);
  const beside = await run();
  const watched = await watch.stop();
  providers?.attacker.dropHanging();
  const outcomes = await Promise.all(attackers.map((attacker) => attacker.stop()));
  const { user, system } = process.cpuUsage(cpuBefore);
  return { beside, watched, outcome: sumOf(outcomes), clientsCpuSeconds: (user + system) / 1e6 };
}

function sumOf(all: readonly AttackOutcome[]): AttackOutcome {
  const outcomes: Record<string, number> = {};
  const said: Record<string, string> = {};
  let [cpuMs, clientCpuMs] = [0, 0];
  for (const one of all) {
    cpuMs += one.cpuMs;
    clientCpuMs += one.clientCpuMs;
    Object.assign(said, one.said);
    for (const [what, times] of Object.entries(one.outcomes)) outcomes[what] = (outcomes[what] ?? 0) + times;
  }
  return { outcomes, said, cpuMs, clientCpuMs };
}

/** Each account does a few of the attacks in turn; together they do all of them at any time. */
async function mix(plans: PlansName): Promise<Row> {
  const scene = await openScene(plans, true);
  const { server } = scene;
  try {
    const settling = { count: mixNeighbours, verified: plans === 'built-in', embed: null };
    const neighbours = await settleNeighbours(server, settling);
    const accounts: SiteOptions[] = [];
    const plansOf: string[][] = [];
    await inParallel(mixAccounts, signedUpAtOnce, async (i) => {
      const account = await signUp(server, `attacker-${i}`, mixTenants);
      if (isVerified) await verifyAddress(server, account);
      accounts[i] = { url: server.url, keys: account.keys, isLarge: false };
      plansOf[i] = Array.from(
        { length: mixAttacksOfAccount },
        (_, at) => attacks[(i + at * mixAccounts) % attacks.length]?.name ?? '',
      );
    });
    const attackers = await Promise.all(
      Array.from({ length: mixThreads }, (_, thread) => {
        const isHere = (_: unknown, i: number) => i % mixThreads === thread;
        return prepareAttacker({
          accounts: accounts.filter(isHere),
          attacks: plansOf.filter(isHere),
          turnSeconds: mixTurnSeconds,
        });
      }),
    );
    await whenSegmentsRest(server);
    await runRequestLoop(ordinaryLoop(neighbours, idleSeconds));
    const beside = await besideAttack(scene, attackers, () =>
      runRequestLoop(ordinaryLoop(neighbours, mixMinutes * 60)),
    );
    const about = `${mixAccounts} accounts mix all of it beside ${mixNeighbours} neighbours for ${mixMinutes} minutes`;
    return { name: `mix ${plans}`, about, idle: [], ...beside, isMemoryJudged: true, isHealthJudged: false };
  } finally {
    await scene.end();
  }
}
