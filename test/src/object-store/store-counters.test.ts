import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../../src/base/clock.ts';
import { CountingObjectStore } from '../../../src/object-store/counting-object-store.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import {
  countFailuresInto,
  countInto,
  countStreamedInto,
  createSharedCounters,
  readCounters,
} from '../../../src/object-store/store-counters.ts';
import { FaultyObjectStore } from '../../support/faulty-object-store.ts';

const none = { gets: 0, puts: 0, deletes: 0, lists: 0, putBytes: 0, failures: 0 };

describe('the counters that all threads share', () => {
  it('hold calls and bytes of every kind of object', async () => {
    const counters = createSharedCounters();
    const store = new CountingObjectStore(
      new MemoryObjectStore(),
      countInto(counters),
      countStreamedInto(counters),
    );
    await store.putIfAbsent(paths.logObject('l', 1), [Buffer.from('12345')]);
    await store.putIfAbsent(paths.logObject('l', 2), [Buffer.from('12')]);
    await store.get(paths.namespaceManifest('n'));
    await store.list('log/l/', { limit: 10 });
    await store.delete(paths.logBlob('l', 'b'));
    await store.putStream(
      paths.namespaceSegment('n', 's'),
      (async function* () {
        yield Buffer.from('1234');
        yield Buffer.from('567');
      })(),
    );
    await store.putIfAbsent('elsewhere/x', [Buffer.from('1')]);

    const counted = readCounters(counters).filter(
      (calls) => JSON.stringify({ ...none, kind: calls.kind }) !== JSON.stringify({ ...none, ...calls }),
    );
    assert.deepEqual(
      new Map(counted.map(({ kind, ...calls }) => [kind, calls])),
      new Map([
        ['log', { ...none, puts: 2, putBytes: 7, lists: 1 }],
        ['log/blob', { ...none, deletes: 1 }],
        ['ns/manifest', { ...none, gets: 1 }],
        ['ns/segment', { ...none, puts: 1, putBytes: 7 }],
        ['other', { ...none, puts: 1, putBytes: 1 }],
      ]),
    );
  });

  it('hold calls that failed, and none that were refused', async () => {
    const counters = createSharedCounters();
    const faulty = new FaultyObjectStore(new MemoryObjectStore(), systemClock);
    const store = new CountingObjectStore(faulty, undefined, undefined, countFailuresInto(counters));
    const key = paths.logObject('l', 1);
    await store.putIfAbsent(key, [Buffer.from('1')]);
    await store.putIfAbsent(key, [Buffer.from('2')]);
    faulty.plan = () => 'drop-before-apply';

    await assert.rejects(store.putIfAbsent(paths.logObject('l', 2), [Buffer.from('3')]));

    const failed = readCounters(counters).filter(({ failures }) => failures > 0);
    assert.deepEqual(failed, [{ ...none, kind: 'log', failures: 1 }]);
  });

  it('lose nothing to threads that count at once', async () => {
    const counters = createSharedCounters();
    const module = new URL('../../../src/object-store/store-counters.js', import.meta.url).href;
    const source = `
      const { workerData } = require('node:worker_threads');
      import('${module}').then(({ countInto }) => {
        const count = countInto(workerData);
        for (let i = 0; i < 10_000; i++) count('put', 'cluster/view', 3);
      });`;
    const ended = [1, 2, 3].map(
      () =>
        new Promise((resolve) =>
          new Worker(source, { eval: true, workerData: counters }).once('exit', resolve),
        ),
    );
    assert.deepEqual(await Promise.all(ended), [0, 0, 0]);

    const view = readCounters(counters).find(({ kind }) => kind === 'cluster/view');
    assert.deepEqual(view, { ...none, kind: 'cluster/view', puts: 30_000, putBytes: 90_000 });
  });
});
