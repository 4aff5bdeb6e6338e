import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RequestNames } from '../../../src/peers/request-names.ts';

test('a name is new once: as a set says that forgets nothing within its window', () => {
  const sequences = fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 200 });
  fc.assert(
    fc.property(
      fc.constantFrom(8, 64, 100),
      fc.array(fc.tuple(fc.constantFrom('a', 'b'), sequences)),
      (size, asked) => {
        const names = new RequestNames(size);
        const seen = new Map<string, Set<number>>();
        for (const [origin, all] of asked) {
          const come = seen.get(origin) ?? new Set<number>();
          seen.set(origin, come);
          for (const sequence of all) {
            const highest = Math.max(0, ...come);
            const isNew = !come.has(sequence) && sequence > highest - size;

            assert.equal(names.admit({ origin, sequence }), isNew, `${origin} ${sequence} after ${highest}`);
            if (isNew) come.add(sequence);
          }
        }
      },
    ),
  );
});

test('what is far behind counts as a copy, and a great leap forward as new', () => {
  const names = new RequestNames();

  assert.ok(names.admit({ origin: 'a', sequence: 1 }));
  assert.ok(names.admit({ origin: 'a', sequence: 2 ** 52 }));
  assert.ok(!names.admit({ origin: 'a', sequence: 2 }));
  assert.ok(names.admit({ origin: 'a', sequence: 2 ** 52 - 1 }));
  assert.ok(names.admit({ origin: 'b', sequence: 2 }));
});
