/** What a change of the view costs does not depend on idle namespaces. `npm run measure -- view-change` has 50 servers and a million of them. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { faultOf, type ViewChange, ViewChangeScene } from './view-change-scene.ts';

const servers = 3;
const active = 20;
const [few, many] = [1_000, 20_000];

async function changesBeside(idle: number): Promise<readonly ViewChange[]> {
  const scene = new ViewChangeScene(servers, idle);
  return scene.scheduler.run(scene.run(active));
}

const besideFew = changesBeside(few);

test('a join, an eviction and a leave read nothing of idle namespaces, and cost the same with twenty times as many', async () => {
  const [beside, besideMany] = [await besideFew, await changesBeside(many)];
  for (const change of besideMany) equal(faultOf(change, beside), null);
  deepEqual(
    besideMany.map(({ change }) => change),
    ['nothing happens', 'one joins', 'one is killed', 'one leaves'],
  );
  for (const { change, moved, cost, waitsMs } of besideMany.slice(1)) {
    ok(moved > 0 && cost.puts > 0, `${change} moved ${moved} and wrote ${cost.puts} objects`);
    equal(waitsMs.length, active);
    ok(Number.isFinite(waitsMs.at(-1)), `${change}: somebody waited for ever`);
  }
});

test('a change that reads what is idle is told', async () => {
  const [change] = await besideFew;
  ok(change !== undefined && faultOf(change, []) === null);
  ok(faultOf({ ...change, idleRead: 1 }, [])?.includes('idle namespaces were read'));
  const dear = { ...change, idle: many, cost: { ...change.cost, gets: change.cost.gets * 2 + 100 } };
  ok(faultOf(dear, [change])?.startsWith('gets'));
});
