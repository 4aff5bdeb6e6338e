/**
 * A process that counts up one object of a folder store by compare-and-set and writes a line for each success:
 * `node fs-store-child.js <folder> <key> <increments>`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { counterBody, readCounter } from './counter-object.ts';

const [folder = '', key = '', increments = '0'] = process.argv.slice(2);
const store = await FsObjectStore.open(folder, systemClock, systemRandom);
for (let done = 0; done < Number(increments); ) {
  const { value, etag } = await readCounter(store, key);
  const result = await store.putIfMatch(key, [counterBody(value + 1)], etag);
  if (result.kind === 'stored') {
    done++;
    process.stdout.write(`${value + 1}\n`);
  } else {
    // Two processes that retry at once would meet again and again.
    await pause(Math.random() * 3);
  }
}
await store.close();
