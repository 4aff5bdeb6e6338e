import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BytePipe, PipeClosed } from '../../../src/base/byte-pipe.ts';

const chunk = (value: number, size = 10) => new Uint8Array(size).fill(value);
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a byte pipe', () => {
  it('gives the chunks in order and ends', async () => {
    const pipe = new BytePipe(1000);
    const writing = (async () => {
      for (let i = 0; i < 500; i++) {
        await pipe.write(chunk(i % 256));
        if (i % 7 === 0) await turn();
      }
      pipe.end();
    })();
    let next = 0;
    for await (const { 0: first, length } of pipe) {
      assert.deepEqual([first, length], [next++ % 256, 10]);
      if (next % 11 === 0) await turn();
    }
    await writing;
    assert.equal(next, 500);
  });

  it('holds the writer up while too much waits', async () => {
    const pipe = new BytePipe(25);
    assert.equal(pipe.write(chunk(1)), undefined);
    assert.equal(pipe.write(chunk(2)), undefined);
    let hasRoom = false;
    const held = Promise.resolve(pipe.write(chunk(3))).then(() => {
      hasRoom = true;
    });
    await turn();
    assert.equal(hasRoom, false);
    const reader = pipe[Symbol.asyncIterator]();
    await reader.next();
    await held;
    assert.equal(hasRoom, true);
  });

  it('takes a chunk larger than its bound', async () => {
    const pipe = new BytePipe(5);
    const held = pipe.write(chunk(1, 100));
    pipe.end();
    const seen: number[] = [];
    for await (const { length } of pipe) seen.push(length);
    await held;
    assert.deepEqual(seen, [100]);
  });

  it('gives the writer’s failure to the reader', async () => {
    const pipe = new BytePipe(100);
    await pipe.write(chunk(1));
    const failure = new Error('no more');
    pipe.end(failure);
    await assert.rejects(
      async () => {
        for await (const _ of pipe);
      },
      (error) => error === failure,
    );
  });

  it('tells a writer that nobody reads any more, also one that is held up', async () => {
    const pipe = new BytePipe(5);
    const first = pipe.write(chunk(1));
    const reader = pipe[Symbol.asyncIterator]();
    await reader.next();
    await first;
    const held = assert.rejects(Promise.resolve(pipe.write(chunk(1))), PipeClosed);
    await reader.return();
    await held;
    assert.throws(() => pipe.write(chunk(2)), PipeClosed);

    const unread = new BytePipe(5);
    const waiting = assert.rejects(Promise.resolve(unread.write(chunk(1))), PipeClosed);
    unread.close();
    await waiting;
  });
});
