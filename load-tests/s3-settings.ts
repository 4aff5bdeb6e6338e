import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * The settings of a real S3 server on this machine: of the one whose file `TIDEBASE_TEST_S3_ENV` names, else of one that is
 * started by `test/support/start-s3.sh`, and stopped when this process ends.
 */
export function s3Settings(): Readonly<Record<string, string>> {
  const given = process.env.TIDEBASE_TEST_S3_ENV;
  const file = given ?? '/tmp/tidebase-s3/env';
  if (given === undefined && !isRunning()) {
    start();
    process.once('exit', () => spawnSync('bash', [script, 'wipe'], { stdio: 'ignore' }));
  }
  if (!existsSync(file)) throw new Error(`there is no ${file}: start an S3 server as test/README.md says`);
  return Object.fromEntries(
    [...readFileSync(file, 'utf8').matchAll(/^(?:export )?(S3_\w+)=(\S+)$/gm)].map(([, name, value]) => [
      name ?? '',
      value ?? '',
    ]),
  );
}

const script = resolve('test/support/start-s3.sh');

function isRunning(): boolean {
  const { stdout } = spawnSync('bash', [script, 'status'], { encoding: 'utf8' });
  return /^rgw up$/m.test(stdout);
}

function start(): void {
  const { status, stderr } = spawnSync('bash', [script, 'start'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the S3 server did not start: ${stderr}`);
}
