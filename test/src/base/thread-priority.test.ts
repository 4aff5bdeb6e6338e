import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

const skip = process.platform === 'linux' ? false : 'only Linux has priorities of threads';

test('a thread that lowers its priority lowers that of no other', { skip }, async () => {
  const module = new URL('../../../src/base/thread-priority.js', import.meta.url).href;
  const source = `
    const { parentPort } = require('node:worker_threads');
    parentPort.on('message', () => process.exit());
    import('${module}').then(({ lowerThreadPriority }) => {
      lowerThreadPriority(7);
      parentPort.postMessage('lowered');
    });`;
  const before = stepsOfThreads();
  const worker = new Worker(source, { eval: true });
  await new Promise((resolve) => worker.once('message', resolve));

  const lowered = stepsOfThreads().filter((steps) => steps === Math.max(...before) + 7);

  assert.equal(lowered.length, 1);
  worker.postMessage('end');
  await new Promise((resolve) => worker.once('exit', resolve));
});

/** As of `nice`, of every thread of this process. */
function stepsOfThreads(): number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const text = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16]);
  });
}
