/**
 * Loaded into the server by `node --import`: ends one of its threads by an uncaught error, as a bug would, when a file
 * asks for it. The file holds the entry of the thread and a number that is new each time: `log-worker 3`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isMainThread, parentPort } from 'node:worker_threads';

const lookEveryMs = 10;
const file = process.env.TIDEBASE_TEST_CRASH_FILE;

if (!isMainThread && file !== undefined && parentPort !== null) {
  // Asked for before this thread began: that was meant for the one before.
  const before = read(file);
  whenNamed(parentPort, (name) => {
    const timer = setInterval(() => {
      const asked = read(file);
      if (asked === before || asked.split(' ')[0] !== name) return;
      clearInterval(timer);
      throw new Error(`a test ends the thread of ${name}`);
    }, lookEveryMs);
    timer.unref();
  });
}

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** The first message to a worker names its entry; whoever listens for it is listened to. */
function whenNamed(port: NonNullable<typeof parentPort>, named: (name: string) => void): void {
  const on = port.on.bind(port) as (event: string, listener: (message: unknown) => void) => typeof port;
  const watched = (event: string, listener: (message: unknown) => void) =>
    on(event, (message) => {
      const name = /([\w-]+)\.js$/.exec((message as { filename?: string } | null)?.filename ?? '')?.[1];
      if (event === 'message' && name !== undefined) named(name);
      listener(message);
    });
  port.on = watched as typeof port.on;
}
