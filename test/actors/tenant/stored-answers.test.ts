import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeAnswer, storedAnswer } from '../../../actors/tenant/stored-answers.ts';
import { limits } from '../../../protocol/limits.ts';
import type { StoredAnswer } from '../../../protocol/stored-tenant.ts';

const answer = (keyDigest: string, at: number): StoredAnswer => ({
  keyDigest,
  requestDigest: '',
  plannedId: 0,
  at,
  status: 201,
  envelope: null,
});
const day = limits.idempotentAnswerKeptMs;

test('an answer is known for a day, and goes when a later one comes', () => {
  const answers = new Map<string, StoredAnswer>();
  storeAnswer(answers, answer('a', 1_000));

  assert.equal(storedAnswer(answers, 'a', 1_000 + day - 1)?.keyDigest, 'a');
  assert.equal(storedAnswer(answers, 'a', 1_000 + day), null);
  assert.equal(storedAnswer(answers, 'b', 1_000), null);
  storeAnswer(answers, answer('b', 1_000 + day - 1));
  assert.deepEqual([...answers.keys()], ['a', 'b']);
  storeAnswer(answers, answer('c', 1_000 + day));
  assert.deepEqual([...answers.keys()], ['b', 'c']);
});

test('where answers are too many the oldest go; one that is stored again is the newest', () => {
  const answers = new Map<string, StoredAnswer>();
  for (let i = 0; i < limits.idempotentAnswersMax; i++) storeAnswer(answers, answer(String(i), i));
  storeAnswer(answers, answer('0', 5_000));
  assert.equal(answers.size, limits.idempotentAnswersMax);

  storeAnswer(answers, answer('new', 5_001));
  storeAnswer(answers, answer('newer', 5_002));

  assert.equal(answers.size, limits.idempotentAnswersMax);
  assert.deepEqual([...answers.keys()].slice(0, 1), ['3']);
  assert.deepEqual([...answers.keys()].slice(-3), ['0', 'new', 'newer']);
});

test('where answers are too long together the oldest go, and the newest stays', () => {
  const answers = new Map<string, StoredAnswer>();
  const long = limits.idempotentAnswersBytesMax / 4;
  const of = (keyDigest: string, at: number): StoredAnswer => ({
    ...answer(keyDigest, at),
    envelope: { version: 1, wrappedKey: new Uint8Array(60), sealed: new Uint8Array(long) },
  });
  for (let i = 0; i < 4; i++) storeAnswer(answers, of(String(i), i));
  assert.equal(answers.size, 4);

  storeAnswer(answers, of('new', 5));

  assert.deepEqual([...answers.keys()], ['1', '2', '3', 'new']);
});
