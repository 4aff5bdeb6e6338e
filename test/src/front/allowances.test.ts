import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { TenantStanding, Used } from '../../../protocol/messages.ts';
import { nothingUsed } from '../../../src/accounts/allowance.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import { Allowances } from '../../../src/front/allowances.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keyPrincipal, type PrincipalParts } from '../auth/principals.ts';

const plans = { ...builtInPlans, free: { ...builtInPlans.free, included_queries: 10 } };
const standing = (used: Partial<Used>): TenantStanding => ({
  id: 1,
  name: 'T',
  plan: 'free',
  status: 'active',
  ownerId: 1,
  ownerVerified: true,
  createdAt: '',
  period: { startMs: Date.parse('2024-02-01'), endMs: Date.parse('2024-03-01') },
  used: { ...nothingUsed, ...used },
});

function known(parts: PrincipalParts = {}) {
  const clock = new FakeClock(Date.parse('2024-02-29T23:00:00Z'));
  return { clock, allowances: new Allowances(plans, clock), principal: keyPrincipal(parts) };
}

describe('allowances on a front', () => {
  it('are counted down here, from what the tenant has used already', () => {
    const { allowances, principal } = known();
    allowances.learn(standing({ queries: 8 }));

    for (let i = 0; i < 2; i++) {
      assert.equal(allowances.refusal(principal, 'query'), null);
      allowances.count(principal, { queries: 1 });
    }

    assert.equal(allowances.refusal(principal, 'query')?.code, 'payment_required');
    assert.equal(allowances.refusal(principal, 'write'), null);
  });

  it('do not count twice what was counted here and is told later', () => {
    const { allowances, principal } = known();
    allowances.count(principal, { queries: 5 });

    allowances.learn(standing({ queries: 5 }));

    assert.equal(allowances.refusal(principal, 'query'), null);
    allowances.learn(standing({ queries: 10 }));
    assert.equal(allowances.refusal(principal, 'query')?.code, 'payment_required');
  });

  it('begin anew with the period', () => {
    const { allowances, principal, clock } = known();
    allowances.count(principal, { queries: 10 });
    assert.notEqual(allowances.refusal(principal, 'query'), null);

    clock.jump(3_600_000);

    assert.equal(allowances.refusal(principal, 'query'), null);
  });

  it('are not those of a month that was over when they were heard', () => {
    const { allowances, principal, clock } = known();
    clock.jump(3_600_000);
    assert.equal(allowances.refusal(principal, 'query'), null);

    allowances.learn(standing({ queries: 10 }));

    assert.equal(allowances.refusal(principal, 'query'), null);
  });
});

describe('caps of a key', () => {
  it('end with 429 until the period does, each kind by itself, and other keys go on', () => {
    const { allowances, principal } = known({ caps: { queries: 2, writes: 1 } });
    const other = keyPrincipal({ keyId: 10 });
    allowances.learnKey(1, { ...key(9), usedQueries: 1 });
    allowances.count(principal, { queries: 1 });

    const refusal = refusalOf(() => allowances.beginCapped(principal, 'query'));

    assert.equal(refusal.code, 'rate_limited');
    assert.equal(refusal.retryAfter, 3_600);
    allowances.beginCapped(principal, 'write');
    assert.equal(allowances.beginCapped(other, 'query'), null);
  });

  it('hold for requests that run side by side', () => {
    const { allowances, principal } = known({ caps: { writes: 1 } });
    const end = allowances.beginCapped(principal, 'write') ?? assert.fail('has a cap');

    refusalOf(() => allowances.beginCapped(principal, 'write'));
    end();

    allowances.beginCapped(principal, 'write');
  });
});

function refusalOf(work: () => unknown): ApiError {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  assert.fail('was let in');
}

function key(id: number) {
  return {
    id,
    name: 'k',
    prefix: 'tb_00000000',
    digest: '0'.repeat(64),
    scope: 'read' as const,
    namespaces: [],
    ratePerSecond: null,
    capQueries: 2,
    capWrites: null,
    createdAt: '',
    createdBy: '',
    personId: 0,
    month: '2024-02',
    usedQueries: 0,
    usedWrites: 0,
  };
}
