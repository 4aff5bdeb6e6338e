/**
 * Loaded into the server by `node --import`: ends one of its threads by an uncaught error, as a bug or a crash of
 * native code would, when a file asks for it. The file holds the thread's number: 1 is the log's, 2 the first actor's.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isMainThread, threadId } from 'node:worker_threads';

const lookEveryMs = 10;
const file = process.env.TIDEBASE_TEST_CRASH_FILE;

if (!isMainThread && file !== undefined) {
  let crashed = '';
  const timer = setInterval(() => {
    if (!existsSync(file)) return;
    const asked = readFileSync(file, 'utf8');
    if (asked === crashed || asked !== `thread ${threadId}`) return;
    crashed = asked;
    throw new Error(`a test ends thread ${threadId}`);
  }, lookEveryMs);
  timer.unref();
}
