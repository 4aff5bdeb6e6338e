import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../../protocol/errors.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { Admission, type AdmissionTicket } from '../../../src/front/admission.ts';
import { keyPrincipal } from '../auth/principals.ts';

function admissionAt() {
  let now = 5_000;
  const clock = { ...systemClock, monotonic: () => now };
  const admission = new Admission({ clock, tenantsMax: 100, keysMax: 100 });
  return {
    admission: {
      accompany: (work: () => Promise<void>) => admission.accompany(work),
      get inFlight() {
        return admission.inFlight;
      },
      admit(principal: Principal, isSql = false): AdmissionTicket {
        const admitted = admission.admit(principal, isSql);
        if (admitted instanceof ApiError) throw admitted;
        return admitted;
      },
    },
    pass(ms: number) {
      now += ms;
    },
  };
}

function refusalOf(work: () => unknown): ApiError {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  assert.fail('was admitted');
}

const values = (headers: AdmissionTicket['headers']) => Object.fromEntries(headers);

test('a tenant gets its requests of a second, then 429, and new ones in the next second', () => {
  const { admission, pass } = admissionAt();
  const principal = keyPrincipal({ limits: { tenantQps: 3 } });
  for (let i = 0; i < 3; i++) admission.admit(principal).release();

  const refusal = refusalOf(() => admission.admit(principal));

  assert.equal(refusal.code, 'rate_limited');
  assert.equal(refusal.retryAfter, 1);
  assert.equal(values(refusal.headers)['RateLimit-Remaining'], '0');
  pass(1_000);
  admission.admit(principal);
});

test('a tenant has so many requests in flight, each given back once', () => {
  const { admission } = admissionAt();
  const principal = keyPrincipal({ limits: { concurrency: 2 } });
  const first = admission.admit(principal);
  admission.admit(principal);

  assert.match(refusalOf(() => admission.admit(principal)).message, /in flight/);
  first.release();
  first.release();
  admission.admit(principal);
  assert.equal(refusalOf(() => admission.admit(principal)).code, 'rate_limited');
});

test('SQL queries have a bound of their own, and count as requests too', () => {
  const { admission } = admissionAt();
  const principal = keyPrincipal({ limits: { concurrency: 4, sqlConcurrency: 2 } });
  const first = admission.admit(principal, true);
  admission.admit(principal, true);
  assert.match(refusalOf(() => admission.admit(principal, true)).message, /2 SQL queries/);
  admission.admit(principal);
  first.release();
  first.release();
  admission.admit(principal, true);
  assert.match(refusalOf(() => admission.admit(principal, true)).message, /2 SQL queries/);
  admission.admit(principal);
  assert.match(refusalOf(() => admission.admit(principal)).message, /4 requests are in flight/);
});

test('a key with a rate of its own is held to it without holding up its tenant', () => {
  const { admission } = admissionAt();
  const slow = keyPrincipal({ keyId: 1, limits: { tenantQps: 10, keyQps: 2 } });
  const other = keyPrincipal({ keyId: 2, limits: { tenantQps: 10 } });
  admission.admit(slow);
  admission.admit(slow);

  assert.match(refusalOf(() => admission.admit(slow)).message, /key's limit of 2/);
  for (let i = 0; i < 8; i++) admission.admit(other);
  assert.match(refusalOf(() => admission.admit(other)).message, /limit of 10/);
});

test('tenants do not count for each other', () => {
  const { admission } = admissionAt();
  const limits = { tenantQps: 1, concurrency: 1 };

  admission.admit(keyPrincipal({ tenantId: 1, limits }));
  admission.admit(keyPrincipal({ tenantId: 2, limits }));

  assert.equal(refusalOf(() => admission.admit(keyPrincipal({ tenantId: 1, limits }))).code, 'rate_limited');
});

test('the headers tell the tighter limit and what remains of it', () => {
  const { admission } = admissionAt();

  const plain = admission.admit(keyPrincipal({ tenantId: 1, limits: { tenantQps: 100 } }));
  const capped = admission.admit(keyPrincipal({ tenantId: 1, limits: { tenantQps: 100, keyQps: 5 } }));
  const unlimited = admission.admit(keyPrincipal({ tenantId: 2 }));

  assert.deepEqual(values(plain.headers), {
    'RateLimit-Limit': '100',
    'RateLimit-Remaining': '99',
    'RateLimit-Reset': '1',
    'RateLimit-Policy': '100;w=1',
    RateLimit: 'limit=100, remaining=99, reset=1',
  });
  assert.equal(values(capped.headers)['RateLimit-Policy'], '5;w=1');
  assert.equal(values(capped.headers)['RateLimit-Remaining'], '4');
  assert.equal(values(unlimited.headers)['RateLimit-Limit'], '1000000000');
});

test('a key cannot be promised more than its tenant has left', () => {
  const { admission } = admissionAt();
  for (let i = 0; i < 9; i++) admission.admit(keyPrincipal({ keyId: 1, limits: { tenantQps: 10 } }));

  const last = admission.admit(keyPrincipal({ keyId: 2, limits: { tenantQps: 10, keyQps: 5 } }));

  assert.equal(values(last.headers)['RateLimit-Remaining'], '0');
});

test('more tenants than counters leave the busy ones counted and every release harmless', () => {
  const { admission } = admissionAt();
  const busy = keyPrincipal({ tenantId: 1_000, limits: { concurrency: 2 } });
  const tickets = [admission.admit(busy)];
  for (let i = 1; i < 500; i++) {
    tickets.push(admission.admit(keyPrincipal({ tenantId: i })));
    if (i % 50 === 0) admission.admit(busy).release();
  }

  admission.admit(busy);
  assert.equal(refusalOf(() => admission.admit(busy)).code, 'rate_limited');
  for (const ticket of tickets) ticket.release();
  admission.admit(busy);
});

test('never more are in flight or admitted in a second than allowed, and never fewer without a reason', () => {
  const step = fc.oneof(
    fc.constant('admit' as const),
    fc.constant('admit' as const),
    fc.constant('release' as const),
    fc.constant('wait' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { admission, pass } = admissionAt();
      const principal = keyPrincipal({ limits: { tenantQps: 6, keyQps: 4, concurrency: 3 } });
      const flying: AdmissionTicket[] = [];
      let inSecond = 0;
      for (const kind of steps) {
        if (kind === 'release') flying.pop()?.release();
        if (kind === 'wait') {
          pass(1_000);
          inSecond = 0;
        }
        if (kind !== 'admit') continue;
        if (flying.length < 3 && inSecond < 4) {
          flying.push(admission.admit(principal));
          inSecond += 1;
        } else {
          assert.equal(refusalOf(() => admission.admit(principal)).status, 429);
        }
      }
    }),
  );
});

test('a request that is nobody’s is in flight until it ends, however it ends', async () => {
  const { admission } = admissionAt();
  let end = () => {};
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });

  const first = admission.accompany(() => held);
  const second = admission.accompany(() => Promise.reject(new Error('no')));

  assert.equal(admission.inFlight, 2);
  await assert.rejects(second);
  assert.equal(admission.inFlight, 1);
  end();
  await first;
  assert.equal(admission.inFlight, 0);
});
