import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameMemory } from '../../../../actors/sql/frame/frame-memory.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { Chance } from '../../../simulation/chance.ts';

test('arrays of one frame never share a byte, and those of a later frame use the memory of an earlier one again', () => {
  const chance = new Chance(17, 0);
  const memory = new FrameMemory(new Room(1_000_000));
  const buffers = new Set<ArrayBufferLike>();
  for (let frame = 0; frame < 300; frame++) {
    memory.begin();
    const made = Array.from({ length: 12 }, (_, at) => {
      const kind = chance.pick(['bytes', 'shorts', 'words', 'codes', 'doubles', 'bigs'] as const);
      const count = chance.pick([0, 1, 7, 2_048, 2_047]);
      const array = memory[kind](count);
      assert.equal(array.length, count);
      array.fill((array instanceof BigInt64Array ? BigInt(at) : at) as never);
      return array;
    });
    for (const [at, array] of made.entries())
      assert.ok(
        [...array].every((value) => Number(value) === at),
        `frame ${frame}, array ${at}`,
      );
    if (frame > 100) for (const { buffer } of made) buffers.add(buffer);
  }
  assert.ok(buffers.size < 300, `${buffers.size} buffers for 2,400 arrays`);
});
