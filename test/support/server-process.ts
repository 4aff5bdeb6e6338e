/** The real server as a child process on a port of its own: started, watched, stopped, killed, started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { limits } from '../../protocol/limits.ts';

/** Compiled beside the tests, whatever the output folder is called. */
const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Is no TypeScript, so it is not compiled; tests run in the repository. */
const unlimitedPlans = resolve('load-tests/plans.unlimited.json');

/** A start takes half a second; a machine that runs everything at once takes far longer. */
const startMsMax = 90_000;
const pollMs = 50;
/** Longer than the server's own drain: with half of its PUTs unanswered, ten of them at a time on two cores, a stop took 38 s. */
const stopMsMax = 60_000;
/** How many errors of each server are told where tests have failed: the first ones are the cause, the rest repeats them. */
const explainedErrorsMax = 20;

export type Engine = 'auto' | 'uws' | 'node';

export interface ServerProcessOptions {
  readonly folder: string;
  /** `serve` starts the supervisor with the server as its child. */
  readonly command?: 'server' | 'serve';
  readonly engine?: Engine;
  /** Default: every limit of the plans lifted. `built-in` is what a person gets. */
  readonly plans?: 'unlimited' | 'built-in';
  readonly env?: Readonly<Record<string, string>>;
  /** The file to whose end it writes what it logs. */
  readonly logFile?: string;
  /** Arguments of Node itself, such as `--import file`. */
  readonly nodeArguments?: readonly string[];
  /** The only cores it may run on, as `taskset -c` takes them; default: all. */
  readonly cores?: string;
}

/** Options of a server with other limits than those of protocol/limits.ts: what it waits for, it waits for as long as these say. */
export function withLimits(
  changes: Partial<Readonly<Record<keyof typeof limits, number>>>,
): Required<Pick<ServerProcessOptions, 'nodeArguments' | 'env'>> {
  return {
    nodeArguments: ['--import', new URL('./other-limits.js', import.meta.url).href],
    env: { TIDEBASE_TEST_LIMITS: JSON.stringify(changes) },
  };
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const living = new Set<ChildProcess>();
const folders: string[] = [];
const servers: ServerProcess[] = [];
// What a failed test leaves running would keep the test process alive for ever.
after(clear);
process.once('exit', () => {
  clear();
  if (process.exitCode) explain();
});

/** Prints what the servers of this process logged as errors, for whoever looks for the cause of a failed test: a client is told none of a 500. */
function explain(): void {
  const said = servers.flatMap((server) => server.loggedErrors().slice(0, explainedErrorsMax));
  if (said.length > 0) writeSync(2, `the servers of these tests logged:\n${said.join('\n')}\n`);
}

function clear(): void {
  for (const child of living) {
    child.kill('SIGKILL');
    // The server of a killed supervisor holds these until it has noticed.
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
  for (const folder of folders.splice(0)) remove(folder);
}

/** A child that is ending may still write: what it leaves is the system's to clean, and no failure. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  } catch {
    process.stderr.write(`${folder} is left\n`);
  }
}

/**
 * A data folder with another one's name in the cluster and its secrets, as where a disk was copied: its server need not wait for the lease of the
 * other to run out, and ends that one.
 */
export function copyOfName(folder: string): string {
  const copy = temporaryFolder();
  for (const part of ['server-id', 'secrets']) {
    const from = join(folder, part);
    if (existsSync(from)) cpSync(from, join(copy, part), { recursive: true });
  }
  return copy;
}

export class ServerProcess {
  readonly options: ServerProcessOptions;
  readonly #child: ChildProcess;
  readonly #ended: Promise<ProcessEnd>;
  #output = '';
  #errors = '';
  #wake = new Set<() => void>();
  #isStopping = false;

  constructor(options: ServerProcessOptions) {
    const { folder, command = 'server', engine = 'auto', plans = 'unlimited', env = {}, cores } = options;
    this.options = options;
    servers.push(this);
    const words = [process.execPath, ...(options.nodeArguments ?? []), mainFile, command];
    // `taskset` becomes the server: its process id is the server's.
    const [program = '', ...args] = cores === undefined ? words : ['taskset', '-c', cores, ...words];
    this.#child = spawn(program, args, {
      env: {
        ...withoutTidebase(process.env),
        TIDEBASE_PORT: '0',
        TIDEBASE_DATA_DIR: folder,
        TIDEBASE_TEST_HTTP_ENGINE: engine,
        ...(plans === 'unlimited' ? { TIDEBASE_PLANS_FILE: unlimitedPlans } : {}),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    living.add(this.#child);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#heard(text, ''));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#heard('', text));
    this.#ended = new Promise((settle) => {
      // `close`, not `exit`: by then all that it said has been read.
      this.#child.once('close', (code, signal) => {
        living.delete(this.#child);
        settle({ code, signal });
        this.#heard('', '');
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** The process that serves: the child of the supervisor where there is one, as long as it runs. */
  get serverPid(): number {
    if (this.options.command !== 'serve') return this.pid;
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
    return Number(children.trim().split(' ')[0] || -1);
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Whether `stop` was called: its end is no accident then. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  get output(): string {
    return this.#output;
  }

  get errors(): string {
    return this.#errors;
  }

  /** The addresses it has listened on: a supervised server that was started again prints another. */
  get urls(): readonly string[] {
    return [...this.#output.matchAll(/^tidebase listening on (\S+)$/gm)].map(([, url]) => url ?? '');
  }

  get url(): string {
    return this.urls.at(-1) ?? '';
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Resolves once it has listened so many times. Rejects with all it said where it ended before. */
  async listening(times = 1): Promise<this> {
    await this.until(() => this.urls.length >= times, `listening for the ${times}. time`);
    return this;
  }

  /** Waits for something in its output, or in its folder: looking costs a fifth of the time at most. */
  async until(holds: () => boolean, what: string, timeoutMs = startMsMax): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const began = performance.now();
      if (holds()) return;
      const now = performance.now();
      const leftMs = deadline - now;
      if (!this.running || leftMs <= 0) {
        const why = this.running ? `not within ${timeoutMs} ms` : 'it has ended';
        throw new Error(`the server: ${what}: ${why}\n${this.#output}\n${this.#errors}`);
      }
      const restMs = (now - began) * 4;
      if (restMs > pollMs) await sleep(Math.min(leftMs, restMs));
      else await this.#newsWithin(Math.min(leftMs, pollMs));
    }
  }

  async #newsWithin(ms: number): Promise<void> {
    await new Promise<void>((wake) => {
      const timer = setTimeout(wake, ms);
      this.#wake.add(() => {
        clearTimeout(timer);
        wake();
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGTERM and the end. A server that does not end is killed, and the test told. */
  async stop(): Promise<ProcessEnd> {
    this.#isStopping = true;
    this.signal('SIGTERM');
    return this.end();
  }

  /** kill -9: nothing is flushed, nobody is told. */
  async kill(): Promise<ProcessEnd> {
    this.signal('SIGKILL');
    return this.#ended;
  }

  /** Its end, which must come by itself. */
  async end(): Promise<ProcessEnd> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.signal('SIGKILL');
        reject(new Error(`the server did not end within ${stopMsMax} ms\n${this.#errors}`));
      }, stopMsMax);
    });
    try {
      return await Promise.race([this.#ended, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resident memory of the process, from the kernel. */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1024;
  }

  /** What it logged as errors: most tests expect none. */
  loggedErrors(): readonly string[] {
    return this.#errors.split('\n').filter((line) => line.includes('"level":"error"'));
  }

  #heard(output: string, errors: string): void {
    this.#output += output;
    this.#errors += errors;
    if (this.options.logFile !== undefined && errors !== '') appendFileSync(this.options.logFile, errors);
    for (const wake of this.#wake) wake();
    this.#wake.clear();
  }
}

/** A server that listens; killed when the test process ends, where it is left running. */
export async function startServer(options: ServerProcessOptions): Promise<ServerProcess> {
  return new ServerProcess(options).listening();
}

/** The same folder, a new process. */
export async function restart(
  server: ServerProcess,
  changes: Partial<ServerProcessOptions> = {},
): Promise<ServerProcess> {
  return startServer({ ...server.options, ...changes });
}

/** An empty data folder, removed when the tests of the file have ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-e2e-'));
  folders.push(folder);
  return folder;
}

/** The settings of whoever runs the tests are not the tests'. */
function withoutTidebase(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TIDEBASE_')));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
