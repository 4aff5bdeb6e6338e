import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstSlot } from '../../../actors/log/first-slot.ts';
import { seededRandom } from '../../support/segments.ts';

test('the first slot that is not behind is found wherever it lies, as by asking one after the other', async () => {
  for (const atOnce of [1, 2, 8])
    for (const from of [1, 7])
      for (const length of [...Array.from({ length: 100 }, (_, at) => at), 1_199, 16_384, 99_999]) {
        assert.equal(await firstSlot(from, atOnce, async (slot) => slot < from + length), from + length);
      }
});

test('the end of a long log is found in few rounds, and an end that has not moved by one question', async () => {
  for (const [length, roundsMax, questionsMax] of [
    [0, 1, 1],
    [1, 2, 9],
    [1_199, 6, 41],
  ] as const) {
    let [rounds, questions, asking] = [0, 0, 0];
    await firstSlot(1, 8, async (slot) => {
      questions++;
      if (asking++ === 0) rounds++;
      await new Promise((resolve) => setImmediate(resolve));
      asking--;
      return slot <= length;
    });
    assert.ok(rounds <= roundsMax && questions <= questionsMax, `${length}: ${rounds}, ${questions}`);
  }
});

test('where the end moves while it is asked for, what is found is an end that was', async () => {
  const random = seededRandom(5);
  for (let round = 0; round < 500; round++) {
    let length = Math.floor(random() * 300);
    const before = length;
    const found = await firstSlot(1, 8, async (slot) => {
      const isBehind = slot <= length;
      if (random() < 0.3) length += Math.floor(random() * 20);
      return isBehind;
    });
    assert.ok(found > before && found <= length + 1, `${before} < ${found} <= ${length + 1}`);
  }
});
