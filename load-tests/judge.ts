import { type Measurement, machineLines, measurementLine } from './bench-report.ts';

/** What every program of figures does: say the machine, print a line for each figure, end with 1 where a bar is missed. */
export interface Judge {
  say(line: string): void;
  tell(...measurements: readonly Measurement[]): void;
}

/** `--quick`: short, to see that the program works; its figures say little. */
export const isQuick = process.argv.includes('--quick');

export async function judged(run: (judge: Judge) => Promise<void>): Promise<void> {
  let held = true;
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const tell = (...measurements: readonly Measurement[]) => {
    for (const measurement of measurements) {
      say(measurementLine(measurement));
      held &&= measurement.ok !== false;
    }
  };
  for (const line of machineLines()) say(line);
  say(isQuick ? 'quick    a smoke run: the figures say little\n' : '');
  await run({ say, tell });
  process.exitCode = held ? 0 : 1;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
