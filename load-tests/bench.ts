import { benchReads } from './bench-reads.ts';
import { type Measurement, machineLines, measurementLine } from './bench-report.ts';
import { benchStart } from './bench-start.ts';
import { benchBatches, benchFirstWrites } from './bench-writes.ts';
import { startMeasured } from './measured-server.ts';
import { wrkIsInstalled } from './wrk.ts';

/** `npm run bench`: the speeds that are promised, measured on this machine. Ends with 1 where a bar is missed. */
const say = (line: string) => process.stdout.write(`${line}\n`);

async function bench(): Promise<boolean> {
  for (const line of machineLines()) say(line);
  say('limits   load-tests/plans.unlimited.json\n');
  const all: Measurement[] = [];
  const tell = (measurements: readonly Measurement[]) => {
    for (const measurement of measurements) say(measurementLine(measurement));
    all.push(...measurements);
  };
  tell(await benchStart());
  const writes = await startMeasured();
  tell([await benchFirstWrites(writes)]);
  tell([await benchBatches(writes)]);
  await writes.process.stop();
  if (wrkIsInstalled()) tell(await benchReads());
  else say('warm read: skipped, because wrk is not installed (apt-get install wrk)');
  return all.every(({ ok }) => ok !== false);
}

process.exitCode = (await bench()) ? 0 : 1;
