/** Test files in a process, one after another: the module that `entryOf` begins with. */
import { readFileSync } from 'node:fs';
import { suite } from 'node:test';
import { pathToFileURL } from 'node:url';

/** Begins the line that tells the runner what a file computed: `tidebase-test-cpu-ms PATH MS`. */
export const cpuLineStart = 'tidebase-test-cpu-ms';

/**
 * Ends the process where something keeps it alive after all tests, and names the files that began it. That is a failure
 * where several files share it; a file alone may leave to the end of its process what a test that failed did not end.
 */
export async function runShared(
  files: readonly (readonly [path: string, compiled: string])[],
  fileTimeoutMs: number,
  lingeringMsMax: number,
): Promise<void> {
  const left: string[] = [];
  for (const [path, compiled] of files) {
    const before = keepingAlive();
    const cpuBefore = files.length > 1 ? cpuMs() : 0;
    await suite(path, { timeout: fileTimeoutMs }, async () => {
      await import(pathToFileURL(compiled).href);
    });
    if (files.length > 1) tellCpu(path, cpuMs() - cpuBefore);
    // What it started is counted once that has ended.
    else process.once('exit', () => tellCpu(path, cpuMs()));
    const more = keepingAlive().filter((kind) => !before.includes(kind));
    if (more.length > 0) left.push(`${path}: ${more.join(', ')}`);
  }
  setTimeout(() => {
    process.stderr.write(
      `kept alive by ${keepingAlive().join(', ')}; after each file:\n${left.join('\n')}\n`,
    );
    process.exit(files.length > 1 ? 1 : undefined);
  }, lingeringMsMax).unref();
}

/** The pipes to the runner are always there. */
function keepingAlive(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap');
}

function tellCpu(path: string, ms: number): void {
  process.stdout.write(`${cpuLineStart} ${path} ${ms}\n`);
}

/** What this process has computed, and those that it started and that have ended, and so on. */
function cpuMs(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // From the third field on, behind the name: utime, stime, cutime and cstime are the 14th to the 17th.
    const ticks = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15);
    return ticks.reduce((sum, count) => sum + Number(count) * 10, 0);
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}
