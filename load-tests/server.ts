import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { serverFlags } from '../src/cli/supervise.ts';

/**
 * The real server as a process of its own, as an operator runs it, with every limit of the plans lifted. Not the tests'
 * server process: that one belongs to the test runner, and these programs are none of its tests.
 */
export interface StartOptions {
  /** The data folder; a new empty one by default. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of Node itself, such as `--cpu-prof`. */
  readonly nodeArguments?: readonly string[];
  /** As `npm start` runs it: the server is then the child of a supervisor. */
  readonly supervised?: boolean;
}

export interface RunningServer {
  readonly url: string;
  /** The address of `GET /metrics`, without the path. */
  readonly metricsUrl: string;
  /** The same of each process, where several servers are measured as one. */
  readonly metricsUrls: readonly string[];
  readonly folder: string;
  /** The data folder of each process. */
  readonly dataFolders: readonly string[];
  /** The id of the process that was started; of several the first. */
  readonly processId: number;
  readonly processIds: readonly number[];
  /** Resident memory of the process, from the kernel. */
  residentBytes(): number;
  /** Resident bytes that are not pages of files: the local cache is mapped, and the kernel takes its pages back when it likes. */
  anonymousBytes(): number;
  /** How the process ended: its signal or code. Null while it runs. */
  ending(): string | null;
  /** Resolves when it has ended well; rejects where it did not. */
  stop(): Promise<void>;
  /** kill -9. Resolves when it is gone. Not for a supervised one, whose server would live on. */
  kill(): Promise<void>;
  /** Several servers alone: stops each and starts it again, one after another, as deploy/README.md says. */
  restartInTurn?(): Promise<void>;
}

const mainFile = fileURLToPath(new URL('../src/main.js', import.meta.url));
/** Is no TypeScript, so it is not compiled: the programs are started in the repository. */
const plansFile = resolve('load-tests/plans.unlimited.json');
const startMsMax = 90_000;
/** Longer than the server's own drain. */
const stopMsMax = 30_000;

const living = new Set<ChildProcess>();
const folders: string[] = [];
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

// A signal ends a process without the event above.
for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  process.once(signal, () => process.exit(code));
}

/** Makes an empty folder, which is removed when this process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-load-'));
  folders.push(folder);
  return folder;
}

/** Resolves once it listens. */
export async function startServer(options: StartOptions = {}): Promise<RunningServer> {
  const folder = options.folder ?? temporaryFolder();
  const command = options.supervised === true ? 'serve' : 'server';
  const flags = options.supervised === true ? [] : serverFlags;
  const child = spawn(process.execPath, [...flags, ...(options.nodeArguments ?? []), mainFile, command], {
    env: {
      ...withoutTidebase(process.env),
      // Every thread would print the SDK's notice about this version of Node.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      TIDEBASE_PORT: '0',
      TIDEBASE_METRICS_PORT: '0',
      TIDEBASE_DATA_DIR: folder,
      TIDEBASE_PLANS_FILE: plansFile,
      TIDEBASE_LOG_LEVEL: 'error',
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  living.add(child);
  child.once('exit', () => living.delete(child));
  const addresses = await addressesOf(child, child.stdout);
  return {
    ...addresses,
    metricsUrls: [addresses.metricsUrl],
    folder,
    dataFolders: [folder],
    processId: child.pid ?? 0,
    processIds: [child.pid ?? 0],
    residentBytes: () => statusBytes(child, 'VmRSS'),
    anonymousBytes: () => statusBytes(child, 'RssAnon'),
    ending: () => child.signalCode ?? child.exitCode?.toString() ?? null,
    stop: () => stop(child),
    async kill() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function addressesOf(
  child: ChildProcess,
  output: NodeJS.ReadableStream,
): Promise<{ readonly url: string; readonly metricsUrl: string }> {
  const late = setTimeout(() => child.kill('SIGKILL'), startMsMax);
  let metricsUrl = '';
  try {
    for await (const line of createInterface({ input: output })) {
      metricsUrl = /^tidebase tells metrics on (\S+)$/.exec(line)?.[1] ?? metricsUrl;
      const url = /^tidebase listening on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return { url, metricsUrl };
    }
    throw new Error('the server ended before it listened');
  } finally {
    clearTimeout(late);
    // Whatever it says later has no reader; a full pipe would hold it up.
    output.resume();
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(late);
  }
  if (child.exitCode !== 0) throw new Error(`the server ended with ${child.signalCode ?? child.exitCode}`);
}

function statusBytes(child: ChildProcess, field: string): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN) * 1_024;
}

/** The settings of whoever starts this are not the measured server's. */
function withoutTidebase(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TIDEBASE_')));
}
