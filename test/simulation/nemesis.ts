/**
 * What happens to processes, at moments spread over the clients' turns. Every seed has an old process that was paused, with
 * calls still on their way, beside its successor; the rest is drawn.
 */
import type { Chance } from './chance.ts';
import type { ClusterFault, ProcessFault } from './faults.ts';
import type { SimulatedServer } from './simulated-server.ts';
import type { World } from './world.ts';

const pauseMsMax = 120_000;
const outageMsMax = 12_000;
/** Others evict a member after some ten seconds. */
const clusterPauseMsMax = 40_000;
const clockJumpMsMax = 3_600_000;
/** How long the world waits for an orderly end. */
const drainPatienceMs = 20_000;
/** Who leaves at once does so this soon after it has become active, at most. */
const leavesAtOnceMs = 700;
const activePatienceMs = 5_000;
const lookEveryMs = 20;
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
    while (world.first.current === null) await world.first.startNext();
    world.faults.count(deed);
    world.tell(`p${world.first.current.number} meets: ${deed}`);
    await doers[deed](world, chance);
  }
}

type Deed = (world: World, chance: Chance) => Promise<void>;

const doers: Readonly<Record<ProcessFault, Deed>> = {
  async crash(world) {
    world.first.current?.kill();
    await world.first.startNext();
  },

  async 'pause beside its successor'(world, chance) {
    const old = world.first.current;
    const ms = 1_000 + chance.fraction() * (pauseMsMax - 1_000);
    old?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 600);
    old?.pause(ms);
    await world.first.startNext();
  },

  async 'calls held beside its successor'(world, chance) {
    world.first.current?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 1_000);
    await world.first.startNext();
  },

  async 'orderly stop'(world) {
    const old = world.first.current;
    if (old === null) return;
    await Promise.race([old.drain().catch(() => {}), world.scheduler.sleep(drainPatienceMs)]);
    old.kill();
    await world.first.startNext();
  },

  async 'clock jump'(world, chance) {
    world.first.current?.jumpClock(chance.between(-clockJumpMsMax, clockJumpMsMax));
  },

  async 'store outage'(world, chance) {
    const old = world.first.current;
    if (old === null) return;
    old.store.outageUntilMs = world.scheduler.nowMs + chance.fraction() * outageMsMax;
  },

  async 'start again beside a running process'(world) {
    await world.first.startNext();
  },
};

/** What happens to the servers of a cluster; each of them at any moment, whatever the others meet. */
const clusterDeeds: readonly ClusterFault[] = [
  'a server joins',
  'a server joins',
  'a server leaves',
  'a server joins and leaves at once',
  'a server crashes',
  'a server starts again beside itself',
  'a server is paused',
  'a server is paused',
  'calls of a server are held',
  'a server is cut off from the store',
  'a server is cut off from another one',
  'the machine of a server sleeps',
  'the clock of a server jumps',
];

export async function runClusterNemesis(world: World, chance: Chance): Promise<void> {
  const deeds = Array.from({ length: chance.integer(3, 7) }, () => chance.pick(clusterDeeds));
  const plan = deeds
    .map((deed) => ({ deed, atTurn: chance.integer(4, world.turnsWanted - 10) }))
    .sort((a, b) => a.atTurn - b.atTurn);
  for (const { deed, atTurn } of plan) {
    await world.turn(atTurn);
    await world.scheduler.sleep(waitMsMax * chance.fraction());
    world.faults.count(deed);
    await clusterDoers[deed](world, chance);
  }
}

/** One that serves, where there is any. */
function serving(world: World, chance: Chance): SimulatedServer | null {
  const servers = world.servers.filter(({ current }) => current?.serving === true);
  return servers.length === 0 ? null : chance.pick(servers);
}

const clusterDoers: Readonly<Record<ClusterFault, Deed>> = {
  async 'a server joins'(world, chance) {
    const absent = world.servers.filter(({ current, starting }) => current === null && starting === null);
    if (absent.length === 0) return;
    const server = chance.pick(absent);
    server.supervised = true;
    world.tell(`${server.id} joins`);
    void server.startNext();
  },

  async 'a server leaves'(world, chance) {
    const server = serving(world, chance);
    const process = server?.current;
    if (server === null || process === null || process === undefined) return;
    world.tell(`p${process.number} of ${server.id} leaves`);
    server.supervised = world.servers.every((each) => each === server || each.current === null);
    void Promise.race([process.drain().catch(() => {}), world.scheduler.sleep(drainPatienceMs)]).then(() =>
      process.kill(),
    );
  },

  /** The others may hear of both at once, and it of its leave later than they do. */
  async 'a server joins and leaves at once'(world, chance) {
    const absent = world.servers.filter(({ current, starting }) => current === null && starting === null);
    if (absent.length === 0) return;
    const server = chance.pick(absent);
    for (const other of world.servers) if (other !== server) world.network.cut(server.id, other.id);
    server.supervised = true;
    world.tell(`${server.id} joins, and leaves at once`);
    void server.startNext().then(async () => {
      const process = server.current;
      const isActive = () =>
        process?.composed?.follower?.view.members.some(
          ({ logId, state }) => logId === process.logId && state === 'active',
        );
      const untilMs = world.scheduler.nowMs + activePatienceMs;
      while (isActive() !== true && world.scheduler.nowMs < untilMs) await world.scheduler.sleep(lookEveryMs);
      await world.scheduler.sleep(chance.fraction() * leavesAtOnceMs);
      if (process === null || process.dead) return;
      server.supervised = world.servers.every((each) => each === server || each.current === null);
      if (chance.happens(0.7)) process.store.answersLostUntilMs = world.scheduler.nowMs + leavesAtOnceMs;
      await Promise.race([process.drain().catch(() => {}), world.scheduler.sleep(drainPatienceMs)]);
      process.kill();
    });
  },

  async 'a server crashes'(world, chance) {
    const server = serving(world, chance);
    world.tell(`p${server?.current?.number} of ${server?.id} crashes`);
    server?.current?.kill();
  },

  async 'a server starts again beside itself'(world, chance) {
    const server = serving(world, chance);
    world.tell(`p${server?.current?.number} of ${server?.id} is followed by another`);
    void server?.startNext();
  },

  async 'a server is paused'(world, chance) {
    const process = serving(world, chance)?.current;
    // Mostly long enough to be evicted, sometimes with calls on their way.
    if (chance.happens(0.5)) process?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 600);
    world.tell(`p${process?.number} is paused`);
    process?.pause(chance.fraction() * clusterPauseMsMax);
  },

  async 'calls of a server are held'(world, chance) {
    serving(world, chance)?.current?.store.hold(chance.fraction() * clusterPauseMsMax);
  },

  async 'a server is cut off from the store'(world, chance) {
    const process = serving(world, chance)?.current;
    if (process === null || process === undefined) return;
    process.store.outageUntilMs = world.scheduler.nowMs + chance.fraction() * clusterPauseMsMax;
  },

  async 'a server is cut off from another one'(world, chance) {
    world.network.cut(chance.pick(world.servers).id, chance.pick(world.servers).id);
  },

  async 'the machine of a server sleeps'(world, chance) {
    const process = serving(world, chance)?.current;
    if (chance.happens(0.5)) process?.store.hold(chance.fraction() * pauseMsMax);
    await world.scheduler.sleep(chance.fraction() * 600);
    world.tell(`the machine of p${process?.number} sleeps`);
    process?.sleepMachine(chance.fraction() * clusterPauseMsMax);
  },

  async 'the clock of a server jumps'(world, chance) {
    serving(world, chance)?.current?.jumpClock(chance.between(-clockJumpMsMax, clockJumpMsMax));
  },
};
