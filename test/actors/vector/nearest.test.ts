import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fuseRanks } from '../../../actors/search/fuse-ranks.ts';
import { isBetter, Nearest, type Ranked } from '../../../actors/vector/nearest.ts';

const offers = fc
  .array(fc.nat(20), { maxLength: 100 })
  .map((distances) => distances.map((distance, sequence): Ranked => ({ distance, sequence })));

test('the best are kept, nearest first and of equal ones the newest', () => {
  fc.assert(
    fc.property(offers, fc.integer({ min: 1, max: 30 }), (items, count) => {
      const nearest = new Nearest<Ranked>(count);
      for (const item of items) if (nearest.wants(item)) nearest.add(item);

      const expected = items.toSorted((a, b) => a.distance - b.distance || b.sequence - a.sequence);
      assert.deepEqual(nearest.sorted(), expected.slice(0, count));
    }),
  );
});

test('what goes is the worst', () => {
  fc.assert(
    fc.property(offers, (items) => {
      const nearest = new Nearest<Ranked>(10);
      for (const item of items) {
        const before = nearest.sorted();
        if (!nearest.wants(item)) continue;
        assert.deepEqual(nearest.add(item), before.length < 10 ? null : before.at(-1));
      }
      const kept = nearest.sorted();
      const dropped = nearest.dropWorst();
      assert.deepEqual(dropped, kept.length < 2 ? null : kept.at(-1));
      assert.deepEqual(nearest.sorted(), kept.length < 2 ? kept : kept.slice(0, -1));
    }),
  );
  assert.ok(isBetter({ distance: 1, sequence: 2 }, { distance: 1, sequence: 1 }));
});

test('fused ranks: whoever is high in both lists is first', () => {
  const item = (sequence: number) => ({ sequence });
  const fused = fuseRanks([[9, 8, 7, 6].map(item), [7, 3, 9].map(item)]);

  assert.deepEqual(
    fused.map(({ item: { sequence } }) => sequence),
    [9, 7, 8, 3, 6],
  );
  assert.equal(fused[0]?.score, 1 / 61 + 1 / 63);
});
