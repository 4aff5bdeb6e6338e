import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CountingObjectStore, keyKind } from '../../../src/object-store/counting-object-store.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';

describe('the counting store', () => {
  it('counts calls and bytes, by kind and in all, until it is reset', async () => {
    const store = new CountingObjectStore(new MemoryObjectStore());
    const manifest = paths.namespaceManifest('n');
    const put = await store.putIfAbsent(manifest, [Buffer.from('12345')]);
    assert.ok(put.kind === 'stored');
    await store.putIfAbsent(manifest, [Buffer.from('123')]);
    await store.putIfMatch(manifest, [Buffer.from('1'), Buffer.from('2')], put.etag);
    await store.putIfAbsent(paths.logObject('l', 7), [Buffer.from('record')]);
    await store.get(paths.logObject('l', 7), { range: { offset: 1, length: 3 } });
    await store.getIfChanged(manifest, put.etag);
    await store.get(paths.view);
    await store.list('log/l/', { limit: 10 });
    await store.delete(paths.logObject('l', 7));

    const none = { gets: 0, puts: 0, deletes: 0, lists: 0, bytesRead: 0, bytesWritten: 0 };
    assert.deepEqual(
      new Map([...store.byKind()].sort()),
      new Map([
        ['cluster/view', { ...none, gets: 1 }],
        ['log', { gets: 1, puts: 1, deletes: 1, lists: 1, bytesRead: 3, bytesWritten: 6 }],
        ['ns/manifest', { ...none, gets: 1, puts: 3, bytesRead: 2, bytesWritten: 10 }],
      ]),
    );
    assert.deepEqual(store.total(), {
      gets: 3,
      puts: 4,
      deletes: 1,
      lists: 1,
      bytesRead: 5,
      bytesWritten: 16,
    });
    store.reset();
    assert.deepEqual([store.total(), store.byKind().size], [none, 0]);
  });

  it('tells of each call before it reaches the store', async () => {
    const seen: unknown[] = [];
    const store = new CountingObjectStore(new MemoryObjectStore(), (...call) => seen.push(call));
    await store.putIfAbsent('a/b', [Buffer.from('12'), Buffer.from('3')]);
    await store.get('a/b');
    await store.list('a/', { limit: 1 });
    await store.delete('a/b');
    assert.deepEqual(seen, [
      ['put', 'a/b', 3],
      ['get', 'a/b', 0],
      ['list', 'a/', 0],
      ['delete', 'a/b', 0],
    ]);
  });

  it('counts a stream as one put with the bytes that were taken, and uploads as a list and a delete', async () => {
    const store = new CountingObjectStore(new MemoryObjectStore());
    async function* chunks() {
      yield Buffer.from('12');
      yield Buffer.from('345');
    }
    await store.putStream('a/b', chunks());
    await store.listUploads('a/', { limit: 1 });
    await store.abortUpload({ key: 'a/b', uploadId: '1', startedAtMs: 0 });
    const counts = { gets: 0, puts: 1, deletes: 1, lists: 1, bytesRead: 0, bytesWritten: 5 };
    assert.deepEqual(store.total(), counts);
  });

  it('knows the kinds of all paths', () => {
    const kinds: readonly (readonly [string, string])[] = [
      [paths.view, 'cluster/view'],
      [paths.lease('abc'), 'cluster/lease'],
      [paths.logObject('abc', 12), 'log'],
      [paths.logFloor('abc'), 'log/floor'],
      [paths.logDone('abc'), 'log/done'],
      [paths.logBlob('abc', 'def'), 'log/blob'],
      ['log/abc/', 'log'],
      [paths.namespaceFolder('abc'), 'ns'],
      [paths.namespaceManifest('abc'), 'ns/manifest'],
      [paths.namespaceSegment('abc', 'def'), 'ns/segment'],
      [paths.tenantManifest(1), 'tenant/manifest'],
      [paths.tenantSegment(1, 'def'), 'tenant/segment'],
      [paths.person(1), 'account/person'],
      [paths.emailClaim('abc'), 'account/email'],
      [paths.keyClaim('abc'), 'account/key'],
      [paths.probe('abc'), 'probe'],
    ];
    for (const [key, kind] of kinds) assert.equal(keyKind(key), kind, key);
  });
});
