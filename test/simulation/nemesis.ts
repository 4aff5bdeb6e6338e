import type { Chance } from './chance.ts';
import type { ProcessFault } from './faults.ts';
import type { World } from './world.ts';

/**
 * What happens to processes, at moments spread over the clients' turns. Every seed has an old process that was paused, with
 * calls still on their way, beside its successor; the rest is drawn.
 */
const pauseMsMax = 120_000;
const outageMsMax = 12_000;
const clockJumpMsMax = 3_600_000;
/** How long the world waits for an orderly end. */
const drainPatienceMs = 20_000;
/** From the turn to the deed, so that it falls between any two events. */
const waitMsMax = 25;

const others: readonly ProcessFault[] = [
  'crash',
  'crash',
  'pause beside its successor',
  'calls held beside its successor',
  'orderly stop',
  'clock jump',
  'store outage',
  'start again beside a running process',
];

export async function runNemesis(world: World, chance: Chance): Promise<void> {
  const deeds: ProcessFault[] = ['pause beside its successor'];
  for (let more = chance.integer(1, 4); more > 0; more--) deeds.push(chance.pick(others));
  const plan = deeds
    .map((deed) => ({ deed, atTurn: chance.integer(8, world.turnsWanted - 10) }))
    .sort((a, b) => a.atTurn - b.atTurn);
  for (const { deed, atTurn } of plan) {
    await world.turn(atTurn);
    await world.scheduler.sleep(waitMsMax * chance.fraction());
    while (world.current === null) await world.startNext();
    world.faults.count(deed);
    world.tell(`p${world.current.number} meets: ${deed}`);
    await doers[deed](world, chance);
  }
}

const doers: Readonly<Record<ProcessFault, (world: World, chance: Chance) => Promise<void>>> = {
  async crash(world) {
    world.current?.kill();
    await world.startNext();
  },

  async 'pause beside its successor'(world, chance) {
    const old = world.current;
    const ms = 1_000 + chance.fraction() * (pauseMsMax - 1_000);
    old?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 600);
    old?.pause(ms);
    await world.startNext();
  },

  async 'calls held beside its successor'(world, chance) {
    world.current?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 1_000);
    await world.startNext();
  },

  async 'orderly stop'(world) {
    const old = world.current;
    if (old === null) return;
    await Promise.race([old.drain().catch(() => {}), world.scheduler.sleep(drainPatienceMs)]);
    old.kill();
    await world.startNext();
  },

  async 'clock jump'(world, chance) {
    world.current?.jumpClock(chance.between(-clockJumpMsMax, clockJumpMsMax));
  },

  async 'store outage'(world, chance) {
    const old = world.current;
    if (old === null) return;
    old.store.outageUntilMs = world.scheduler.nowMs + chance.fraction() * outageMsMax;
  },

  async 'start again beside a running process'(world) {
    await world.startNext();
  },
};
