import { unaccountedObjects } from './accounted-objects.ts';
import { Chance } from './chance.ts';
import type { Client } from './clients.ts';
import type { World } from './world.ts';

const hourMs = 3_600_000;
/** Everything that waits for its hour has had it. */
const idleMs = 48 * hourMs;
const leapMs = 6 * hourMs;
/** Between two leaps: housekeeping and the lease have their turn. */
const breathMs = 25_000;
const keysShown = 10;

/** Requests between two leaps. */
const requestsOfALeap = 8;

/** Two virtual days in which somebody goes on, now and then: what is deleted, merged and collected meanwhile nobody misses. */
export async function liveOn(world: World, client: Client): Promise<void> {
  const { scheduler, servers } = world;
  const chance = new Chance(world.seed, 8);
  for (let passedMs = 0; passedMs < idleMs; passedMs += leapMs) {
    for (let requests = 0; requests < requestsOfALeap; requests++) {
      const serving = servers.map(({ current }) => current).filter((current) => current?.serving === true);
      const process = chance.pick(serving);
      if (process !== null && process !== undefined) await client.askOnce(process);
    }
    await scheduler.sleep(breathMs);
    scheduler.leap(leapMs);
    await scheduler.sleep(breathMs);
  }
}

/** Two virtual days after the last write, with one process alive: what is stored is what something accounts for. */
export async function checkLeftovers(world: World): Promise<void> {
  const { scheduler, objects, records } = world;
  // First at the pace of every day: what is overdue is flushed, ended logs are taken over.
  await scheduler.sleep(120_000);
  for (let passedMs = 0; passedMs < idleMs; passedMs += leapMs) {
    scheduler.leap(leapMs);
    await scheduler.sleep(breathMs);
  }
  const uploads = objects.uploads.map(({ key }) => `an upload of ${key}`);
  const left = [...unaccountedObjects(objects), ...uploads];
  if (left.length === 0) return;
  records.violate('objects left over', `${left.length}: ${left.slice(0, keysShown).join(' ')}`);
}
