import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import { objectStoreSuite } from './object-store.suite.ts';

objectStoreSuite('memory', async () => new MemoryObjectStore());

const folder = await mkdtemp(join(tmpdir(), 'tidebase-store-'));
after(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
objectStoreSuite('fs', () => openObjectStore({ kind: 'fs', folder }, systemClock, systemRandom));

const envFile = process.env.TIDEBASE_TEST_S3_ENV;
if (envFile === undefined) {
  const how = 'run test/support/start-s3.sh and set TIDEBASE_TEST_S3_ENV to the file "env" that it names';
  it('object store contract: s3', { skip: how }, () => {});
} else {
  const settings = await readS3Settings(envFile);
  objectStoreSuite('s3', () => openObjectStore(settings, systemClock, systemRandom));
}

async function readS3Settings(file: string) {
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  const values = new Map(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  return {
    kind: 's3',
    endpoint: values.get('S3_ENDPOINT'),
    region: values.get('S3_REGION') ?? 'us-east-1',
    bucket: values.get('S3_BUCKET') ?? '',
    accessKeyId: values.get('S3_ACCESS_KEY_ID'),
    secretAccessKey: values.get('S3_SECRET_ACCESS_KEY'),
    forcePathStyle: true,
  } as const;
}
