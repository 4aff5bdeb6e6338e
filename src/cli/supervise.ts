import { type ChildProcess, spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../base/clock.ts';
import { makeOnlyPrivate } from '../base/private-folder.ts';
import { afterCrashFlag, exitCodes, type Farewell } from './farewell.ts';

const firstDelayMs = 50;
const delayMsMax = 10_000;
/**
 * A server that ran this long has joined, replayed and served: the next failure is a new one. It was a minute, and where a server was killed twice
 * within it, its data waited for the second delay too.
 */
const healthyAfterMs = 15_000;

/** How native code ends: a page of a mapped file that is not there, a pointer read from one, an assertion. */
const crashSignals: ReadonlySet<string> = new Set([
  'SIGBUS',
  'SIGSEGV',
  'SIGABRT',
  'SIGILL',
  'SIGFPE',
  'SIGTRAP',
]);

/** The supervisor's own, where the server crashed while it was to stop. */
const crashedCode = 1;

/** Threads of libuv's pool: every fsync of the fs store holds one, and reads must not wait for them. */
const poolThreads = '16';

/**
 * Settings of glibc's allocator. Without them every thread has arenas of its own, which keep what was freed; and after the
 * first large buffer it takes buffers of that size from them too, instead of giving each back to the system. Measured with 240 MB written
 * in bodies of 2 MB: 589 MB resident without, 467 MB with.
 *
 * A page that is touched for the first time costs microseconds, and columns and tables of groups are megabytes: buffers up
 * to a megabyte are used again instead of given back, and larger ones lie in huge pages where the system has them. Measured
 * with ten statements that group a million rows: 0.81 of the time, with no more resident memory.
 */
export const allocator = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: String(2 ** 20),
  MALLOC_TRIM_THRESHOLD_: String(2 ** 24),
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
};

/** What the server's process is started with, where the environment says nothing else: it is read before any code of ours runs. */
export const serverEnvironment = {
  UV_THREADPOOL_SIZE: poolThreads,
  // Every thread would print the SDK's notice about this version of Node.
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  ...allocator,
};

/** A machine with at most this many cores has none to spare for V8's helpers. */
const coresWithoutHelpers = 4;

/**
 * Arguments of Node that the server's process is started with. On few cores each thread collects its own garbage. V8's four
 * helpers, which do it for all threads, would run beside them at the process's own priority: they put what threads of low
 * priority let lie before the reads, and threads wait for each other. src/cli/README.md has the figures.
 */
export const serverFlags: readonly string[] =
  availableParallelism() <= coresWithoutHelpers ? ['--single-threaded-gc'] : [];

/**
 * Starts the server as a child process and starts it again after an abnormal exit, a crash of native code included,
 * waiting longer each time while it keeps failing. Signals go on to the child. Answers the exit code.
 *
 * After a crash of native code the next server starts without the local cache, which is the only thing that native code
 * maps: a damaged file of it costs one restart and not one after another.
 */
export async function supervise(): Promise<number> {
  makeOnlyPrivate();
  const env = { ...serverEnvironment, ...process.env };
  let child: ChildProcess | null = null;
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stopping = true;
      // A terminal's Ctrl-C reaches the child by itself; a second SIGTERM does no harm.
      child?.kill('SIGTERM');
    });
  }
  let serverArguments = ['server'];
  for (let delayMs = firstDelayMs; ; ) {
    const began = systemClock.monotonic();
    child = spawn(process.execPath, [...process.execArgv, ...serverFlags, serverEntry, ...serverArguments], {
      stdio: [...stdio],
      env,
    });
    const ended = await endOf(child);
    const crashed = crashSignals.has(ended.signal ?? '');
    // Any other signal is somebody's word to stop, which came before the server could listen for it.
    if (stopping || ended.code === exitCodes.done || ended.code === exitCodes.cannotStart)
      return ended.code ?? (crashed ? crashedCode : exitCodes.done);
    serverArguments = crashed ? ['server', afterCrashFlag] : ['server'];
    if (systemClock.monotonic() - began > healthyAfterMs) delayMs = firstDelayMs;
    process.stderr.write(
      `tidebase: the server ended (${ended.signal ?? ended.code}); starting it again in ${delayMs} ms\n`,
    );
    await waitUnlessStopped(delayMs, () => stopping);
    if (stopping) return exitCodes.done;
    delayMs = Math.min(delayMs * 2, delayMsMax);
  }
}

/** The fourth is the channel on which the server says why it ends. */
const stdio = ['inherit', 'inherit', 'inherit', 'ipc'] as const;

/** From a server's farewell to its end, which waits for every thread: native code that loops would hold it for ever. */
const exitMsMax = 2_000;

const serverEntry = fileURLToPath(new URL('../main.js', import.meta.url));

function endOf(
  child: ChildProcess,
): Promise<{ readonly code: number | null; readonly signal: string | null }> {
  return new Promise((resolve) => {
    let said: number | null = null;
    child.once('message', (message) => {
      said = (message as Farewell).exitCode;
      systemClock.after(exitMsMax, () => child.kill('SIGKILL'));
    });
    child.once('exit', (code, signal) => resolve({ code: said ?? code, signal }));
    child.once('error', () => resolve({ code: 1, signal: null }));
  });
}

async function waitUnlessStopped(ms: number, stopped: () => boolean): Promise<void> {
  const until = systemClock.monotonic() + ms;
  while (!stopped() && systemClock.monotonic() < until) await systemClock.sleep(50);
}
