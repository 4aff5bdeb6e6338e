import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { type AttemptLimits, builtInPlans } from '../../../src/accounts/plans.ts';
import { AttemptCounts } from '../../../src/identity/attempt-counts.ts';
import { Attempts, networkOf, wideNetworkOf } from '../../../src/identity/attempts.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const ada = { email: 'ada@example.com', address: '192.0.2.1' };
const minuteMs = 60_000;

function attemptsWith(changes: Partial<AttemptLimits> = {}, sparesLoopback = true, keysMax?: number) {
  const clock = new FakeClock();
  const allowed = { ...builtInPlans.attempts, ...changes };
  const more = keysMax === undefined ? {} : { keysMax };
  const counts = new AttemptCounts({ limits: allowed, clock, ...more });
  const attempts = new Attempts({
    limits: allowed,
    clock,
    sparesLoopback,
    count: (ask) => counts.take(ask),
    ...more,
  });
  const fail = (attempter = ada) =>
    outcomeOf(() =>
      attempts.login(attempter, () => Promise.reject(new ApiError('unauthorized', 'wrong password'))),
    );
  const succeed = (attempter = ada) => outcomeOf(() => attempts.login(attempter, async () => 'in'));
  return { attempts, clock, fail, succeed };
}

/** `ok`, the seconds of a 429, or the code of another error. */
async function outcomeOf(work: () => unknown): Promise<string | number> {
  try {
    await work();
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error.code === 'rate_limited' ? (error.retryAfter ?? -1) : error.code;
  }
}

async function times(count: number, work: () => Promise<string | number>): Promise<(string | number)[]> {
  const outcomes: (string | number)[] = [];
  for (let i = 0; i < count; i++) outcomes.push(await work());
  return outcomes;
}

const all = (count: number, outcome: string | number) => Array.from({ length: count }, () => outcome);
const free: Partial<AttemptLimits> = { login_per_address_minute: null };

test('ten logins may fail, then each failure doubles the wait, until the first ones leave the window', async () => {
  const { clock, fail, succeed } = attemptsWith(free);
  assert.deepEqual(await times(10, fail), all(10, 'unauthorized'));

  const waits: (string | number)[] = [];
  for (let i = 0; i < 5; i++) {
    const wait = await fail();
    waits.push(wait);
    assert.equal(await succeed(), wait, 'the right password from there has to wait as well');
    clock.jump(Number(wait) * 1_000);
    assert.equal(await fail(), 'unauthorized');
  }

  assert.deepEqual(waits, [30, 60, 120, 240, 480]);
  // The ten of the beginning are a window old: what came since is fewer than ten.
  assert.equal(await succeed(), 'ok');
});

test('no wait is longer than the window', async () => {
  const { clock, fail } = attemptsWith({ ...free, login_failures_per_account_and_network: 1 });
  const waits: number[] = [];
  for (let i = 0; i < 40; i++) {
    const outcome = await fail();
    if (typeof outcome === 'number') waits.push(outcome);
    if (typeof outcome === 'number') clock.jump(outcome * 1_000);
  }

  assert.ok(waits.length > 10 && Math.max(...waits) <= 900, waits.join());
});

test('nobody locks out somebody else: not another network, by however many failures, nor by four an hour', async () => {
  const { attempts, clock, fail, succeed } = attemptsWith(free);
  const owner = { ...ada, address: '198.51.100.20' };
  await times(25, fail);
  assert.equal(typeof (await succeed()), 'number', 'where the failures came from waits');
  assert.equal(await succeed({ ...ada, address: '192.0.2.254' }), await succeed(), 'and all of its network');

  assert.equal(await succeed(owner), 'ok');

  // After ten failures, four tries an hour for two days, from the owner's own network.
  await times(10, () => fail(owner));
  // What fails for another reason is neither a failure nor a success: it tells whether a login is let in at all.
  const look = () =>
    outcomeOf(() => attempts.login(owner, () => Promise.reject(new ApiError('unavailable', 'away'))));
  for (let quarter = 0; quarter < 4 * 48; quarter++) {
    clock.jump(15 * minuteMs);
    assert.equal(await fail(owner), 'unauthorized');
    assert.equal(await look(), 'unavailable', `after ${quarter} quarters of an hour`);
  }
  assert.equal(await succeed(owner), 'ok');
});

test('an account that is tried from many networks is slow for everybody, and closed to nobody', async () => {
  const { attempts, clock, fail } = attemptsWith({ ...free, login_failures_per_account: 30 });
  for (let network = 0; network < 30; network++) await fail({ ...ada, address: `10.0.${network}.1` });
  let judged = 0;
  const outcomes: unknown[] = [];
  const tried = (address: string) =>
    attempts
      .login({ ...ada, address }, async () => {
        judged += 1;
        return 'in';
      })
      .then((outcome) => outcomes.push(outcome));
  // The attacker goes on from ever new networks: it moves nobody's turn.
  const owner = tried('198.51.100.20');
  const attackers: Promise<unknown>[] = [];
  for (let network = 100; network < 120; network++) {
    attackers.push(
      attempts
        .login({ ...ada, address: `10.0.${network}.1` }, () =>
          Promise.reject(new ApiError('unauthorized', 'wrong')),
        )
        .catch(() => {}),
    );
    await clock.advance(100);
  }
  assert.equal(judged, 0, 'it is held');

  await clock.advance(1_000);

  await owner;
  assert.deepEqual([judged, outcomes], [1, ['in']]);
  await clock.advance(10_000);
  await Promise.all(attackers);
  const other = attempts.login({ email: 'eve@example.com', address: '10.0.1.1' }, async () => 'in');
  assert.equal(await other, 'in', 'no other account waits');
});

test('networks are /24, of IPv6 /56', () => {
  assert.equal(wideNetworkOf('192.0.2.77'), '192.0.2.0/24');
  assert.equal(wideNetworkOf('2001:db8:1:23ff::1'), '2001:db8:1:2300::/56');
  assert.equal(wideNetworkOf('2001:db8:1:2300:ffff::'), '2001:db8:1:2300::/56');
  assert.notEqual(wideNetworkOf('2001:db8:1:2400::1'), wideNetworkOf('2001:db8:1:23ff::1'));
  assert.equal(wideNetworkOf('::1'), '0:0:0:0::/56');
});

test('after the wait the right password lets in, and everything before is forgotten', async () => {
  const { clock, fail, succeed } = attemptsWith(free);
  await times(10, fail);
  clock.jump(30_000);

  assert.equal(await succeed(), 'ok');

  assert.deepEqual(await times(10, fail), all(10, 'unauthorized'));
});

test('failures are forgotten after a window without one', async () => {
  const { clock, fail } = attemptsWith(free);
  await times(9, fail);
  clock.jump(15 * minuteMs - 1);
  await fail();
  assert.equal(await fail(), 30);
  clock.jump(30_000 + 15 * minuteMs);

  assert.deepEqual(await times(10, fail), all(10, 'unauthorized'));
});

test('an account is the same however its address is written, and no other account waits with it', async () => {
  const { fail, succeed } = attemptsWith(free);
  await times(5, fail);
  await times(5, () => fail({ ...ada, email: ' ADA@Example.com ' }));

  assert.equal(await succeed(), 30);
  assert.equal(await succeed({ ...ada, email: 'eve@example.com' }), 'ok');
});

test('only a wrong password is a failure', async () => {
  const { attempts, succeed } = attemptsWith(free);
  for (let i = 0; i < 20; i++) {
    await outcomeOf(() =>
      attempts.login(ada, () => Promise.reject(new ApiError('unavailable', 'the store is away'))),
    );
  }

  assert.equal(await succeed(), 'ok');
});

test('a password that was reset forgives', async () => {
  const { attempts, fail, succeed } = attemptsWith(free);
  await times(12, fail);

  attempts.forgiveLogins({ ...ada, email: 'Ada@example.com' });

  assert.equal(await succeed(), 'ok');
});

test('an address may log in thirty times a minute, whoever as', async () => {
  const { clock, succeed } = attemptsWith();
  let person = 0;
  const next = () => succeed({ email: `p${person++}@example.com`, address: ada.address });
  assert.deepEqual(await times(30, next), all(30, 'ok'));
  clock.jump(20_500);

  assert.equal(await next(), 40);
  assert.equal(await succeed({ ...ada, address: '192.0.2.2' }), 'ok');
  clock.jump(39_500);
  assert.equal(await next(), 'ok');
});

test('an address may sign up twenty times an hour', async () => {
  const { attempts, clock } = attemptsWith();
  const signUp = () => outcomeOf(() => attempts.signup(ada.address));

  assert.deepEqual(await times(20, signUp), all(20, 'ok'));
  assert.equal(await signUp(), 3_600);
  clock.jump(60 * minuteMs);
  assert.equal(await signUp(), 'ok');
});

test('a reset is mailed three times an hour an account and ten an address; a refused address costs no account', async () => {
  const { attempts, clock } = attemptsWith();
  const forgot = (email: string, address: string) =>
    outcomeOf(() => attempts.forgotPassword({ email, address }));

  assert.deepEqual(await times(4, () => forgot(ada.email, '192.0.2.1')), ['ok', 'ok', 'ok', 3_600]);
  assert.equal(await forgot('ADA@example.com', '198.51.100.7'), 3_600);
  for (let i = 0; i < 6; i++) assert.equal(await forgot(`p${i}@example.com`, '192.0.2.1'), 'ok');
  assert.deepEqual(await times(5, () => forgot('eve@example.com', '192.0.2.1')), all(5, 3_600));
  assert.equal(await forgot('eve@example.com', '198.51.100.8'), 'ok');
  clock.jump(60 * minuteMs);
  assert.equal(await forgot(ada.email, '192.0.2.1'), 'ok');
});

test('clients on this machine are not counted by address, unless a proxy stands before them', async () => {
  for (const address of ['127.0.0.1', '127.8.8.8', '::1']) {
    const alone = attemptsWith({ signup_per_address_hour: 1 }, true);
    const proxied = attemptsWith({ signup_per_address_hour: 1 }, false);
    const signUp = ({ attempts }: typeof alone) => outcomeOf(() => attempts.signup(address));

    assert.deepEqual(await times(3, () => signUp(alone)), all(3, 'ok'));
    assert.deepEqual(await times(2, () => signUp(proxied)), ['ok', 3_600]);
  }
});

test('an account is counted on this machine too', async () => {
  const { fail } = attemptsWith();

  const outcomes = await times(11, () => fail({ ...ada, address: '127.0.0.1' }));

  assert.equal(outcomes.at(-1), 30);
});

test('null is no limit', async () => {
  const { attempts, fail } = attemptsWith({
    login_failures_per_account_and_network: null,
    login_failures_per_account: null,
    login_per_address_minute: null,
    signup_per_address_hour: null,
    register_per_address_hour: null,
    forgot_per_account_hour: null,
    forgot_per_address_hour: null,
  });

  assert.deepEqual(await times(100, fail), all(100, 'unauthorized'));
  for (let i = 0; i < 100; i++) {
    attempts.signup(ada.address);
    attempts.forgotPassword(ada);
  }
});

test('a flood of addresses makes the oldest forgotten, and takes no more memory', async () => {
  const { attempts } = attemptsWith({ signup_per_address_hour: 1 }, true, 100);
  attempts.signup('192.0.2.1');
  assert.equal(await outcomeOf(() => attempts.signup('192.0.2.1')), 3_600);

  for (let i = 0; i < 1_000; i++) attempts.signup(`10.0.${i >> 8}.${i & 255}`);

  assert.equal(await outcomeOf(() => attempts.signup('192.0.2.1')), 'ok');
  assert.ok(limits.attemptKeysMax >= 10_000);
});

test('IPv6 clients count by their network of 64 bits', () => {
  const network = '2001:db8:0:1::/64';
  for (const address of ['2001:db8:0:1::1', '2001:0DB8:0000:0001:ffff:ffff:ffff:ffff', '2001:db8:0:1::']) {
    assert.equal(networkOf(address), network);
  }
  assert.equal(networkOf('2001:db8::1'), '2001:db8:0:0::/64');
  assert.equal(networkOf('::1'), '0:0:0:0::/64');
  assert.equal(networkOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
  assert.notEqual(networkOf('2001:db8:0:2::1'), network);
  assert.equal(networkOf('192.0.2.1'), '192.0.2.1');
});

test('an address may look up so much in vain in a minute, and what it finds does not count', async () => {
  const { attempts, clock } = attemptsWith();
  const dead = () => Promise.reject(new ApiError('bad_request', 'a dead link'));
  const vain = (address = ada.address) => outcomeOf(() => attempts.useLink(address, dead));
  const most = limits.failedLookUpsPerMinuteMax;
  for (let i = 0; i < 2 * most; i++) await attempts.useLink(ada.address, async () => 'found');

  assert.deepEqual(await times(most, vain), all(most, 'bad_request'));
  clock.jump(20_000);
  assert.equal(await vain(), 40);
  assert.equal(await outcomeOf(() => attempts.useLink(ada.address, async () => 'found')), 40);
  assert.equal(await outcomeOf(() => attempts.lookUpsFrom(ada.address).begin()), 40);
  assert.equal(await vain('192.0.2.2'), 'bad_request');
  clock.jump(40_000);
  assert.equal(await vain(), 'bad_request');
});

test('look-ups of this machine are not counted unless a proxy stands before the server', async () => {
  for (const [spares, last] of [
    [true, 'ok'],
    [false, 60],
  ] as const) {
    const guard = attemptsWith({}, spares).attempts.lookUpsFrom('127.0.0.1');
    for (let i = 0; i < limits.failedLookUpsPerMinuteMax; i++) guard.failed();
    assert.equal(await outcomeOf(() => guard.begin()), last);
  }
});
