/** The real S3 server of the tests: found by what names it, or started; each test takes a bucket of its own in it. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { freePorts } from './free-ports.ts';

/** The longest start, with Debian's packages, which may have to be installed first. */
const startMsMax = 300_000;
const script = resolve('test/support/start-s3.sh');
const run = promisify(execFile);

export interface S3Bucket {
  readonly endpoint: string;
  readonly port: number;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Why there is none; null where there is one. */
export const noS3Reason =
  process.env.TIDEBASE_TEST_S3_ENV === undefined
    ? 'run test/support/start-s3.sh and set TIDEBASE_TEST_S3_ENV to the file "env" that it names'
    : null;

/** An empty bucket of a name of its own: two servers in one bucket would be one cluster. */
export async function newBucket(envFile = process.env.TIDEBASE_TEST_S3_ENV ?? ''): Promise<S3Bucket> {
  const values = readEnvFile(envFile);
  const endpoint = values.get('S3_ENDPOINT') ?? '';
  const bucket: S3Bucket = {
    endpoint,
    port: Number(new URL(endpoint).port),
    region: values.get('S3_REGION') ?? 'us-east-1',
    bucket: `test-${randomBytes(6).toString('hex')}`,
    accessKeyId: values.get('S3_ACCESS_KEY_ID') ?? '',
    secretAccessKey: values.get('S3_SECRET_ACCESS_KEY') ?? '',
  };
  const { accessKeyId, secretAccessKey, region } = bucket;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket.bucket }));
  client.destroy();
  return bucket;
}

/** Settings of a server that keeps its data in the bucket; `endpoint` where it reaches it by another way. */
export function serverEnvOf(bucket: S3Bucket, endpoint = bucket.endpoint): Record<string, string> {
  return {
    TIDEBASE_OBJECT_STORE: 's3',
    S3_ENDPOINT: endpoint,
    S3_REGION: bucket.region,
    S3_BUCKET: bucket.bucket,
    S3_ACCESS_KEY_ID: bucket.accessKeyId,
    S3_SECRET_ACCESS_KEY: bucket.secretAccessKey,
    // With s3 they must be given: losing a folder must not lose them.
    TIDEBASE_LOGIN_TOKEN_KEY: Buffer.alloc(32, 1).toString('base64'),
    TIDEBASE_KEY_ENCRYPTION_KEY: Buffer.alloc(32, 2).toString('base64'),
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}

/** Starts a server of its own on free ports, its objects in memory. Answers its env file, and what ends it. */
export async function startOwnS3(): Promise<{ readonly envFile: string; readonly end: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-s3-'));
  const [s3Port, monitorPort] = await freePorts(2);
  const env = {
    ...process.env,
    S3_DIR: join(folder, 's3'),
    S3_PORT: String(s3Port),
    S3_MON_PORT: String(monitorPort),
  };
  const end = async () => {
    await run('bash', [script, 'wipe'], { env });
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await run('bash', [script, 'start'], { env, timeout: startMsMax });
  } catch (error) {
    await end();
    throw error;
  }
  return { envFile: join(env.S3_DIR, 'env'), end };
}

function readEnvFile(file: string): Map<string, string> {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}
