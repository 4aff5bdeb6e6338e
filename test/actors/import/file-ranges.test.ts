import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { type FileRange, FileRanges } from '../../../actors/import/file-ranges.ts';

test('a range begins where the one before it ends, and none comes behind the last', () => {
  const ranges = new FileRanges();
  const find = ({ start }: { start: number }) => (start >= 25 ? null : { end: start + 10, rowCount: 3 });

  const taken = [ranges.take(5, find), ranges.take(5, find), ranges.take(5, find)];

  assert.deepEqual(taken, [
    { number: 0, firstRow: 0, start: 5, end: 15 },
    { number: 1, firstRow: 3, start: 15, end: 25 },
    null,
  ]);
  assert.equal(ranges.count, 2);
});

test('when it is over nobody takes another range', () => {
  const ranges = new FileRanges();
  new FileRanges(ranges.shared).end();
  assert.equal(
    ranges.take(0, () => ({ end: 1, rowCount: 1 })),
    null,
  );
});

test('who finds no end lets the others go on', () => {
  const ranges = new FileRanges();
  assert.throws(() =>
    ranges.take(0, () => {
      throw new Error('the file could not be read');
    }),
  );
  assert.equal(ranges.take(0, () => ({ end: 1, rowCount: 1 }))?.number, 0);
});

test('several threads take each range once, and count their bytes together', async () => {
  const ranges = new FileRanges();
  const module = new URL('../../../actors/import/file-ranges.js', import.meta.url).href;
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    import(${JSON.stringify(module)}).then(({ FileRanges }) => {
      const ranges = new FileRanges(workerData);
      const taken = [];
      const find = ({ start }) => (start >= 2000 ? null : { end: start + 1, rowCount: 2 });
      for (let range = ranges.take(0, find); range !== null; range = ranges.take(0, find)) {
        taken.push(range);
        ranges.countBytes(7);
      }
      parentPort.postMessage(taken);
    });`;
  const answers = Array.from({ length: 3 }, () => {
    const worker = new Worker(code, { eval: true, workerData: ranges.shared });
    return new Promise<FileRange[]>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  });

  const taken = (await Promise.all(answers)).flat();

  const starts = taken.map(({ start }) => start).toSorted((a, b) => a - b);
  assert.deepEqual(
    starts,
    Array.from({ length: 2_000 }, (_, at) => at),
  );
  for (const { number, firstRow, start } of taken) assert.deepEqual([number, firstRow], [start, start * 2]);
  assert.equal(ranges.countBytes(0), 14_000);
});
