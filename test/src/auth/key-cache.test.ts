import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import {
  KeyCache,
  type KeyCacheOptions,
  type LoadedPrincipal,
  refusalKeptMs,
} from '../../../src/auth/key-cache.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { keyPrincipal } from './principals.ts';

function cacheWith(options: Partial<KeyCacheOptions> & { principals?: Map<string, Principal> }) {
  let now = 1_000;
  let loads = 0;
  const principals = options.principals ?? new Map([['a', keyPrincipal({ tenantId: 1 })]]);
  const cache = new KeyCache({
    clock: { ...systemClock, now: () => now, monotonic: () => now },
    keptMs: null,
    async load(credential) {
      loads += 1;
      const principal = principals.get(credential);
      return principal === undefined ? null : { principal, expiresAt: null };
    },
    ...options,
  });
  return {
    cache,
    principals,
    loads: () => loads,
    pass(ms: number) {
      now += ms;
    },
  };
}

/** A load that waits to be let through. */
function gate() {
  const waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    open: () => waiting.splice(0).map((resolve) => resolve()),
    waiting: () => waiting.length,
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a credential is loaded once for all who ask at once, and then known without waiting', async () => {
  const { cache, loads, principals } = cacheWith({});

  assert.equal(cache.peek('a'), undefined);
  await Promise.all(Array.from({ length: 10 }, () => cache.get('a')));

  assert.equal(loads(), 1);
  assert.equal(cache.peek('a'), principals.get('a'));
});

test('invalidating a tenant forgets its credentials at once and no others', async () => {
  const { cache, loads } = cacheWith({
    principals: new Map([
      ['a', keyPrincipal({ tenantId: 1 })],
      ['b', keyPrincipal({ tenantId: 1 })],
      ['c', keyPrincipal({ tenantId: 2 })],
    ]),
  });
  for (const key of ['a', 'b', 'c']) await cache.get(key);

  cache.invalidateTenant(1);

  assert.equal(cache.peek('a'), undefined);
  assert.equal(cache.peek('b'), undefined);
  assert.notEqual(cache.peek('c'), undefined);
  await cache.get('a');
  assert.equal(loads(), 4);
});

test('invalidating a person forgets their logins, not the keys that they made', async () => {
  const login: Principal = { ...keyPrincipal({ tenantId: 1 }), auth: 'login', keyId: null };
  const { cache } = cacheWith({
    principals: new Map([
      ['login', login],
      ['key', keyPrincipal({ tenantId: 1 })],
    ]),
  });
  await cache.get('login');
  await cache.get('key');

  cache.invalidatePerson(Number(login.personId));

  assert.equal(cache.peek('login'), undefined);
  assert.notEqual(cache.peek('key'), undefined);
});

test('what a load read before a revocation lets nobody in after it', async () => {
  const { wait, open, waiting } = gate();
  let record: LoadedPrincipal | null = { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
  const { cache } = cacheWith({
    async load() {
      const read = record;
      await wait();
      return read;
    },
  });
  const before = cache.get('a');
  await settled();

  record = null;
  cache.invalidateTenant(1);
  const after = cache.get('a');
  open();
  await settled();
  assert.equal(waiting(), 1, 'the load was begun again');
  open();

  assert.deepEqual(await Promise.all([before, after]), [null, null]);
  assert.equal(cache.peek('a'), undefined);
});

test('a load is not disturbed by invalidations of other tenants', async () => {
  const { wait, open } = gate();
  let loads = 0;
  const { cache } = cacheWith({
    async load() {
      loads += 1;
      await wait();
      return { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
    },
  });
  const loading = cache.get('a');
  await settled();

  cache.invalidateTenant(2);
  open();

  assert.notEqual(await loading, null);
  assert.equal(loads, 1);
});

test('a tenant that is invalidated at every try is answered unavailable, and works again afterwards', async () => {
  let noisy = true;
  const { cache } = cacheWith({
    async load() {
      await settled();
      if (noisy) cache.invalidateTenant(1);
      return { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
    },
  });

  await assert.rejects(
    cache.get('a'),
    (error: unknown) => error instanceof ApiError && error.code === 'unavailable',
  );
  noisy = false;
  assert.notEqual(await cache.get('a'), null);
});

test('an unknown credential is remembered for a second and looked up again after it', async () => {
  const { cache, loads, pass } = cacheWith({});

  await cache.get('nobody');
  await cache.get('nobody');
  assert.equal(loads(), 1);
  pass(refusalKeptMs);
  await cache.get('nobody');

  assert.equal(loads(), 2);
});

test('with several servers a credential is loaded again when it is older than it may be', async () => {
  const { cache, loads, pass, principals } = cacheWith({ keptMs: 2_000 });
  await cache.get('a');
  pass(1_999);
  assert.notEqual(cache.peek('a'), undefined);

  pass(1);
  principals.delete('a');

  assert.equal(cache.peek('a'), undefined);
  assert.equal(await cache.get('a'), null);
  assert.equal(loads(), 2);
});

test('what is believed is counted from when it was asked for, not from when the answer came', async () => {
  const { wait, open } = gate();
  const { cache, pass } = cacheWith({
    keptMs: 2_000,
    async load() {
      await wait();
      return { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
    },
  });
  const asked = cache.get('a');
  pass(1_500);
  open();
  await asked;
  assert.notEqual(cache.peek('a'), undefined);

  pass(500);

  assert.equal(cache.peek('a'), undefined);
});

test('a credential in use is renewed before it is too old, once, and one that is revoked by then ends', async () => {
  const { cache, loads, pass, principals } = cacheWith({ keptMs: 2_000, renewAfterMs: 1_000 });
  await cache.get('a');
  pass(1_000);
  assert.notEqual(cache.peek('a'), undefined);
  assert.notEqual(cache.peek('a'), undefined);
  await new Promise(setImmediate);
  pass(1_500);
  assert.notEqual(cache.peek('a'), undefined);
  assert.equal(loads(), 3);

  await new Promise(setImmediate);
  principals.delete('a');
  pass(1_000);
  assert.notEqual(cache.peek('a'), undefined);
  await new Promise(setImmediate);

  assert.equal(cache.peek('a'), undefined);
});

test('a renewal that fails costs nobody anything while the credential is believed', async () => {
  let broken = false;
  const { cache, pass } = cacheWith({
    keptMs: 2_000,
    renewAfterMs: 1_000,
    async load() {
      if (broken) throw new Error('store');
      return { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
    },
  });
  await cache.get('a');
  broken = true;
  pass(1_500);

  assert.notEqual(cache.peek('a'), undefined);
  await new Promise(setImmediate);
  assert.notEqual(cache.peek('a'), undefined);
  pass(500);

  await assert.rejects(cache.get('a'), /store/);
});

test('a credential is forgotten when it expires', async () => {
  const { cache, pass } = cacheWith({
    load: async () => ({ principal: keyPrincipal({ tenantId: 1 }), expiresAt: 1_500 }),
  });
  await cache.get('a');
  assert.notEqual(cache.peek('a'), undefined);

  pass(500);

  assert.equal(cache.peek('a'), undefined);
});

test('a failed load is not kept', async () => {
  let broken = true;
  const { cache } = cacheWith({
    async load() {
      if (broken) throw new Error('store');
      return { principal: keyPrincipal({ tenantId: 1 }), expiresAt: null };
    },
  });

  await assert.rejects(cache.get('a'));
  broken = false;
  assert.notEqual(await cache.get('a'), null);
});

test('the cache, its refusals and its loads are bounded', async () => {
  const { wait, open } = gate();
  const { cache } = cacheWith({
    entriesMax: 10,
    refusalsMax: 10,
    loadsMax: 2,
    async load(credential) {
      await wait();
      return { principal: keyPrincipal({ tenantId: Number(credential) }), expiresAt: null };
    },
  });

  const first = [cache.get('1'), cache.get('2')];
  await assert.rejects(
    cache.get('3'),
    (error: unknown) => error instanceof ApiError && error.code === 'rate_limited' && error.retryAfter === 1,
  );
  open();
  await Promise.all(first);
  for (let i = 3; i < 40; i++) {
    const loading = cache.get(String(i));
    open();
    await loading;
  }

  assert.equal(cache.size, 10);
});
