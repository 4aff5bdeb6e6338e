import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Share } from '../../../src/base/share.ts';
import { chargeTurn, hasBurst, yieldTurn } from '../../../src/base/turns.ts';

const shareOf = (owner: number): Share => ({ owner, tenant: owner, weight: 1 });
/** Milliseconds of work: one such stretch ends the turn of owners who use much, and ten are under what light ones may share. */
const workMs = 0.5;
const each = 8;

test('those who use little go on in one turn, and those who use much one in each', async () => {
  const busy = Array.from({ length: each }, (_, i) => shareOf(5_001 + i));
  const light = Array.from({ length: each }, (_, i) => shareOf(6_001 + i));
  // The busy ones go on in turn until each has used as much as the others.
  for (let round = 0; round < 20; round++) {
    const gone = busy.map(async (share) => {
      await yieldTurn(share);
      chargeTurn(share, 30);
    });
    await Promise.all(gone);
  }
  assert.deepEqual(light.map(hasBurst), Array(each).fill(true));

  const turnsOfBusy = await turnsUntilAllWent(busy);
  const turnsOfLight = await turnsUntilAllWent(light);

  assert.ok(turnsOfBusy >= each - 1, `the busy ones took ${turnsOfBusy} turns`);
  // A core that goes to another process meanwhile costs a turn more.
  assert.ok(turnsOfLight <= each / 2, `the light ones took ${turnsOfLight} turns`);
});

async function turnsUntilAllWent(shares: readonly Share[]): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    if (isOver) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    shares.map(async (share) => {
      await yieldTurn(share);
      const beganAt = performance.now();
      while (performance.now() - beganAt < workMs);
      chargeTurn(share, workMs);
    }),
  );
  isOver = true;
  return turns;
}
