import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { type ActorCall, actorAnswerToWire, noMeter } from '../../../protocol/messages.ts';
import type { Message } from '../../../src/base/port-channel.ts';
import type { Deliver } from '../../../src/router/delivery.ts';
import { EventualRead, mayBeEventual } from '../../../src/router/eventual-read.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { callOf } from '../../support/routed-servers.ts';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const headOf = (status: number) => actorAnswerToWire({ status, headers: [], meter: noMeter });
const unavailable = new ApiError('unavailable', 'nobody there', { retryAfter: 1 });

/** One side that is asked: it answers when the test says so. */
class Side {
  readonly calls: ActorCall[] = [];
  bodies: (Uint8Array | null)[] = [];
  cancelled = 0;
  answer: (message: Message) => void = () => assert.fail('not asked');
  fail: (error: ApiError) => void = () => assert.fail('not asked');
  readonly deliver: Deliver = (call, body, answer, fail) => {
    this.calls.push(call);
    this.bodies.push(body);
    this.answer = answer;
    this.fail = fail;
    return { cancel: () => void this.cancelled++ };
  };
  says = (status: number, text: string) => this.answer({ head: headOf(status), body: bytes(text) });
}

function begin() {
  const [owner, copy, clock] = [new Side(), new Side(), new FakeClock()];
  const told: string[] = [];
  const call = callOf('search', 'n');
  // A Buffer, whose slice is no copy.
  const body = Buffer.from('{"consistency":"eventual"}');
  const read = new EventualRead(
    { owner: owner.deliver, here: copy.deliver, clock },
    {
      call,
      body,
      answer: (message) => void told.push(String(Buffer.from(message.body ?? []))),
      fail: (error) => void told.push(error.code),
    },
  );
  read.begin();
  return { owner, copy, clock, told, read, call };
}

test('an owner that answers in time is believed, and no copy is made', async () => {
  const { owner, copy, clock, told } = begin();
  await clock.advance(limits.eventualOwnerWaitMs - 1);
  owner.says(404, 'no such document');
  await clock.advance(10_000);

  assert.deepEqual([told, copy.calls], [['no such document'], []]);
});

test('where the owner is out of reach a copy answers at once, with a body of its own', () => {
  const { owner, copy, told, call } = begin();
  owner.bodies[0]?.fill(0);
  owner.fail(unavailable);
  copy.says(200, 'old');

  assert.deepEqual(told, ['old']);
  assert.deepEqual(copy.calls, [{ ...call, fromCopy: true }]);
  assert.equal(String(Buffer.from(copy.bodies[0] ?? [])), '{"consistency":"eventual"}');
});

test('an owner that says 503 is as one that is not there', () => {
  const { owner, copy, told } = begin();
  owner.says(503, 'on its way');
  copy.says(200, 'old');

  assert.deepEqual(told, ['old']);
});

test('an owner that is silent for a second is raced by a copy, and the loser hears that nobody waits', async () => {
  for (const winner of ['owner', 'copy'] as const) {
    const sides = begin();
    await sides.clock.advance(limits.eventualOwnerWaitMs);
    assert.equal(sides.copy.calls.length, 1);
    sides[winner].says(200, winner);
    const loser = sides[winner === 'owner' ? 'copy' : 'owner'];
    loser.says(200, 'too late');

    assert.deepEqual(sides.told, [winner]);
    assert.deepEqual([loser.cancelled, sides[winner].cancelled], [1, 0]);
  }
});

test('where both fail it ends as the owner did, whoever fails first', async () => {
  const first = begin();
  first.owner.fail(unavailable);
  first.copy.says(503, 'the store is away');
  assert.deepEqual(first.told, ['unavailable']);

  const second = begin();
  await second.clock.advance(limits.eventualOwnerWaitMs);
  second.copy.fail(unavailable);
  assert.deepEqual(second.told, []);
  second.owner.says(503, 'on its way');
  assert.deepEqual(second.told, ['on its way']);
});

test('a refusal of the owner that is no 503 is the answer', () => {
  const { owner, copy, told } = begin();
  owner.fail(new ApiError('rate_limited', 'too many', { retryAfter: 1 }));

  assert.deepEqual([told, copy.calls], [['rate_limited'], []]);
});

test('only reads of namespaces may be eventual, by their query or their body', () => {
  const body = bytes('{"q":"x","consistency": "eventual"}');
  const query = 'q=x&consistency=eventual';

  assert.ok(mayBeEventual(callOf('search', 'n'), body));
  assert.ok(mayBeEventual(callOf('getDocument', 'n', { query }), null));
  assert.ok(!mayBeEventual(callOf('search', 'n'), bytes('{"consistency":"strong"}')));
  assert.ok(!mayBeEventual(callOf('putDocuments', 'n'), body));
  assert.ok(!mayBeEventual(callOf('putDocuments', 'n', { query }), body));
  assert.ok(!mayBeEventual(callOf('listNamespaces', '', { query }), null));
});
