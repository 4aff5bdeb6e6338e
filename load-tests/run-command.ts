/**
 * Runs one measurement or proof, and ends whatever it started, however it ends.
 *
 * Each run has a mark: an environment variable that every process below it inherits, those that leave their process
 * group (as the daemons of an S3 server do) among them. A guard outlives all of them: a small shell that waits for the
 * end of its standard input, which is the end of this process, be it by its own will, a signal, a crash or `kill -9`.
 * Then the guard kills every process that bears the mark, and removes the run's temporary folder. Reading other
 * processes' environments needs Linux's /proc, as `processes.ts` does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command, Step } from './commands.ts';

/** The variable that marks the processes of one run. It does not begin with `TIDEBASE_`: servers are started without those. */
const markName = 'MEASURED_RUN';

/** How long a run that was told to end may take; its server drains for up to 20 s. */
const endMsMax = 25_000;

/** $1 is `name=value` of the mark, $2 the folder. A process that starts another while it is killed is met by the next round. */
const guardScript = `
cat >/dev/null
for round in 1 2 3 4 5 6 7 8 9 10; do
  found=$(grep -lsazxF -- "$1" /proc/[0-9]*/environ | tr -cd '0-9\\n')
  [ -n "$found" ] || break
  kill -KILL $found 2>/dev/null
  sleep 0.1
done
rm -rf -- "$2"`;

/** Runs a command's steps one after the other, until one fails. Resolves with the exit code. */
export async function runCommand(command: Command, words: readonly string[]): Promise<number> {
  const run = startRun();
  try {
    for (const step of command.steps) {
      const code = await run.step(step, words);
      if (code !== 0) return code;
    }
    return 0;
  } finally {
    await run.end();
  }
}

function startRun() {
  const mark = randomUUID();
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-run-'));
  // A session of its own: Ctrl-C in a terminal reaches all of its group at once.
  const guard = spawn('bash', ['-c', guardScript, 'guard', `${markName}=${mark}`, folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  const guardEnded = once(guard, 'exit');
  return {
    step: (step: Step, words: readonly string[]) =>
      runStep(step, words, { [markName]: mark, TMPDIR: folder, KEPT_FOLDER: tmpdir() }),
    async end() {
      guard.stdin?.end();
      await guardEnded;
    },
  };
}

async function runStep(
  { program, env }: Step,
  words: readonly string[],
  marks: Readonly<Record<string, string>>,
): Promise<number> {
  const child = spawn(process.execPath, [...program, ...words], {
    // What a person sets in the environment, such as CRASH_ROUNDS=5, goes before the command's own values.
    env: { ...env, ...process.env, ...marks },
    stdio: 'inherit',
  });
  const stopForwarding = forwardSignals(child);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  stopForwarding();
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Ends the child on a signal to this process, at first by the same signal. */
function forwardSignals(child: ChildProcess): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  let late: NodeJS.Timeout | undefined;
  const forward = (signal: NodeJS.Signals) => {
    child.kill(signal);
    late ??= setTimeout(() => child.kill('SIGKILL'), endMsMax);
  };
  for (const signal of signals) process.on(signal, forward);
  return () => {
    clearTimeout(late);
    for (const signal of signals) process.off(signal, forward);
  };
}
