import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstSequenceOfImport } from '../../../actors/namespace/commit-import.ts';
import { assertFollows, NamespaceState } from '../../../actors/namespace/namespace-state.ts';
import { limits } from '../../../protocol/limits.ts';
import { AssertionError } from '../../../src/base/assert.ts';

const identity = { tenantId: 1, name: 'n', namespaceId: 'ab'.repeat(16), createdAt: '' };
const before = { version: 4, lastSequence: 100, lastWrittenAt: 5_000 };
const stamp = { version: 5, baseSequence: 101, writtenAt: 5_001 };

test('a write that does not follow the one before it is not submitted', () => {
  assertFollows(before, stamp, 103);
  // An import leaves a gap.
  assertFollows(before, { ...stamp, baseSequence: 2 ** 33 }, 2 ** 33 + 10);

  for (const wrong of [
    { ...stamp, version: 4 },
    { ...stamp, version: 6 },
    { ...stamp, baseSequence: 99 },
    { ...stamp, baseSequence: 104 },
    { ...stamp, writtenAt: 5_000 },
  ])
    assert.throws(() => assertFollows(before, wrong, 103), AssertionError, JSON.stringify(wrong));
  assert.throws(() => assertFollows(before, stamp, 2 ** 53), /is not exact/);
});

test('a write is applied once, and after the one before it', () => {
  const state = new NamespaceState(identity, null);
  const written = (lastSequence: number) => ({ lastSequence, docs: 1, bytes: 10 });
  state.countWrite({ version: 1, writtenAt: 1 }, written(2));

  assert.throws(
    () => state.countWrite({ version: 1, writtenAt: 2 }, written(4)),
    /version 1 is applied after 1/,
  );
  assert.throws(
    () => state.countWrite({ version: 3, writtenAt: 2 }, written(4)),
    /version 3 is applied after 1/,
  );
  assert.throws(
    () => state.countWrite({ version: 2, writtenAt: 2 }, written(2)),
    /sequence 2 is applied after 2/,
  );
  assert.deepEqual([state.counters.version, state.counters.docsWritten], [1, 1]);
});

test('a record is applied once, in the order of its log', () => {
  const state = new NamespaceState(identity, null);
  state.noteApplied({ logId: 'a', slot: 3, index: 1 }, 10);
  state.noteApplied({ logId: 'b', slot: 1, index: 0 }, 10);
  state.noteApplied({ logId: 'a', slot: 3, index: 2 }, 10);

  for (const [slot, index] of [
    [3, 2],
    [3, 1],
    [2, 9],
  ] as const)
    assert.throws(() => state.noteApplied({ logId: 'a', slot, index }, 10), /is applied again/);
  assert.equal(state.appliedBytes, 30);
});

test('a namespace takes imports while sequences stay exact numbers, and then says what to do', () => {
  let imports = 0;
  let last = 0;
  const many = 1_000_000;
  assert.throws(
    () => {
      for (; imports < many; imports++) last = firstSequenceOfImport(last) + limits.importRowsMax - 1;
    },
    { code: 'invalid', message: /import the file into a new namespace/ },
  );
  assert.ok(imports > 500_000, `${imports} imports`);
  assert.ok(Number.isSafeInteger(last + 2 ** 51));
});
