import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import type { FrontRequest } from '../../../src/front/front-operation.ts';
import { peopleOperations } from '../../../src/front/people-operations.ts';
import { AttemptCounts } from '../../../src/identity/attempt-counts.ts';
import { Attempts } from '../../../src/identity/attempts.ts';
import { loginTokens } from '../../../src/identity/login-token.ts';
import { MailQueue } from '../../../src/identity/mail-queue.ts';
import type { Mail } from '../../../src/identity/mails.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { alone } from '../../support/key-rings.ts';
import { peopleHouse } from '../../support/people.ts';

const input = { email: 'ada@example.com', name: 'Ada', password: 'engine number 1' };

/** The operations over a memory store, with a mail server that keeps what it gets, or holds it up. */
async function front() {
  const house = await peopleHouse();
  const { people, clock } = house;
  const mails: Mail[] = [];
  let hold: Promise<void> = Promise.resolve();
  const carrier = {
    async carry(mail: Mail) {
      await hold;
      mails.push(mail);
    },
    close() {},
  };
  const forgotten: number[] = [];
  const queue = new MailQueue({ carrier, clock, logger: silentLogger });
  const allowed = { limits: builtInPlans.attempts, clock };
  const counts = new AttemptCounts(allowed);
  const operations = new Map(
    peopleOperations({
      people: async () => people,
      loginTokens: loginTokens(alone(new Uint8Array(32)), clock, systemRandom),
      attempts: new Attempts({ ...allowed, sparesLoopback: true, count: (ask) => counts.take(ask) }),
      mails: queue,
      tenants: { get: async () => null },
      baseUrl: 'https://tide.example',
      forgetLogins: async (personId) => void forgotten.push(personId),
    }),
  );
  const call = async (
    name: Parameters<typeof operations.get>[0],
    body: unknown,
    address = '192.0.2.1',
  ): Promise<unknown> => {
    const parameters = { name: undefined, id: undefined, provider: undefined };
    const whose = { principal: null, clientAddress: address, tenant: undefined, isAbout: () => {} };
    const request: FrontRequest = { body, parameters, plannedId: 0, ...whose };
    return operations.get(name)?.(request);
  };
  const holdMails = () => {
    hold = new Promise(() => {});
  };
  return { ...house, mails, queue, call, forgotten, holdMails };
}

const tokenOf = (mail: Mail | undefined) => /token=([0-9a-f]+)/.exec(mail?.text ?? '')?.[1] ?? '';

test('signing up does not wait for the mail, nor fail because of a full queue of them', async () => {
  const { call, holdMails, queue } = await front();
  holdMails();
  for (let i = 0; i < limits.mailsWaitingMax; i++) queue.post('verify', () => new Promise(() => {}));

  assert.ok(queue.isFull);
  assert.ok(await call('signup', input));
});

test('of 200 who log in at once those past the queue for hashing are refused before anything is read for them', async () => {
  const { call, objectStore, clock } = await front();
  await call('signup', input);
  await clock.settle();
  let [reads, refused] = [0, 0];
  const get = objectStore.get.bind(objectStore);
  // The store answers nobody until the others are refused.
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  objectStore.get = async (key, options) => {
    reads += 1;
    await held;
    return get(key, options);
  };
  const { email, password } = input;
  const login = () =>
    call('login', { email, password }, '127.0.0.1').then(
      () => 'in',
      (error: unknown) => {
        refused += 1;
        if (refused === 200 - limits.passwordsAtOnceMax) letGo();
        return error instanceof ApiError ? `${error.code} ${error.retryAfter}` : String(error);
      },
    );

  const outcomes = await Promise.all(Array.from({ length: 200 }, login));

  const letIn = outcomes.filter((outcome) => outcome === 'in').length;
  assert.equal(letIn, limits.passwordsAtOnceMax);
  // Not all are told to come back at the same moment.
  assert.equal(outcomes.filter((outcome) => /^rate_limited [2-6]$/.test(outcome)).length, 200 - letIn);
  assert.equal(new Set(outcomes).size, 6);
  assert.equal(reads, 2 * letIn);
  assert.equal(await login(), 'in');
});

test('a forgotten password is answered before anything is looked up, whether or not there is an account', async () => {
  const { call, objectStore, clock, mails } = await front();
  await call('signup', input);
  await clock.settle();
  mails.length = 0;
  let reads = 0;
  const get = objectStore.get.bind(objectStore);
  // The store answers nobody until both have their answers.
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  objectStore.get = async (key, options) => {
    await gate;
    reads += 1;
    return get(key, options);
  };

  const known = await call('forgotPassword', { email: 'Ada@example.com' });
  const unknown = await call('forgotPassword', { email: 'eve@example.com' });

  assert.deepEqual(known, { sent: true });
  assert.deepEqual(unknown, known);
  assert.equal(reads, 0);
  letGo();
  await clock.settle();
  assert.deepEqual(
    mails.map(({ kind, to }) => [kind, to.address]),
    [['reset', 'ada@example.com']],
  );
});

test('a reset makes every front forget the logins, and forgives the failures before it', async () => {
  const { call, clock, mails, forgotten } = await front();
  const { id } = (await call('signup', input)) as { id: number };
  const { email, password } = input;
  for (let i = 0; i < 10; i++) await call('login', { email, password: 'wrong horse' }).catch(() => {});
  const waits = await call('login', { email, password }).catch((error: unknown) => error);
  await call('forgotPassword', { email });
  await clock.settle();

  assert.ok(waits instanceof ApiError && waits.code === 'rate_limited');
  const token = tokenOf(mails.at(-1));
  assert.deepEqual(await call('resetPassword', { token, password: 'engine number 2' }), { reset: true });

  assert.deepEqual(forgotten, [id]);
  assert.ok(await call('login', { email, password: 'engine number 2' }));
});

test('a reset of whose storing nobody heard makes the logins be forgotten all the same, and says that it may be done', async () => {
  const { call, clock, mails, forgotten, objectStore } = await front();
  const { id } = (await call('signup', input)) as { id: number };
  await call('forgotPassword', { email: input.email });
  await clock.settle();
  const get = objectStore.get.bind(objectStore);
  objectStore.fail = () => {
    // The store is away for good, from after the write on.
    objectStore.get = (key) => Promise.reject(new StoreError('get', key, 'not-applied', 'failed'));
    return { outcome: 'unknown', apply: true };
  };

  const body = { token: tokenOf(mails.at(-1)), password: 'engine number 2' };
  const error = await clock.run(call('resetPassword', body)).catch((caught: unknown) => caught);

  assert.ok(error instanceof ApiError && error.code === 'write_unknown', String(error));
  assert.deepEqual(forgotten, [id]);
  objectStore.get = get;
  objectStore.fail = () => null;
  assert.ok(await call('login', { email: input.email, password: 'engine number 2' }));
});

test('a link that is none makes nobody’s logins be forgotten', async () => {
  const { call, forgotten } = await front();
  const { id } = (await call('signup', input)) as { id: number };

  const token = id.toString(16).padStart(12, '0') + '0'.repeat(40);
  await assert.rejects(call('resetPassword', { token, password: 'engine number 2' }));

  assert.deepEqual(forgotten, []);
});

test('a token that cannot be one is a dead link, 400; a password that cannot be one is 422', async () => {
  const { call } = await front();
  const refusalOf = async (body: unknown) => {
    const error = await call('resetPassword', body).catch((caught: unknown) => caught);
    assert.ok(error instanceof ApiError);
    return [error.code, ...Object.keys(error.fields ?? {})];
  };

  for (const token of ['', 'x', 5, null, 'x'.repeat(5_000), '0'.repeat(52), undefined]) {
    assert.deepEqual(await refusalOf({ token, password: 'engine number 2' }), ['bad_request', 'token']);
  }
  assert.deepEqual(await refusalOf({ token: '0'.repeat(52), password: 'short' }), ['invalid', 'password']);
  assert.deepEqual(await refusalOf({ token: 'x', password: 'long enough', more: 1 }), ['invalid', 'more']);
});

test('an address that asks too often is refused, the same for every account', async () => {
  const { call } = await front();
  const codes: string[] = [];
  for (let i = 0; i < 12; i++) {
    const error = await call('forgotPassword', { email: `p${i}@example.com` }).catch(
      (caught: unknown) => caught,
    );
    codes.push(error instanceof ApiError ? `${error.code} ${error.retryAfter}` : 'ok');
  }

  assert.deepEqual(codes, [
    ...Array.from({ length: 10 }, () => 'ok'),
    'rate_limited 3600',
    'rate_limited 3600',
  ]);
});
