import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countOpenFiles, openedSince } from '../../../load-tests/load/open-files.ts';
import { compareObjects } from '../../../load-tests/load/stored-objects.ts';
import { paths } from '../../../src/object-store/paths.ts';

describe('what a soak is judged by', () => {
  const before = ['socket:[1]', 'pipe:[2]', 'anon_inode:[eventpoll]', '/data/cache/a'];

  it('open files are counted by kind', () => {
    const counts = countOpenFiles([...before, '/data/cache/b (deleted)']);

    assert.deepEqual(counts, { sockets: 1, pipes: 1, kernel: 1, files: 1, deleted: 1 });
  });

  it('a socket more is told, and another file of the cache is not', () => {
    const first = countOpenFiles(before);

    assert.deepEqual(openedSince(first, countOpenFiles([...before, '/data/cache/b'])), []);
    assert.deepEqual(openedSince(first, countOpenFiles([...before, 'socket:[9]'])), ['2 sockets, 1 before']);
    assert.deepEqual(openedSince(first, countOpenFiles([...before, '/data/x (deleted)'])), [
      '1 deleted, 0 before',
    ]);
  });

  it('an object that no manifest names is an orphan, and a named one that is not there is missing', () => {
    const namespaceId = 'n1';
    const segment = (id: string) => paths.namespaceSegment(namespaceId, id);
    const manifest = {
      namespaceId,
      segments: [
        { id: 's1', tombstonesObject: null },
        { id: 's2', tombstonesObject: null },
      ],
      retired: [{ kind: 'segment', id: 's0', atMs: 1 }],
    } as unknown as Parameters<typeof compareObjects>[1][number];
    const keys = [paths.namespaceManifest(namespaceId), segment('s0'), segment('s1'), segment('lost')];

    assert.deepEqual(compareObjects(keys, [manifest]), {
      namespaces: 1,
      objects: 4,
      orphans: [segment('lost')],
      missing: [segment('s2')],
      retired: 1,
    });
  });

  it('objects of a namespace without a manifest are orphans', () => {
    const key = paths.namespaceSegment('gone', 's1');

    assert.deepEqual(compareObjects([key], []).orphans, [key]);
  });
});
