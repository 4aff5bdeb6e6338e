/**
 * node with-s3.js COMMAND ARGUMENT …: runs the command with an S3 server of its own, unless TIDEBASE_TEST_S3_ENV names
 * one already; ends the server it started, and with the command's exit code.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startOwnS3 } from './s3-server.ts';

const [command = '', ...words] = process.argv.slice(2);
const given = process.env.TIDEBASE_TEST_S3_ENV;
const own = given === undefined ? await startOwnS3() : null;
const env = { ...process.env, TIDEBASE_TEST_S3_ENV: own?.envFile ?? given };
const child = spawn(command, words, { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
const [code] = (await once(child, 'close')) as [number | null];
await own?.end();
process.exit(code ?? 1);
