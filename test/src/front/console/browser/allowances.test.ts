import assert from 'node:assert/strict';
import { it } from 'node:test';
import { allowancesOf } from '../../../../../src/front/console/browser/allowances.ts';
import type { Usage } from '../../../../../src/front/console/browser/shapes.ts';

const usage = {
  queries: 10,
  stored_bytes: 5e6,
  plan: { included_queries: 100_000, storage_quota_gb: 1, included_write_gb: null },
} as unknown as Usage;

it('an allowance is what the plan includes, or the share of an account that is not verified', () => {
  const find = (share: number, name: string) => allowancesOf(usage, share).find((one) => one.name === name);

  assert.equal(find(1, 'Queries')?.included, 100_000);
  assert.equal(find(0.01, 'Queries')?.included, 1_000);
  assert.equal(find(0.01, 'Stored now')?.included, 10_000_000);
  assert.equal(find(1, 'Bytes written')?.included, null);
});
