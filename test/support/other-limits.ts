/**
 * Loaded into a server before everything else (`node --import`), in all of its threads: changes the limits that
 * TIDEBASE_TEST_LIMITS names, in JSON. A server that people run has no such setting. `withLimits` of server-process.ts
 * starts one.
 */
import { limits } from '../../protocol/limits.ts';

const changes = JSON.parse(process.env.TIDEBASE_TEST_LIMITS ?? '{}') as Readonly<Record<string, number>>;
for (const name of Object.keys(changes))
  if (!(name in limits)) throw new Error(`there is no limit "${name}": see protocol/limits.ts`);
Object.assign(limits, changes);
