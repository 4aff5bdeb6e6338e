import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type DelayProxy, startDelayProxy } from './delay-proxy.ts';
import { Connections, type MeasuredServer } from './measured-server.ts';
import { s3Settings } from './s3-settings.ts';
import { startServer } from './server.ts';

/**
 * A server whose store is far away: a real S3 server behind a proxy that delays every byte by `delayMs` each way, so that
 * each GET takes 60 ms and more. What it is to find is written by a server that stands near the same store.
 */
export const delayMs = 30;

export interface FarStore {
  readonly nearEnv: Readonly<Record<string, string>>;
  readonly farEnv: Readonly<Record<string, string>>;
  readonly proxy: DelayProxy;
}

export async function startFarStore(): Promise<FarStore> {
  const s3 = s3Settings();
  const nearEnv = {
    ...s3,
    TIDEBASE_OBJECT_STORE: 's3',
    TIDEBASE_LOGIN_TOKEN_KEY: randomBytes(32).toString('base64'),
    TIDEBASE_KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  };
  const proxy = await startDelayProxy(s3.S3_ENDPOINT ?? '', delayMs);
  return { nearEnv, farEnv: { ...nearEnv, S3_ENDPOINT: proxy.url }, proxy };
}

/** Nothing of what was read before is near: a new process and an empty cache. Key and tenant are known to it, no namespace is. */
export async function startCold(
  { process: server, key }: MeasuredServer,
  { farEnv }: FarStore,
): Promise<MeasuredServer> {
  await server.stop();
  rmSync(join(server.folder, 'cache'), { recursive: true, force: true });
  const cold = { process: await startServer({ folder: server.folder, env: farEnv }), key };
  const client = new Connections(cold.process.url, key, 1);
  await client.get('/v1/namespaces?limit=1');
  client.close();
  return cold;
}
