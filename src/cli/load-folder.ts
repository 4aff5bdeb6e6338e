import { stat } from 'node:fs/promises';
import { systemClock } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import { systemRandom } from '../base/random.ts';
import { type LoadArguments, loadUsage, loadUsageLine, parseLoadArguments } from './load-arguments.ts';
import { LeftOutSums, leftOutLine, ProgressLine, summaryLine } from './load-report.ts';
import { LoadFailed, sendFolder } from './send-folder.ts';
import { UsageError } from './target-arguments.ts';

/** `tidebase load`: answers the exit code, 0 loaded, 1 not everything, 2 not understood. */
export async function loadFolder(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  let request: LoadArguments | null;
  try {
    request = parseLoadArguments(args, env);
    if (request !== null) await mustBeFolder(request.folder);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`tidebase load: ${error.message}\n\n${loadUsageLine}`);
    return 2;
  }
  if (request !== null) return run(request);
  process.stdout.write(loadUsage);
  return 0;
}

async function mustBeFolder(folder: string): Promise<void> {
  let isFolder: boolean;
  try {
    isFolder = (await stat(folder)).isDirectory();
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(missing ? `there is no folder ${folder}` : `${folder}: ${describeError(error)}`);
  }
  if (!isFolder) throw new UsageError(`${folder} is no folder`);
}

async function run({ verbose, ...target }: LoadArguments): Promise<number> {
  const beganAt = systemClock.monotonic();
  const redraws = process.stderr.isTTY === true;
  const line = new ProgressLine({ write: (text) => process.stderr.write(text), redraws }, systemClock);
  const sums = new LeftOutSums();
  try {
    const counts = await sendFolder(
      { clock: systemClock, random: systemRandom },
      {
        ...target,
        onProgress: (counts) => line.show(counts),
        onLeftOut: (file) => {
          sums.add(file);
          if (verbose) line.say(leftOutLine(file));
        },
      },
    );
    line.clear();
    const summary = summaryLine(counts, target.namespace, systemClock.monotonic() - beganAt);
    process.stdout.write(`${[summary, ...sums.lines()].join('\n')}\n`);
    return sums.count('unreadable') === 0 ? 0 : 1;
  } catch (error) {
    line.clear();
    process.stderr.write(`tidebase load: ${failureOf(error)}\n`);
    return 1;
  }
}

function failureOf(error: unknown): string {
  if (!(error instanceof LoadFailed)) return describeError(error);
  const { documents } = error.counts;
  return documents === 0 ? error.message : `${error.message}\n${documents} documents were loaded before`;
}
