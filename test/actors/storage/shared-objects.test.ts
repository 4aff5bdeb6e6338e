import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planRetirement } from '../../../actors/namespace/collect-garbage.ts';
import { childOf } from '../../../actors/namespace/share-namespace.ts';
import type { Manifest } from '../../../actors/storage/manifest.ts';
import { checkManifest } from '../../../actors/storage/manifest-invariants.ts';
import { buried, heldBytes, needsParent, objectsOfSegment } from '../../../actors/storage/shared-objects.ts';
import { noTombstones } from '../../../actors/storage/tombstones.ts';

const toc = (first: number) => ({ rowCount: 1, minSequence: first, maxSequence: first }) as never;
const segment = (id: string, first: number) => ({
  id,
  size: 100,
  toc: toc(first),
  tombstones: noTombstones,
  tombstonesObject: null,
  graphs: null,
  deletedAtMs: null,
});

const parent: Manifest = {
  tenantId: 7,
  name: 'p',
  namespaceId: 'parent',
  createdAt: '2026-01-01T00:00:00.000Z',
  version: 4,
  nonce: 'n4',
  state: 'live',
  owner: { logId: 'log', view: 1 },
  applied: new Map(),
  segments: [segment('a', 1), segment('b', 2)],
  tail: null,
  retired: [],
  counters: { version: 2, lastSequence: 2, lastWrittenAt: 5, docsWritten: 2, bytesWritten: 9 },
  temporalKeys: [],
};
const identity = { tenantId: 7, name: 'c', namespaceId: 'child', createdAt: parent.createdAt };
const pin = (namespaceId: string, of: Manifest) => ({
  name: namespaceId,
  namespaceId,
  atMs: 1,
  objects: of.segments.flatMap(objectsOfSegment),
});
const held: Manifest = { ...parent, pins: [pin('child', parent)] };
const child = childOf(held, identity, 'n');
/** The parent after `a` was merged away. */
const merged: Manifest = {
  ...held,
  version: 5,
  nonce: 'n5',
  segments: [segment('b', 2)],
  retired: [
    { kind: 'segment', id: 'a', size: 100, atMs: 10 },
    { kind: 'segment', id: 'z', size: 7, atMs: 10 },
  ],
};

test('a child names the objects where they lie, also those that its parent got from its own parent', () => {
  assert.deepEqual(
    child.segments.map(({ home }) => home),
    ['parent', 'parent'],
  );
  const grandchild = childOf(child, { ...identity, namespaceId: 'grandchild' }, 'm');
  assert.deepEqual(
    grandchild.segments.map(({ home }) => home),
    ['parent', 'parent'],
  );
  assert.deepEqual(grandchild.parent, { name: 'c', namespaceId: 'child' });
  assert.deepEqual([needsParent(parent), needsParent(child)], [false, true]);
});

test('what is held is not collected and counts as stored; the rest goes after its grace', () => {
  assert.deepEqual(
    planRetirement(merged, 10).due.map(({ id }) => id),
    ['z'],
  );
  assert.deepEqual(planRetirement(merged, 9).due, []);
  assert.deepEqual([heldBytes(parent), heldBytes(merged)], [0, 100]);
  assert.deepEqual(
    planRetirement({ ...merged, pins: [] }, 10).due.map(({ id }) => id),
    ['a', 'z'],
  );
});

test('what is left of a deleted namespace is what others hold, and nothing where nobody does', () => {
  assert.equal(buried(parent, 20), null);
  const left = buried(merged, 20);
  assert.deepEqual(
    left?.retired.map(({ id, atMs }) => [id, atMs]),
    [
      ['b', 20],
      ['a', 10],
    ],
  );
  const remnant = { ...merged, ...left, version: 6, nonce: 'n6' };
  checkManifest(remnant, merged);
  assert.equal(heldBytes(remnant), 200);
});

test('a manifest that forgets what others hold, or its parent, is not committed', () => {
  const next = { ...merged, version: 6, nonce: 'n6' };
  checkManifest(next, merged);
  assert.throws(() => checkManifest({ ...next, retired: [] }, merged), /others hold/);
  const after = { ...child, version: 2, nonce: 'n2' };
  checkManifest(after, child);
  assert.throws(() => checkManifest({ ...after, parent: null }, child), /parent/);
  checkManifest({ ...after, segments: [], parent: null }, child);
});
