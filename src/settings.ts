import { statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { EmbeddingBaseUrls } from '../protocol/worker-tasks.ts';
import type { LogLevel } from './base/log.ts';
import type { SmtpTls } from './identity/mailer.ts';
import { type PeerSettings, readPeers } from './settings-peers.ts';
import {
  anyText,
  baseUrl,
  type Env,
  host,
  mailSender,
  oneOf,
  proxyList,
  type Read,
  reader,
  readPrevious,
  SettingsError,
  secret,
  smtpUrl,
  stripeId,
  stripeKey,
  truth,
  type UsagePrices,
  unlessEmpty,
  usagePricesOf,
  wholeNumber,
} from './settings-values.ts';

/** All settings: environment variables, read and checked once at the start. Values only, no components. */
export interface Settings {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The address that links lead to, without a slash at its end; null means: made of host and port once the server listens. */
  readonly baseUrl: string | null;
  /** Absolute. */
  readonly dataDir: string;
  readonly objectStore: 'fs' | 's3';
  /** The folder of the `fs` store, absolute. */
  readonly objectsDir: string;
  /** Null unless `objectStore` is `s3`. */
  readonly s3: BucketSettings | null;
  readonly actorThreads: number;
  /** Compute threads of each kind of work, such as parsing and flushing; half as many for merging. */
  readonly computeThreads: number;
  readonly cacheBytes: number;
  readonly memoryBytes: number;
  /** The shortest time between two log PUTs, in milliseconds. */
  readonly commitMs: number;
  readonly plansFile: string | null;
  readonly smtpUrl: string | null;
  /** Whether mails may leave without TLS where the mail server has none. */
  readonly smtpTls: SmtpTls;
  readonly mailFrom: string | null;
  readonly stripe: StripeSettings | null;
  readonly embeddingBaseUrls: EmbeddingBaseUrls;
  /** 32 bytes; null means: made and kept in the data folder. */
  readonly loginTokenKey: Uint8Array | null;
  readonly keyEncryptionKey: Uint8Array | null;
  /** Accepted beside the ones above while keys are rotated; null outside a rotation. */
  readonly previousLoginTokenKey: Uint8Array | null;
  readonly previousKeyEncryptionKey: Uint8Array | null;
  readonly metricsPort: number | null;
  /** Null for a server that is alone. */
  readonly peers: PeerSettings | null;
  /** Addresses and CIDR ranges whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: LogLevel;
}

export interface BucketSettings {
  /** Null means Amazon's own. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly bucket: string;
  /** Null means: the SDK's own chain of credentials. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
  readonly forcePathStyle: boolean;
}

export interface StripeSettings {
  readonly secretKey: string;
  /** The present one, and the one before it while they are rotated. */
  readonly webhookSecrets: readonly string[];
  readonly priceId: string;
  readonly usagePrices: UsagePrices;
  /** Null means Stripe's own. */
  readonly baseUrl: string | null;
}

/** What defaults are made of. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  /** Size of the disk that holds (or will hold) a folder. */
  diskBytes(folder: string): number;
}

/** By default `TIDEBASE_COMPUTE_THREADS` is at most this: they compete with the actors for the same cores. */
const computeThreadsDefaultMax = 4;
const threadsMax = 256;
const bytesMax = 2 ** 50;
/** Below these a server could not hold one largest write or one largest segment. */
const cacheBytesMin = 64 * 2 ** 20;
const memoryBytesMin = 256 * 2 ** 20;
const commitMsDefault = 250;
const commitMsMax = 10_000;

/** Names that clients use and the server ignores, and names of tests. */
const ignored = new Set(['TIDEBASE_URL', 'TIDEBASE_API_KEY']);
const testPrefix = 'TIDEBASE_TEST_';

/** Throws `SettingsError`: an unknown `TIDEBASE_…` name, or a value that cannot be used. An empty value is unset. */
export function readSettings(env: Env, machine: Machine = thisMachine): Settings {
  const { read, names } = reader(env);
  const dataDir = resolve(read('TIDEBASE_DATA_DIR', anyText) ?? 'data');
  const objectStore = read('TIDEBASE_OBJECT_STORE', oneOf(['fs', 's3'])) ?? 'fs';
  const threads = wholeNumber(1, threadsMax);
  const port = wholeNumber(0, 65_535);
  const settings: Settings = {
    host: read('TIDEBASE_HOST', host) ?? '127.0.0.1',
    port: read('TIDEBASE_PORT', port) ?? 8080,
    baseUrl: read('TIDEBASE_BASE_URL', baseUrl),
    dataDir,
    objectStore,
    objectsDir: resolve(read('TIDEBASE_OBJECTS_DIR', anyText) ?? join(dataDir, 'objects')),
    s3: readS3(read, objectStore),
    actorThreads: read('TIDEBASE_ACTOR_THREADS', threads) ?? Math.max(1, machine.cores - 1),
    computeThreads:
      read('TIDEBASE_COMPUTE_THREADS', threads) ??
      Math.max(1, Math.min(computeThreadsDefaultMax, machine.cores)),
    cacheBytes:
      read('TIDEBASE_CACHE_BYTES', wholeNumber(cacheBytesMin, bytesMax)) ??
      Math.max(cacheBytesMin, Math.floor(machine.diskBytes(dataDir) / 10)),
    memoryBytes:
      read('TIDEBASE_MEMORY_BYTES', wholeNumber(memoryBytesMin, bytesMax)) ??
      Math.max(memoryBytesMin, Math.floor(machine.memoryBytes / 2)),
    commitMs: read('TIDEBASE_COMMIT_MS', wholeNumber(0, commitMsMax)) ?? commitMsDefault,
    plansFile: read('TIDEBASE_PLANS_FILE', anyText),
    smtpUrl: read('SMTP_URL', smtpUrl),
    smtpTls: read('TIDEBASE_SMTP_TLS', oneOf(['required', 'optional'])) ?? 'required',
    mailFrom: read('MAIL_FROM', mailSender),
    stripe: readStripe(read),
    embeddingBaseUrls: {
      openai: read('OPENAI_BASE_URL', baseUrl),
      cohere: read('COHERE_BASE_URL', baseUrl),
      google: read('GOOGLE_BASE_URL', baseUrl),
      mistral: read('MISTRAL_BASE_URL', baseUrl),
    },
    loginTokenKey: read('TIDEBASE_LOGIN_TOKEN_KEY', secret),
    keyEncryptionKey: read('TIDEBASE_KEY_ENCRYPTION_KEY', secret),
    previousLoginTokenKey: readPrevious(read, 'TIDEBASE_LOGIN_TOKEN_KEY'),
    previousKeyEncryptionKey: readPrevious(read, 'TIDEBASE_KEY_ENCRYPTION_KEY'),
    metricsPort: read('TIDEBASE_METRICS_PORT', port),
    peers: readPeers(read),
    trustedProxies: read('TIDEBASE_TRUSTED_PROXIES', proxyList) ?? [],
    logLevel: read('TIDEBASE_LOG_LEVEL', oneOf(['error', 'info', 'debug'])) ?? 'info',
  };
  refuseUnknownNames(env, names);
  return settings;
}

export const thisMachine: Machine = {
  cores: availableParallelism(),
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  diskBytes(folder) {
    for (let existing = folder; ; existing = dirname(existing)) {
      try {
        const { blocks, bsize } = statfsSync(existing);
        return blocks * bsize;
      } catch (cause) {
        if (dirname(existing) === existing) {
          throw new SettingsError(`the disk of ${folder} cannot be measured`, { cause });
        }
      }
    }
  },
};

/** Names are read in every case, so that they are known, and checked only where they matter. */
function readS3(read: Read, objectStore: 'fs' | 's3'): BucketSettings | null {
  const bucket = read('S3_BUCKET', anyText);
  const rest = readS3Access(read);
  if (objectStore !== 's3') return null;
  if (bucket === null) throw new SettingsError('S3_BUCKET must be set with TIDEBASE_OBJECT_STORE=s3');
  return { bucket, ...withCredentials(rest) };
}

/** Another bucket than the server's own, reached with the same settings. Throws `SettingsError`. */
export function readBucket(env: Env, bucket: string): BucketSettings {
  return { bucket, ...withCredentials(readS3Access(reader(env).read)) };
}

function readS3Access(read: Read) {
  const endpoint = read('S3_ENDPOINT', baseUrl);
  const region = read('S3_REGION', anyText) ?? 'us-east-1';
  const accessKeyId = read('S3_ACCESS_KEY_ID', anyText);
  const secretAccessKey = read('S3_SECRET_ACCESS_KEY', anyText);
  // Stores other than Amazon's seldom resolve a host name for each bucket.
  const forcePathStyle = read('S3_FORCE_PATH_STYLE', truth) ?? endpoint !== null;
  return { endpoint, region, accessKeyId, secretAccessKey, forcePathStyle };
}

function withCredentials(access: ReturnType<typeof readS3Access>): Omit<BucketSettings, 'bucket'> {
  const { accessKeyId, secretAccessKey, ...rest } = access;
  if ((accessKeyId === null) !== (secretAccessKey === null)) {
    throw new SettingsError('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set both or neither');
  }
  const credentials =
    accessKeyId === null || secretAccessKey === null ? null : { accessKeyId, secretAccessKey };
  return { ...rest, credentials };
}

function readStripe(read: Read): StripeSettings | null {
  const secretKey = read('STRIPE_SECRET_KEY', stripeKey);
  const webhookSecret = read('STRIPE_WEBHOOK_SECRET', stripeId('whsec_'));
  const previous = read('STRIPE_WEBHOOK_SECRET_PREVIOUS', stripeId('whsec_'));
  const priceId = read('STRIPE_PRICE_ID', stripeId('price_'));
  const usagePrices = read('STRIPE_USAGE_PRICES', usagePricesOf);
  const stripeUrl = read('STRIPE_BASE_URL', baseUrl);
  if (secretKey === null) return null;
  const needed = 'must be set with STRIPE_SECRET_KEY';
  if (webhookSecret === null) throw new SettingsError(`STRIPE_WEBHOOK_SECRET ${needed}`);
  if (priceId === null) throw new SettingsError(`STRIPE_PRICE_ID ${needed}`);
  if (usagePrices === null) throw new SettingsError(`STRIPE_USAGE_PRICES ${needed}`);
  const webhookSecrets = previous === null ? [webhookSecret] : [webhookSecret, previous];
  return { secretKey, webhookSecrets, priceId, usagePrices, baseUrl: stripeUrl };
}

function refuseUnknownNames(env: Env, known: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('TIDEBASE_') || unlessEmpty(value) === null) continue;
    if (known.has(name) || ignored.has(name) || name.startsWith(testPrefix)) continue;
    throw new SettingsError(`${name} is not a setting of Tidebase: remove it or correct its name`);
  }
}
