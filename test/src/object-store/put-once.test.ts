import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { type ByteSink, putTriesMax, streamOnce } from '../../../src/object-store/put-once.ts';
import { type Fault, FaultyObjectStore } from '../../support/faulty-object-store.ts';

const clock = { ...systemClock, sleep: () => Promise.resolve() };
const mebibyte = 1024 * 1024;

describe('an object that is made while it is stored', () => {
  function setUp(faults: (Fault | undefined)[] = []) {
    const truth = new MemoryObjectStore();
    const store = new FaultyObjectStore(truth, clock, ({ operation }) =>
      operation === 'stream' ? faults.shift() : undefined,
    );
    let made = 0;
    const make = async (sink: ByteSink) => {
      made++;
      for (let i = 0; i < 20; i++) await sink(new Uint8Array(mebibyte).fill(i));
      return 'made';
    };
    return { truth, store, make, tries: () => made };
  }

  it('is stored once, and the answer is what its maker says', async () => {
    const { truth, store, make, tries } = setUp();
    assert.equal(await streamOnce(store, clock, 'a/b', make), 'made');
    const object = await truth.get('a/b');
    assert.equal(object?.size, 20 * mebibyte);
    assert.deepEqual([object?.bytes[0], object?.bytes.at(-1), tries()], [0, 19, 1]);
  });

  it('is made again after a failure, and nobody minds that an earlier try got through', async () => {
    for (const faults of [
      ['drop-before-apply'],
      ['error-after-apply'],
      ['refuse-after-apply'],
      ['drop-before-apply', 'error-after-apply'],
    ] as const) {
      const { truth, store, make } = setUp([...faults]);
      assert.equal(await streamOnce(store, clock, 'a/b', make), 'made', faults.join());
      assert.equal((await truth.get('a/b'))?.size, 20 * mebibyte);
    }
  });

  it('is given up after a bounded number of tries', async () => {
    const { truth, store, make } = setUp(Array.from({ length: 20 }, () => 'drop-before-apply' as const));
    await assert.rejects(streamOnce(store, clock, 'a/b', make), StoreError);
    assert.equal(store.calls.length, putTriesMax);
    assert.equal(await truth.get('a/b'), null);
  });

  it('is not stored where its maker fails, and that failure is the answer', async () => {
    const { truth, store } = setUp();
    const failure = new Error('damaged');
    const made = streamOnce(store, clock, 'a/b', async (sink) => {
      for (let i = 0; i < 10; i++) await sink(new Uint8Array(mebibyte));
      throw failure;
    });
    await assert.rejects(made, (error) => error === failure);
    assert.equal(await truth.get('a/b'), null);
    assert.deepEqual((await truth.listUploads('a/', { limit: 10 })).uploads, []);
  });

  it('does not run far ahead of a store that is slow', async () => {
    const { store } = setUp();
    let ahead = 0;
    let aheadMax = 0;
    const slow = Object.create(store, {
      putStream: {
        value: async (_key: string, chunks: AsyncIterable<Uint8Array>) => {
          for await (const chunk of chunks) {
            ahead -= chunk.length;
            await new Promise((resolve) => setImmediate(resolve));
          }
          return { kind: 'stored', etag: '"e"', size: 0 };
        },
      },
    }) as FaultyObjectStore;
    await streamOnce(slow, clock, 'a/b', async (sink) => {
      for (let i = 0; i < 50; i++) {
        ahead += mebibyte;
        aheadMax = Math.max(aheadMax, ahead);
        await sink(new Uint8Array(mebibyte));
      }
    });
    assert.ok(aheadMax <= 6 * mebibyte, `${aheadMax} bytes ahead`);
  });
});
