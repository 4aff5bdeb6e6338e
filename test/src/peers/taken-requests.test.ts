import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { TakenRequests, type ToldAsker } from '../../../src/peers/taken-requests.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const name = { origin: 'a', sequence: 1 };

function start() {
  const clock = new FakeClock();
  const told: (readonly [who: string, what: string])[] = [];
  const asker = (who: string) => (what: ToldAsker) =>
    void told.push([who, what.kind === 'answer' ? String(what.head) : what.kind]);
  return { clock, taken: new TakenRequests(clock), told, asker };
}

test('a request is begun once, and its answer goes to who asked last', () => {
  const { taken, told, asker } = start();

  assert.equal(taken.take(name, asker('first')), true);
  assert.equal(taken.take(name, asker('second')), false);
  assert.ok(taken.end(name, 'done', null, false));

  assert.deepEqual(told, [
    ['first', 'elsewhere'],
    ['second', 'done'],
  ]);
  assert.ok(!taken.end(name, 'done', null, false), 'it has ended');
});

test('an answer that is kept is given again, and another one is not', () => {
  const { taken, told, asker } = start();
  const other = { origin: 'b', sequence: 1 };
  for (const each of [name, other]) taken.take(each, asker('first'));
  taken.end(name, 'kept', Buffer.from('body'), true);
  taken.end(other, 'not kept', null, false);
  told.length = 0;

  assert.equal(taken.take(name, asker('second')), false);
  assert.equal(taken.take(other, asker('second')), false);

  assert.deepEqual(told, [
    ['second', 'kept'],
    ['second', 'copy'],
  ]);
});

test('who takes nothing new answers what has come, and begins nothing', () => {
  const { taken, told, asker } = start();
  taken.take(name, asker('first'));
  taken.end(name, 'done', null, true);

  assert.ok(taken.giveKnown(name, asker('second')));
  assert.ok(!taken.giveKnown({ origin: 'a', sequence: 2 }, asker('third')));

  assert.deepEqual(told.at(-1), ['second', 'done']);
  assert.ok(taken.take({ origin: 'a', sequence: 2 }, asker('third')), 'it was not begun');
});

test('a read that was cancelled with its line is not the answer of a copy, and a write is', () => {
  const { taken, told, asker } = start();
  for (const isKept of [false, true]) {
    const each = { origin: 'a', sequence: isKept ? 2 : 1 };
    taken.take(each, asker('first'));
    taken.cancelled(each);
    taken.take(each, asker('second'));
    taken.end(each, 'done', null, isKept);
  }

  assert.deepEqual(
    told.filter(([who]) => who === 'second').map(([, what]) => what),
    ['copy', 'done'],
  );
});

test('answers are kept for a while, and no more of them than there is room for', async () => {
  const { clock, taken, told, asker } = start();
  const keep = (sequence: number) => {
    taken.take({ origin: 'a', sequence }, asker('first'));
    taken.end({ origin: 'a', sequence }, 'done', new Uint8Array(limits.peerAnswerKeptBytesMax), true);
  };
  const isKept = (sequence: number) => {
    taken.take({ origin: 'a', sequence }, asker('again'));
    return told.at(-1)?.[1] === 'done';
  };
  const places = Math.floor(
    limits.peerAnswersKeptBytesMax / (limits.peerAnswerKeptBytesMax + limits.peerAnswerHeadBytes),
  );

  for (let sequence = 1; sequence <= places + 1; sequence++) keep(sequence);

  assert.ok(taken.keptBytes <= limits.peerAnswersKeptBytesMax);
  assert.deepEqual([isKept(1), isKept(2), isKept(places + 1)], [false, true, true]);
  await clock.advance(2 * limits.peerAnswersKeptMs);
  assert.equal(taken.keptBytes, 0);
  assert.equal(clock.timers, 0);
  assert.equal(isKept(2), false);
});

test('an answer that is too long is not kept', () => {
  const { taken, told, asker } = start();
  taken.take(name, asker('first'));
  taken.end(name, 'done', new Uint8Array(limits.peerAnswerKeptBytesMax + 1), true);

  taken.take(name, asker('second'));

  assert.deepEqual(told.at(-1), ['second', 'copy']);
  assert.equal(taken.keptBytes, 0);
});
