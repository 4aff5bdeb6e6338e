import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  decodeManifest,
  encodeManifest,
  isApplied,
  liveDocumentsOf,
  type Manifest,
} from '../../../actors/storage/manifest.ts';
import { checkManifest } from '../../../actors/storage/manifest-invariants.ts';
import { objectsOfManifest } from '../../../actors/storage/shared-objects.ts';
import { noTombstones, withDeleted } from '../../../actors/storage/tombstones.ts';
import { AssertionError, DataError } from '../../../src/base/assert.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { goldenBytes } from '../../support/golden.ts';
import { repositoryRoot } from '../../support/repository.ts';
import { entryOf } from '../../support/segments.ts';

const toc = (minSequence: number, maxSequence: number) => ({
  formatVersion: 1,
  rowCount: maxSequence - minSequence + 1,
  minSequence,
  maxSequence,
  docsRawBytes: 1_000,
  sections: [{ name: 'docs', offset: 0, length: 500, entryCount: 1, pageBytes: 0, root: null }],
});

const entry = entryOf({ id: 'a', text: Buffer.from('tide'), meta: Buffer.from('{"n":1}'), vector: null });

const manifest: Manifest = {
  version: 4,
  nonce: 'ab'.repeat(16),
  state: 'live',
  tenantId: 2 ** 47,
  name: 'notes',
  namespaceId: 'cd'.repeat(16),
  createdAt: '2024-01-01T00:00:00.000Z',
  temporalKeys: ['day'],
  owner: { logId: 'log-b', view: 3 },
  applied: new Map([
    ['log-a', { slot: 2 ** 40, index: 7 }],
    ['log-b', { slot: 3, index: 0 }],
  ]),
  segments: [
    {
      id: 'e1',
      size: 900,
      toc: toc(1, 10),
      tombstones: withDeleted(noTombstones, [3, 4]),
      tombstonesObject: null,
      graphs: null,
      deletedAtMs: 1_700_000_000_000,
    },
    {
      id: 'e2',
      size: 901,
      toc: toc(11, 12),
      tombstones: noTombstones,
      tombstonesObject: null,
      graphs: null,
      deletedAtMs: null,
    },
    {
      id: 'e3',
      size: 902,
      toc: toc(13, 19),
      tombstones: { count: 5, chunks: new Map() },
      tombstonesObject: { id: 'd3', size: 9_000 },
      deletedAtMs: 1_700_000_000_001,
      graphs: [
        {
          id: 'g3-0',
          size: 70_000,
          checksum: '00ff00ff00ff00ff',
          firstRow: 0,
          endRow: 7,
          count: 6,
          leftOut: 1,
          precision: 'f16',
          scale: 1,
          expansion: 64,
        },
      ],
    },
  ],
  tail: { sequences: [20], writtenAt: [1.7e15], entries: entry },
  retired: [
    { kind: 'segment', id: 'e0', atMs: 1.7e12 },
    { kind: 'deletes', id: 'd0', atMs: 1.7e12 },
  ],
  counters: { version: 9, lastSequence: 20, lastWrittenAt: 1.7e15, docsWritten: 21, bytesWritten: 2 ** 41 },
};
const place = paths.namespaceManifest(manifest.namespaceId);

const plain = (value: Manifest) => ({
  ...value,
  applied: [...value.applied],
  tail: value.tail === null ? null : { ...value.tail, entries: [...value.tail.entries] },
  segments: value.segments.map((s) => ({ ...s, tombstones: [s.tombstones.count, s.tombstones.chunks.size] })),
});

test('a manifest comes back as it went in', () => {
  assert.deepEqual(plain(decodeManifest(encodeManifest(manifest), place)), plain(manifest));
});

test('a change of any byte of a manifest is found', () => {
  const bytes = encodeManifest({ ...manifest, segments: [] });

  for (let at = 0; at < bytes.length; at++) {
    const spoilt = Buffer.from(bytes);
    spoilt[at] = (spoilt[at] ?? 0) ^ 16;
    assert.throws(() => decodeManifest(spoilt, place), DataError, `byte ${at}`);
  }
});

test('the bytes of a manifest are those of the golden file', () => {
  const bytes = encodeManifest(manifest);

  const golden = goldenBytes('manifest-v8.bin', bytes);

  assert.deepEqual(Buffer.from(bytes), golden);
  assert.deepEqual(plain(decodeManifest(golden, place)), plain(manifest));
});

const shared: Manifest = {
  ...manifest,
  segments: manifest.segments.map((segment, at) => {
    const { tombstonesObject: set } = segment;
    if (at === 0) return segment;
    return {
      ...segment,
      home: 'aa',
      graphsHome: 'bb',
      tombstonesObject: set === null ? null : { ...set, home: 'cc' },
    };
  }),
  retired: [...manifest.retired, { kind: 'graph', id: 'g0-0', atMs: 1.7e12, size: 70, home: 'aa' }],
  parent: { name: 'parent', namespaceId: 'cc' },
  pins: [
    {
      name: 'branch',
      namespaceId: 'dd',
      atMs: 1.7e12,
      objects: [
        { kind: 'segment', id: 'e1', size: 900 },
        { kind: 'deletes', id: 'd3', size: 9_000, home: 'cc' },
      ],
    },
    { name: 'link', namespaceId: 'ee', atMs: 1.8e12, objects: [{ kind: 'segment', id: 'e1', size: 900 }] },
  ],
};

test('what is shared comes back as it went in, and is in no golden file of before', () => {
  const bytes = encodeManifest(shared);

  const golden = goldenBytes('manifest-v8-shared.bin', bytes);

  assert.deepEqual(Buffer.from(bytes), golden);
  assert.deepEqual(plain(decodeManifest(golden, place)), plain(shared));
});

test('only objects in its own folder are a namespace’s own', () => {
  const own = objectsOfManifest(shared);

  assert.deepEqual(
    own.filter((key) => !key.startsWith(paths.namespaceFolder(shared.namespaceId))),
    [],
  );
  assert.equal(own.length, objectsOfManifest(manifest).length - 4);
});

test('a manifest of format 7 is read: nothing of it is shared', () => {
  const old = readFileSync(join(repositoryRoot(), 'test/golden/manifest-v7.bin'));

  assert.deepEqual(plain(decodeManifest(old, place)), plain(manifest));
});

test('a manifest of format 6 is read, and says that its deletions may be long ago', () => {
  const old = readFileSync(join(repositoryRoot(), 'test/golden/manifest-v6.bin'));

  const read = decodeManifest(old, place);

  const segments = manifest.segments.map((segment) => ({
    ...segment,
    deletedAtMs: segment.tombstones.count > 0 ? 0 : null,
  }));
  assert.deepEqual(plain(read), plain({ ...manifest, segments }));
});

test('all objects of a namespace are those that its manifest names', () => {
  const { namespaceId } = manifest;
  assert.deepEqual(objectsOfManifest(manifest).sort(), [
    ...['d0', 'd3'].map((id) => paths.namespaceTombstones(namespaceId, id)),
    paths.namespaceGraph(namespaceId, 'g3-0'),
    place,
    ...['e0', 'e1', 'e2', 'e3'].map((id) => paths.namespaceSegment(namespaceId, id)),
  ]);
});

test('live documents are those of segments without tombstones, and of the tail', () => {
  assert.equal(liveDocumentsOf(manifest), 8 + 2 + 2 + 1);
});

test('a record is applied up to the watermark of its log', () => {
  const at = (logId: string, slot: number, index: number) => isApplied(manifest, { logId, slot, index });

  assert.deepEqual(
    [at('log-a', 5, 99), at('log-a', 2 ** 40, 7), at('log-a', 2 ** 40, 8)],
    [true, true, false],
  );
  assert.deepEqual(
    [at('log-b', 3, 0), at('log-b', 3, 1), at('log-b', 4, 0), at('log-c', 1, 0)],
    [true, false, false, false],
  );
});

const next: Manifest = {
  ...manifest,
  version: 5,
  nonce: 'ef'.repeat(16),
  segments: manifest.segments.filter((segment) => segment.tombstonesObject === null),
};

test('a proper successor passes, and so does a first manifest', () => {
  checkManifest(next, manifest);
  checkManifest({ ...next, version: 1 }, null);
});

const broken: readonly (readonly [string, Partial<Manifest>])[] = [
  ['a version that does not rise by one', { version: 6 }],
  ['the same version', { version: 4 }],
  ['the same nonce', { nonce: manifest.nonce }],
  ['another namespace', { namespaceId: 'ff'.repeat(16) }],
  ['another tenant', { tenantId: 5 }],
  ['an older view', { owner: { logId: 'log-a', view: 2 } }],
  ['a counter that falls', { counters: { ...manifest.counters, docsWritten: 1 } }],
  ['a version of the namespace that falls', { counters: { ...manifest.counters, version: 8 } }],
  ['a sequence that falls', { counters: { ...manifest.counters, lastSequence: 19 } }],
  ['a watermark that falls', { applied: new Map([['log-b', { slot: 2, index: 9 }]]) }],
  ['segments out of order', { segments: [...manifest.segments].reverse() }],
  ['a tail older than a segment', { tail: { sequences: [12], writtenAt: [1], entries: entry } }],
  [
    'more tombstones than rows',
    {
      segments: [
        {
          id: 'e1',
          size: 1,
          toc: toc(1, 1),
          tombstones: withDeleted(noTombstones, [0, 1]),
          tombstonesObject: null,
          deletedAtMs: null,
          graphs: null,
        },
      ],
    },
  ],
  ['tombstones that are only counted', { segments: manifest.segments }],
];

for (const [what, change] of broken) {
  test(`a commit with ${what} is stopped`, () => {
    assert.throws(() => checkManifest({ ...next, ...change }, manifest), AssertionError);
  });
}

test('a deleted namespace stays deleted', () => {
  assert.throws(() => checkManifest(next, { ...manifest, state: 'deleted' }), AssertionError);
});
