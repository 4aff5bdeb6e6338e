import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { keepBilling } from '../../../src/billing/keep-billing.ts';
import { Subscriptions } from '../../../src/billing/subscriptions.ts';
import { CountingObjectStore } from '../../../src/object-store/counting-object-store.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { billingServer, clockOf, StandInTenants, standInAt } from '../../support/billing-world.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('of several servers the one whose work it is goes through the customers, and another one once it is its work', async () => {
  const stripe = standInAt(Date.parse('2026-01-20T09:30:00Z'));
  const tenants = new StandInTenants(clockOf(stripe));
  const store = new MemoryObjectStore();
  const clock = new FakeClock();
  const lists = [0, 0];
  let doer = 0;
  const stops = lists.map((_, at) => {
    const counting = new CountingObjectStore(store, (operation) => {
      if (operation === 'list') lists[at] = (lists[at] ?? 0) + 1;
    });
    const components = {
      ...billingServer(stripe, tenants, store, at).components,
      objectStore: counting,
      clock,
    };
    const subscriptions = new Subscriptions(components);
    const meters = () => components.prices.meters();
    return keepBilling({ ...components, subscriptions, meters, isMine: () => doer === at });
  });

  await clock.advance(limits.billingFirstRoundMs);
  assert.deepEqual(lists, [1, 0]);
  doer = 1;
  await clock.advance(limits.billingRoundMs);
  assert.deepEqual(lists, [1, 1]);
  for (const stop of stops) stop();
});
