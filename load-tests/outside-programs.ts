import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './server.ts';

/** Other people's search programs, timed as a shell starts them: process start included, this process's size not. */
export interface ProgramRuns {
  readonly timesMs: readonly number[];
  /** That it printed. */
  readonly lines: number;
}

const script = `
out=$1 times=$2; shift 2
for ((i = 0; i < times; i++)); do
  began=$EPOCHREALTIME
  "$@" >"$out"
  code=$? ended=$EPOCHREALTIME
  [ $code -le 1 ] || exit $code
  echo "$began $ended"
done`;

/** Times `command`, whose exit code 1 means that nothing matched. Throws where it ends with another. */
export function timeProgram(
  command: readonly string[],
  times: number,
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): ProgramRuns {
  const out = join(temporaryOutput(), 'out');
  const printed = execFileSync('bash', ['-c', script, 'bash', out, String(times), ...command], {
    cwd,
    env: { ...process.env, LC_ALL: 'C', ...env },
    encoding: 'utf8',
    // What it says of its failure goes into the error.
    stdio: 'pipe',
  });
  const timesMs = [...printed.matchAll(/^(\S+) (\S+)$/gm)].map(
    ([, began, ended]) => (Number(ended) - Number(began)) * 1_000,
  );
  const lines = readFileSync(out).reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0);
  return { timesMs, lines };
}

let output: string | null = null;
function temporaryOutput(): string {
  output ??= temporaryFolder();
  return output;
}

/** Those of them that are not on this machine. */
export function missingPrograms(...names: readonly string[]): string[] {
  return names.filter((name) => spawnSync('bash', ['-c', `command -v ${name}`]).status !== 0);
}
