import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { createLogger } from '../../../src/base/log.ts';
import { type MailCarrier, MailQueue, MailRefused } from '../../../src/identity/mail-queue.ts';
import { type Mail, mailOf } from '../../../src/identity/mails.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const mailTo = (email: string): Mail =>
  mailOf({ kind: 'verify', person: { name: 'Ada', email }, token: 'secret-token' }, 'https://tide.example');

function queueWith(carry: (mail: Mail) => Promise<void>) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const carried: string[] = [];
  let closed = 0;
  const carrier: MailCarrier = {
    async carry(mail) {
      await carry(mail);
      carried.push(mail.to.address);
    },
    close() {
      closed += 1;
    },
  };
  const logger = createLogger('front', 'debug', (line) => lines.push(line));
  const queue = new MailQueue({ carrier, clock, logger });
  const post = (email: string) => queue.post('verify', async () => mailTo(email));
  const logged = () => lines.map((line) => JSON.parse(line) as { level: string; reason?: string });
  return { queue, clock, lines, logged, carried, post, closed: () => closed };
}

test('mails are sent in their order, a few at once', async () => {
  let underWay = 0;
  let most = 0;
  const { clock, carried, post } = queueWith(async () => {
    most = Math.max(most, ++underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
  });

  const names = Array.from({ length: 20 }, (_, i) => `p${i}@example.com`);
  for (const name of names) assert.ok(post(name));
  for (let i = 0; i < 5; i++) await clock.settle();

  assert.deepEqual(carried, names);
  assert.equal(most, limits.mailsAtOnceMax);
});

test('a failed mail is tried again with growing pauses, and then given up', async () => {
  const at: number[] = [];
  const { clock, post, logged, carried } = queueWith(async () => {
    at.push(clock.monotonic());
    throw Object.assign(new Error('connect to ada@example.com'), { code: 'ECONNREFUSED' });
  });
  post('ada@example.com');

  await clock.advance(120_000);

  assert.deepEqual(at, [0, 1_000, 6_000, 31_000]);
  assert.deepEqual(carried, []);
  const levels = logged().map(({ level, reason }) => `${level}: ${reason}`);
  assert.deepEqual(levels, [
    ...Array.from({ length: 3 }, () => 'info: Error ECONNREFUSED'),
    'error: Error ECONNREFUSED',
  ]);
});

test('a mail that the server has refused for good is not tried again', async () => {
  let tries = 0;
  const { clock, post, logged } = queueWith(async () => {
    tries += 1;
    const cause = Object.assign(new Error('550 no such user ada@example.com'), { responseCode: 550 });
    throw new MailRefused('refused', { cause });
  });
  post('ada@example.com');

  await clock.advance(120_000);

  assert.equal(tries, 1);
  assert.deepEqual(
    logged().map(({ level, reason }) => `${level}: ${reason}`),
    ['error: MailRefused 550'],
  );
});

test('no log names an address or a link', async () => {
  const { clock, lines, post, queue } = queueWith(async (mail) => {
    throw new Error(`${mail.to.address} ${mail.text}`);
  });
  post('ada@example.com');
  queue.post('reset', async () => {
    throw new Error('ada@example.com');
  });
  await clock.advance(120_000);
  for (let i = 0; i <= limits.mailsWaitingMax; i++) post('ada@example.com');
  await clock.run(queue.stop());

  const text = lines.join('');
  assert.ok(lines.length > 8);
  assert.ok(!/ada@|example\.com|secret-token|tide\.example/.test(text), text.slice(0, 500));
});

test('a full queue takes no more, and takes some when it is empty again', async () => {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const { clock, post, queue, carried } = queueWith(() => held);

  for (let i = 0; i < limits.mailsWaitingMax; i++) assert.ok(post(`p${i}@example.com`));
  assert.ok(queue.isFull);
  assert.ok(!post('late@example.com'));
  letGo();
  for (let i = 0; i < 200; i++) await clock.settle();

  assert.equal(carried.length, limits.mailsWaitingMax);
  assert.ok(post('ada@example.com'));
});

test('a mail may turn out to be none, and composing one is tried again as sending is', async () => {
  const { clock, queue, carried } = queueWith(async () => {});
  let composed = 0;
  queue.post('reset', async () => null);
  queue.post('reset', async () => {
    composed += 1;
    if (composed === 1) throw new Error('the store is away');
    return mailTo('ada@example.com');
  });

  await clock.advance(1_000);

  assert.deepEqual(carried, ['ada@example.com']);
  assert.equal(composed, 2);
});

test('a mail is composed once, however often it is sent', async () => {
  let fail = true;
  const { clock, queue, carried } = queueWith(async () => {
    if (fail) throw new Error('away');
  });
  let composed = 0;
  queue.post('reset', async () => {
    composed += 1;
    return mailTo('ada@example.com');
  });
  await clock.settle();
  fail = false;

  await clock.advance(1_000);

  assert.deepEqual([composed, carried.length], [1, 1]);
});

test('stopping sends what waits, gives up what has failed, and takes nothing more', async () => {
  const { clock, queue, post, carried, logged, closed } = queueWith(async (mail) => {
    if (mail.to.address.startsWith('bad')) throw new Error('away');
  });
  post('bad@example.com');
  await clock.settle();
  for (let i = 0; i < 10; i++) post(`p${i}@example.com`);

  await clock.run(queue.stop());

  assert.equal(carried.length, 10);
  assert.equal(logged().filter(({ level }) => level === 'error').length, 1);
  assert.ok(!post('late@example.com'));
  assert.equal(closed(), 1);
  assert.equal(clock.timers, 0);
});

test('stopping waits for a mail server that says nothing a few seconds and no longer', async () => {
  const { clock, queue, post } = queueWith(() => new Promise(() => {}));
  for (let i = 0; i < 10; i++) post(`p${i}@example.com`);
  const startedMs = clock.monotonic();

  await clock.run(queue.stop());

  assert.equal(clock.monotonic() - startedMs, limits.mailDrainMs);
});
