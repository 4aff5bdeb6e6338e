/** What tenants become of what follows from their subscriptions, by a table of all transitions, through the tenant's own actor. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import type { BillingChange, TenantStanding } from '../../../protocol/messages.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes, tenantId } from '../../support/in-process.ts';

/** Plan, tenant's status, subscription's status. */
const standings = [
  ['free', 'active', 'none'],
  ['pro', 'active', 'active'],
  ['pro', 'past_due', 'past_due'],
  ['pro', 'suspended', 'past_due'],
  ['free', 'active', 'canceled'],
] as const;
type Standing = (typeof standings)[number];
const pairs = standings.flatMap((from) => standings.map((to) => [from, to] as const));
const dayMs = 86_400_000;

let clock: FakeClock;
let truth: MemoryObjectStore;
let seed = 0;
let server: InProcess;

const start = () => clock.run(InProcess.start({ store: truth, clock, random: seededBytes(++seed) }));

beforeEach(async () => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  server = await start();
  await clock.run(server.createTenant());
});

function changeOf([plan, status, subscription]: Standing, version: number): BillingChange {
  const anchorAt = plan === 'pro' ? dayMs : null;
  const endedAt = subscription === 'canceled' ? 40 * dayMs : null;
  const billing = { version, status: subscription, cancelAtPeriodEnd: false, anchorAt, endedAt };
  return { plan, status, billing };
}

const tell = (change: BillingChange, id = tenantId) => server.askInside(internalCalls.setBilling, change, id);

async function known(id = tenantId): Promise<readonly (string | undefined)[]> {
  const standing = await clock.run(server.askInside(internalCalls.getTenant, null, id));
  const { plan, status, billing } = standing as TenantStanding;
  return [plan, status, billing?.status];
}

describe('a tenant', () => {
  it('goes from each standing to each other, and what is older changes nothing any more', async () => {
    let version = 0;
    for (const [from, to] of pairs) {
      const older = changeOf(from, ++version);
      await clock.run(tell(older));
      assert.deepEqual(await known(), from);
      await clock.run(tell(changeOf(to, ++version)));
      assert.deepEqual(await known(), to, `${from} → ${to}`);
      await clock.run(tell(older));
      assert.deepEqual(await known(), to, `${from} → ${to}, and the first told again`);
    }
  });

  it('is what the later of two is, where both are told at once, in whatever order they come', async () => {
    let version = 0;
    for (const [from, to] of pairs)
      for (const isReversed of [false, true]) {
        const [older, newer] = [changeOf(from, ++version), changeOf(to, ++version)];
        const order = isReversed ? [newer, older] : [older, newer];
        await clock.run(Promise.all(order.map((change) => tell(change))));
        assert.deepEqual(await known(), to, `${from} and ${to}${isReversed ? ', the later one first' : ''}`);
      }
  });

  it('is that after a crash too, whether its manifest has it or the log', async () => {
    let version = 0;
    for (const [at, [from, to]] of pairs.entries()) {
      await clock.run(Promise.all([tell(changeOf(to, version + 2)), tell(changeOf(from, version + 1))]));
      version += 2;
      if (at % 2 === 0) await clock.run(server.host.flush(tenantId, '', ''));
      server.kill();
      server = await start();
      assert.deepEqual(await known(), to, `${from} → ${to}`);
    }
  });

  it('that is being deleted stays that, whatever is told of its subscription', async () => {
    for (const [at, from] of standings.entries()) {
      const id = 100 + at;
      await clock.run(server.createTenant(id));
      await clock.run(tell(changeOf(from, 1), id));
      await clock.run(server.askInside(internalCalls.setTenantStatus, { status: 'deleting' }, id));
      for (const to of standings)
        await assert.rejects(
          clock.run(tell(changeOf(to, 2), id)),
          (error: unknown) => error instanceof ApiError && error.code === 'not_found',
          `${from} → deleting → ${to}`,
        );
    }
  });
});
