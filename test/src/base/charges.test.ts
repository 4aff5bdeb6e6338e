import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Charges,
  CpuShares,
  nothingCharged,
  shareKindOf,
  spreadBusyTime,
} from '../../../src/base/charges.ts';
import { nobodysShare, upkeepShare } from '../../../src/base/share.ts';

test('what is charged is added up by whose it is, and the longest stretch keeps its cause until it is asked for', () => {
  const charges = new Charges();
  const tenant = { owner: 5, tenant: 7, weight: 1 };

  charges.charge(tenant, 10);
  charges.charge({ owner: -9, tenant: 7, weight: 1 }, 1);
  charges.charge(nobodysShare(3), 2);
  charges.charge(upkeepShare, 4);
  for (const [cause, ms] of [
    ['search', 3],
    ['sql', 9],
    ['count', 5],
  ] as const)
    charges.ran(cause, ms);

  assert.deepEqual(charges.ms, { tenants: 11, nobody: 2, upkeep: 4 });
  assert.deepEqual(charges.takeLongest(), { ms: 9, cause: 'sql' });
  assert.deepEqual(charges.takeLongest(), { ms: 0, cause: 'none' });
  assert.equal(shareKindOf(tenant), 'tenants');
});

test('what a thread did beyond what was charged is divided as its requests were, so that nothing is left out', () => {
  const charged = { tenants: 40, nobody: 0, upkeep: 10 };

  assert.deepEqual(spreadBusyTime(100, charged, { tenants: 3, nobody: 1, upkeep: 0 }), {
    tenants: 77.5,
    nobody: 12.5,
    upkeep: 10,
  });
  assert.deepEqual(spreadBusyTime(100, charged, nothingCharged), { tenants: 40, nobody: 0, upkeep: 60 });
  assert.deepEqual(spreadBusyTime(20, charged, nothingCharged), charged);
});

test('a thread is charged with its CPU time and not with what its work lasted, and no sum ever falls', () => {
  const shares = new CpuShares();
  const first = {
    cpuMs: 50,
    busyMs: 200,
    charged: { tenants: 150, nobody: 0, upkeep: 0 },
    parts: nothingCharged,
  };

  // It lasted four times as long as it took: three quarters were charged.
  assert.deepEqual(shares.divide(first), { tenants: 37.5, nobody: 0, upkeep: 12.5 });
  assert.deepEqual(shares.divide(first), { tenants: 37.5, nobody: 0, upkeep: 12.5 });
  const later = {
    cpuMs: 60,
    busyMs: 210,
    charged: { tenants: 150, nobody: 5, upkeep: 0 },
    parts: { tenants: 0, nobody: 3, upkeep: 1 },
  };

  assert.deepEqual(shares.divide(later), { tenants: 37.5, nobody: 8.75, upkeep: 13.75 });
  assert.deepEqual(shares.divide({ ...later, cpuMs: 61 }), { tenants: 37.5, nobody: 8.75, upkeep: 14.75 });
  // Told less, as of a sum of which a part is told late: it is not charged again when it comes back.
  for (const cpuMs of [55, 61])
    assert.deepEqual(shares.divide({ ...later, cpuMs }), { tenants: 37.5, nobody: 8.75, upkeep: 14.75 });
});
