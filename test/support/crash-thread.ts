/**
 * Loaded into the server by `node --import`: ends one of its threads by an uncaught error, as a bug would, when a file
 * asks for it. The file holds the entry of the thread and a number that is new each time: `log-worker 3`. With the path
 * of a FIFO behind them, one such thread does not end but opens it: a call that never comes back and that nothing in the
 * process can interrupt, as native code that loops, but that takes no time from anybody. `main` is the main thread.
 *
 * TIDEBASE_TEST_SILENT_MS: how long the server's threads may be silent.
 */
import { openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { isMainThread, parentPort } from 'node:worker_threads';
import { limits } from '../../protocol/limits.ts';

const lookEveryMs = 10;
const beatMs = 100;
const { TIDEBASE_TEST_CRASH_FILE: file, TIDEBASE_TEST_SILENT_MS: silentMs } = process.env;

if (silentMs !== undefined)
  Object.assign(limits, { threadBeatMs: beatMs, threadSilentMsMax: Number(silentMs) });

if (file !== undefined) {
  // Asked for before this thread began: that was meant for the one before.
  const before = read(file);
  // The supervisor is a main thread too.
  if (isMainThread && process.argv[2] === 'server') watch(file, before, 'main');
  if (parentPort !== null) whenNamed(parentPort, (name) => watch(file, before, name));
}

function watch(path: string, before: string, name: string): void {
  const timer = setInterval(() => {
    const asked = read(path);
    const [thread, , fifo] = asked.split(' ');
    if (asked === before || thread !== name) return;
    clearInterval(timer);
    if (fifo !== undefined) {
      if (!takes(path)) return;
      writeSync(2, `a test holds the thread of ${name}\n`);
      openSync(fifo, 'r');
    }
    writeSync(2, `a test ends the thread of ${name}\n`);
    throw new Error(`a test ends the thread of ${name}`);
  }, lookEveryMs);
  timer.unref();
}

/** One thread of those that are meant is held. */
function takes(path: string): boolean {
  try {
    renameSync(path, `${path}.taken`);
    return true;
  } catch {
    return false;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not there, or another thread has just taken it.
    return '';
  }
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
