import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PlansError, parsePlans } from '../../../src/accounts/parse-plans.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';

test('the built-in plans are a valid plans file', () => {
  assert.deepEqual(parsePlans(JSON.stringify(builtInPlans)), builtInPlans);
});

test('the plans file for load tests lifts every allowance, rate, in-flight and creation limit', () => {
  const { free, pro, attempts } = parsePlans(readFileSync('load-tests/plans.unlimited.json', 'utf8'));

  for (const plan of [free, pro]) {
    for (const [name, value] of Object.entries(plan)) {
      const lifted = name.startsWith('included_') || name.startsWith('max_') || name === 'storage_quota_gb';
      if (lifted) assert.equal(value, null, `${plan.name}.${name}`);
    }
    const { qps, concurrency, read_inflight_mb, sql_concurrency, hard_limit, unverified_share } = plan;
    assert.deepEqual(
      { qps, concurrency, read_inflight_mb, sql_concurrency, hard_limit, unverified_share },
      {
        qps: null,
        concurrency: null,
        read_inflight_mb: null,
        sql_concurrency: null,
        hard_limit: false,
        unverified_share: 1,
      },
    );
  }
  assert.equal(attempts.signup_per_address_hour, null);
});

test('every problem of a plans file is named', () => {
  const { attempts: _, ...withoutAttempts } = builtInPlans;
  const file = {
    ...withoutAttempts,
    pro: {
      ...builtInPlans.pro,
      qps: '1000',
      sql_seconds: 31,
      colour: 1,
      unverified_share: 2,
      max_namespaces: 1.5,
    },
    free: { ...builtInPlans.free, name: 'pro', hard_limit: null },
    gold: {},
  };

  assert.throws(
    () => parsePlans(JSON.stringify(file)),
    (error: unknown) => {
      assert.ok(error instanceof PlansError);
      for (const part of [
        'attempts is missing',
        'gold is not known',
        'pro.qps must be a whole number',
        'pro.sql_seconds must be a number over 0, at most 30',
        'pro.colour is not known',
        'pro.unverified_share must be a number from 0 to 1',
        'pro.max_namespaces must be a whole number',
        'free.name must be "free"',
        'free.hard_limit must be true or false',
      ]) {
        assert.ok(error.message.includes(part), `${part} in ${error.message}`);
      }
      return true;
    },
  );
});

test('a plans file without a field, or that is no object, is refused', () => {
  const { qps: _, ...free } = builtInPlans.free;

  assert.throws(() => parsePlans(JSON.stringify({ ...builtInPlans, free })), /free\.qps is missing/);
  assert.throws(() => parsePlans('{"free":'), /not JSON/);
  assert.throws(() => parsePlans('[]'), /must be a JSON object/);
  assert.throws(() => parsePlans('{"free": 1, "pro": null, "attempts": []}'), /free must be an object/);
});
