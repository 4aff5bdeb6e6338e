import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import { limits } from '../../../protocol/limits.ts';
import type { BeganRequest, EndedRequest } from '../../../protocol/messages.ts';
import { listAll } from '../../../src/object-store/list-all.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, InProcess, seededBytes, tenantId } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let starts = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
});

async function start(): Promise<InProcess> {
  return clock.run(InProcess.start({ store: truth, clock, random: seededBytes(190 + starts++) }));
}

async function withTenant(): Promise<InProcess> {
  const process = await start();
  await clock.run(process.createTenant());
  return process;
}

const digest = 'd'.repeat(64);
const createKey = (process: InProcess, name = 'k', idempotencyKey = digest) =>
  process.ask('createKey', '', { body: { name }, idempotencyKey });
const createNamespace = (process: InProcess, name: string) =>
  process.ask('createNamespace', '', { body: { name }, idempotencyKey: digest });
const once = (answer: Answer) => [answer.status, answer.body];

async function keyCount(process: InProcess): Promise<number> {
  return (await clock.run(process.ask('listKeys', ''))).body.length;
}

test('a repeated request is answered as the first time, also after a kill and after a flush', async () => {
  const first = await withTenant();
  const made = await clock.run(createKey(first));
  assert.equal(made.status, 201);
  assert.deepEqual(once(await clock.run(createKey(first))), once(made));
  first.kill();

  const second = await start();
  assert.deepEqual(once(await clock.run(createKey(second))), once(made));
  await clock.run(second.drain());

  const third = await start();
  assert.deepEqual(once(await clock.run(createKey(third))), once(made));
  assert.equal(await keyCount(third), 2);
  third.kill();
});

test('no key lies in the object store as it is shown, in the log or in a manifest', async () => {
  const process = await withTenant();
  const made = await clock.run(createKey(process));
  const holds = async () => {
    for await (const { key } of listAll(truth, '')) {
      const bytes = (await truth.get(key))?.bytes ?? new Uint8Array();
      if (Buffer.from(bytes).includes(made.body.key)) return key;
    }
    return null;
  };

  assert.equal(await holds(), null);
  await clock.run(process.host.flush(tenantId, '', ''));
  assert.equal(await holds(), null);
  process.kill();
});

test('the key of another request is refused, whatever differs', async () => {
  const process = await withTenant();
  await clock.run(createKey(process));

  const otherBody = await clock.run(createKey(process, 'other'));
  const otherOperation = await clock.run(createNamespace(process, 'k'));

  for (const { status, code, body } of [otherBody, otherOperation]) {
    assert.deepEqual([status, code], [422, 'invalid']);
    assert.deepEqual(Object.keys(body.fields), ['Idempotency-Key']);
  }
  assert.equal(await keyCount(process), 2);
  process.kill();
});

test('while the first is under way the second is told to come back, then it gets the answer', async () => {
  const process = await withTenant();

  const answers = await clock.run(Promise.all([1, 2, 3].map(() => createKey(process))));

  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
  const refused = answers.find(({ status }) => status === 409);
  assert.deepEqual([refused?.code, refused?.body.retry_after], ['conflict', 1]);
  const made = answers.find(({ status }) => status === 201);
  assert.deepEqual((await clock.run(createKey(process))).body, made?.body);
  assert.equal(await keyCount(process), 2);
  process.kill();
});

test('a refusal is not kept: the request may succeed later, and the key serve another request', async () => {
  const process = await withTenant();
  await clock.run(process.ask('createNamespace', '', { body: { name: 'n' } }));

  assert.equal((await clock.run(createNamespace(process, 'n'))).status, 409);
  await clock.run(process.ask('deleteNamespace', '', { argument: 'n' }));
  const made = await clock.run(createNamespace(process, 'n'));
  assert.equal(made.status, 201);
  assert.deepEqual(once(await clock.run(createNamespace(process, 'n'))), once(made));
  process.kill();
});

test('after a day a key is like new', async () => {
  const process = await withTenant();
  const made = await clock.run(createKey(process));

  clock.jump(limits.idempotentAnswerKeptMs - 10_000);
  assert.deepEqual((await clock.run(createKey(process))).body, made.body);
  clock.jump(10_000);
  const again = await clock.run(createKey(process, 'another'));

  assert.equal(again.status, 201);
  assert.equal(await keyCount(process), 3);
  process.kill();
});

test('who hears that nobody knows what became of a request learns it by repeating it', async () => {
  const process = await withTenant();
  let away = true;
  process.store.plan = ({ key }) => (away && key.startsWith('log/') ? 'drop-before-apply' : undefined);

  const unknown = await clock.run(createKey(process));
  const meanwhile = await clock.run(createKey(process));
  away = false;
  await clock.advance(20_000);
  const known = await clock.run(createKey(process));

  assert.deepEqual([unknown.code, meanwhile.code, known.status], ['write_unknown', 'conflict', 201]);
  assert.equal(await keyCount(process), 2);
  process.kill();
});

const request = { keyDigest: digest, requestDigest: 'e'.repeat(64) };
const begin = (process: InProcess, plannedId: number) =>
  process.askInside(internalCalls.beginRequest, { ...request, plannedId }) as Promise<BeganRequest>;
const end = (process: InProcess, outcome: EndedRequest['outcome']) =>
  process.askInside(internalCalls.endRequest, { ...request, plannedId: 5, outcome });

test('a request that the front does goes by the id that was planned first, until it has ended', async () => {
  const first = await withTenant();
  assert.deepEqual(await clock.run(begin(first, 5)), { kind: 'begun', plannedId: 5 });
  await assert.rejects(clock.run(begin(first, 6)), { code: 'conflict', retryAfter: 1 });
  first.kill();

  const second = await start();
  assert.deepEqual(await clock.run(begin(second, 7)), { kind: 'begun', plannedId: 5 });
  await clock.run(end(second, { kind: 'unknown' }));
  assert.deepEqual(await clock.run(begin(second, 8)), { kind: 'begun', plannedId: 5 });
  await clock.run(end(second, { kind: 'done', status: 201, text: '{"id":5}' }));
  const done = { kind: 'done', status: 201, answer: '{"id":5}' };
  assert.deepEqual(await clock.run(begin(second, 9)), done);
  await clock.run(second.drain());

  const third = await start();
  assert.deepEqual(await clock.run(begin(third, 10)), done);
  third.kill();
});

test('a request that the front refused leaves its key free, for another request too', async () => {
  const process = await withTenant();
  assert.deepEqual(await clock.run(begin(process, 5)), { kind: 'begun', plannedId: 5 });
  await clock.run(end(process, { kind: 'refused' }));

  const other = { ...request, requestDigest: 'f'.repeat(64), plannedId: 9 };
  const begun = await clock.run(process.askInside(internalCalls.beginRequest, other));

  assert.deepEqual(begun, { kind: 'begun', plannedId: 9 });
  process.kill();
});

test('an answer that was sealed under another server key is not made up', async () => {
  const first = await withTenant();
  await clock.run(createKey(first));
  first.kill();

  const second = await start();
  Object.assign(second.components, { keyEncryptionKeys: { present: Buffer.alloc(32, 2), previous: null } });
  const { status, code } = await clock.run(createKey(second));

  assert.deepEqual([status, code], [409, 'conflict']);
  assert.equal(await keyCount(second), 2);
  second.kill();
});
