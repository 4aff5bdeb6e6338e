import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings, thisMachine } from '../../src/settings.ts';
import { type Env, SettingsError } from '../../src/settings-values.ts';

const GiB = 2 ** 30;
const machine = { cores: 8, memoryBytes: 16 * GiB, diskBytes: () => 500 * GiB };
const read = (env: Env) => readSettings(env, machine);

test('without any variable the server listens on this machine and keeps everything in ./data', () => {
  const settings = read({});

  assert.equal(settings.host, '127.0.0.1');
  assert.equal(settings.port, 8080);
  assert.equal(settings.baseUrl, null);
  assert.equal(settings.dataDir, `${process.cwd()}/data`);
  assert.equal(settings.objectStore, 'fs');
  assert.equal(settings.s3, null);
  assert.equal(settings.stripe, null);
  assert.equal(settings.commitMs, 250);
  assert.equal(settings.logLevel, 'info');
  assert.deepEqual(settings.trustedProxies, []);
  assert.equal(settings.smtpTls, 'required');
});

test('threads, memory and cache follow the machine', () => {
  const { actorThreads, computeThreads, memoryBytes, cacheBytes } = read({});

  assert.deepEqual(
    { actorThreads, computeThreads, memoryBytes, cacheBytes },
    { actorThreads: 7, computeThreads: 4, memoryBytes: 8 * GiB, cacheBytes: 50 * GiB },
  );
  const small = readSettings({}, { ...machine, cores: 1 });
  assert.deepEqual([small.actorThreads, small.computeThreads], [1, 1]);
});

test('this machine can be measured, also for a folder that does not exist yet', () => {
  assert.ok(thisMachine.cores >= 1);
  assert.ok(Number.isFinite(thisMachine.memoryBytes) && thisMachine.memoryBytes > 2 ** 20);
  assert.ok(thisMachine.diskBytes('/no/such/folder') > 2 ** 20);
});

test('an empty value is unset, also for a name that is not known', () => {
  assert.deepEqual(read({ TIDEBASE_PORT: '', TIDEBASE_HOST: '  ', TIDEBASE_NONSENSE: '' }), read({}));
});

test('an unknown TIDEBASE name stops the start; names of clients, tests and others do not', () => {
  assert.throws(() => read({ TIDEBASE_PROT: '1' }), /^SettingsError: TIDEBASE_PROT is not a setting/);

  read({ TIDEBASE_URL: 'x', TIDEBASE_API_KEY: 'y', TIDEBASE_TEST_S3: 'z', PATH: '/bin', S3_OTHER: '1' });
});

test('every setting can be given', () => {
  const key = Buffer.alloc(32, 5).toString('base64');

  const settings = read({
    TIDEBASE_HOST: '::',
    TIDEBASE_PORT: '0',
    TIDEBASE_BASE_URL: 'https://search.example.com/',
    TIDEBASE_DATA_DIR: '/var/lib/tidebase',
    TIDEBASE_OBJECT_STORE: 's3',
    TIDEBASE_OBJECTS_DIR: '/srv/objects',
    S3_ENDPOINT: 'http://127.0.0.1:9000',
    S3_REGION: 'eu-central-1',
    S3_BUCKET: 'b',
    S3_ACCESS_KEY_ID: 'id',
    S3_SECRET_ACCESS_KEY: 'secret',
    TIDEBASE_ACTOR_THREADS: '3',
    TIDEBASE_COMPUTE_THREADS: '5',
    TIDEBASE_CACHE_BYTES: '1073741824',
    TIDEBASE_MEMORY_BYTES: '2147483648',
    TIDEBASE_COMMIT_MS: '100',
    TIDEBASE_PLANS_FILE: 'plans.json',
    SMTP_URL: 'smtps://u:p@mail.example.com',
    TIDEBASE_SMTP_TLS: 'optional',
    MAIL_FROM: 'Tidebase <no-reply@example.com>',
    STRIPE_SECRET_KEY: 'sk_test_1234',
    STRIPE_WEBHOOK_SECRET: 'whsec_new',
    STRIPE_WEBHOOK_SECRET_PREVIOUS: 'whsec_old',
    STRIPE_PRICE_ID: 'price_pro',
    STRIPE_USAGE_PRICES: '{"queries": {"price": "price_q", "meter": "queries"}}',
    STRIPE_BASE_URL: 'http://127.0.0.1:2/',
    OPENAI_BASE_URL: 'http://127.0.0.1:1/v1/',
    TIDEBASE_KEY_ENCRYPTION_KEY: key,
    TIDEBASE_LOGIN_TOKEN_KEY: key,
    TIDEBASE_KEY_ENCRYPTION_KEY_PREVIOUS: Buffer.alloc(32, 6).toString('base64'),
    TIDEBASE_LOGIN_TOKEN_KEY_PREVIOUS: Buffer.alloc(32, 7).toString('base64'),
    TIDEBASE_METRICS_PORT: '9100',
    TIDEBASE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    TIDEBASE_LOG_LEVEL: 'debug',
  });

  assert.deepEqual(settings, {
    host: '::',
    port: 0,
    baseUrl: 'https://search.example.com',
    dataDir: '/var/lib/tidebase',
    objectStore: 's3',
    objectsDir: '/srv/objects',
    s3: {
      endpoint: 'http://127.0.0.1:9000',
      region: 'eu-central-1',
      bucket: 'b',
      credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
      forcePathStyle: true,
    },
    actorThreads: 3,
    computeThreads: 5,
    cacheBytes: GiB,
    memoryBytes: 2 * GiB,
    commitMs: 100,
    plansFile: 'plans.json',
    smtpUrl: 'smtps://u:p@mail.example.com',
    smtpTls: 'optional',
    mailFrom: 'Tidebase <no-reply@example.com>',
    stripe: {
      secretKey: 'sk_test_1234',
      webhookSecrets: ['whsec_new', 'whsec_old'],
      priceId: 'price_pro',
      usagePrices: { queries: { price: 'price_q', meter: 'queries' } },
      baseUrl: 'http://127.0.0.1:2',
    },
    embeddingBaseUrls: { openai: 'http://127.0.0.1:1/v1', cohere: null, google: null, mistral: null },
    loginTokenKey: Buffer.alloc(32, 5),
    keyEncryptionKey: Buffer.alloc(32, 5),
    previousKeyEncryptionKey: Buffer.alloc(32, 6),
    previousLoginTokenKey: Buffer.alloc(32, 7),
    metricsPort: 9100,
    peers: null,
    trustedProxies: ['10.0.0.0/8', '::1'],
    logLevel: 'debug',
  });
});

test('a bad value stops the start with a sentence that names the setting and no secret', () => {
  const bad: Env = {
    TIDEBASE_HOST: 'a b',
    TIDEBASE_PORT: '65536',
    TIDEBASE_BASE_URL: 'search.example.com',
    TIDEBASE_OBJECT_STORE: 'gcs',
    TIDEBASE_ACTOR_THREADS: '0',
    TIDEBASE_COMPUTE_THREADS: '-1',
    TIDEBASE_CACHE_BYTES: '1GB',
    TIDEBASE_MEMORY_BYTES: '1',
    TIDEBASE_COMMIT_MS: '1e3',
    SMTP_URL: 'secret://password',
    TIDEBASE_SMTP_TLS: 'no',
    MAIL_FROM: 'Tidebase no-reply@example.com',
    OPENAI_BASE_URL: 'http://user:secret@x',
    TIDEBASE_KEY_ENCRYPTION_KEY: 'secret',
    TIDEBASE_LOGIN_TOKEN_KEY: 'secret'.repeat(8),
    TIDEBASE_METRICS_PORT: 'x',
    TIDEBASE_PEER_PORT: '0',
    TIDEBASE_PEER_ADDRESS: 'fd00::5:7400',
    TIDEBASE_CLUSTER_KEY: 'secret',
    TIDEBASE_TRUSTED_PROXIES: '10.0.0.0/33',
    TIDEBASE_LOG_LEVEL: 'warn',
    S3_FORCE_PATH_STYLE: 'constructor',
  };
  for (const [name, value] of Object.entries(bad)) {
    assert.throws(
      () => read({ [name]: value }),
      (error: unknown) => {
        assert.ok(error instanceof SettingsError, name);
        assert.ok(
          error.message.startsWith(`${name} must be`) || error.message.startsWith(`${name} must list`),
        );
        assert.ok(!error.message.includes('secret'));
        return true;
      },
    );
  }
});

test("trusted proxies are no wider than anybody's network, also where IPv6 writes addresses of IPv4", () => {
  const proxies = (list: string) => read({ TIDEBASE_TRUSTED_PROXIES: list }).trustedProxies;
  const tooWide = [
    '0.0.0.0/0',
    '::/0',
    '128.0.0.0/1',
    '10.0.0.0/7',
    '2000::/3',
    '::/16',
    '::/80',
    '::ffff:0:0/96',
    '::ffff:10.0.0.0/103',
    'fc00::/6',
    'fe80::/9',
  ];
  for (const range of tooWide) {
    const sentence =
      /^SettingsError: TIDEBASE_TRUSTED_PROXIES must list the proxies and not "[^"]+": everybody /;
    assert.throws(() => proxies(`192.0.2.1, ${range}`), sentence, range);
  }

  for (const range of ['10.0.0.0/8', '::ffff:10.0.0.0/104', 'fc00::/7', 'fe80::/10', '2001:db8::/32', '::1'])
    assert.deepEqual(proxies(range), [range]);
});

test('a previous key needs a present one that is another, and says so without naming either', () => {
  const [one, two] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));
  for (const name of ['TIDEBASE_LOGIN_TOKEN_KEY', 'TIDEBASE_KEY_ENCRYPTION_KEY']) {
    const previous = `${name}_PREVIOUS`;
    const refusal = (env: Env) => {
      try {
        read(env);
      } catch (error) {
        assert.ok(error instanceof SettingsError);
        assert.ok(!error.message.includes(String(one)));
        return error.message;
      }
      return assert.fail('it started');
    };

    assert.equal(
      refusal({ [previous]: one }),
      `${previous} is set and ${name} is not: set the new key too, or neither`,
    );
    assert.match(
      refusal({ [name]: one, [previous]: one }),
      new RegExp(`^${name} and ${previous} are the same key`),
    );
    assert.match(
      refusal({ [name]: one, [previous]: 'x' }),
      new RegExp(`^${previous} must be 32 bytes in base64`),
    );
    read({ [name]: one, [previous]: two });
  }
});

test('whether mails need TLS is said in one place', () => {
  for (const option of ['ignoreTLS=true', 'requireTLS=false', 'x=1&opportunisticTLS=true']) {
    const sentence =
      /^SettingsError: SMTP_URL must not have "\w+TLS": TIDEBASE_SMTP_TLS \(required or optional\) decides/;
    assert.throws(() => read({ SMTP_URL: `smtp://u:secret@mail.example.com/?${option}` }), sentence);
  }
  const url = 'smtp://u:p@mail.example.com:587/?tls.rejectUnauthorized=false';
  assert.equal(read({ SMTP_URL: url }).smtpUrl, url);
});

test('s3 needs a bucket, and both halves of a key or neither', () => {
  assert.throws(() => read({ TIDEBASE_OBJECT_STORE: 's3' }), /S3_BUCKET must be set/);
  assert.throws(
    () => read({ TIDEBASE_OBJECT_STORE: 's3', S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'x' }),
    /both or neither/,
  );
  const { s3 } = read({ TIDEBASE_OBJECT_STORE: 's3', S3_BUCKET: 'b' });
  assert.deepEqual(s3, {
    endpoint: null,
    region: 'us-east-1',
    bucket: 'b',
    credentials: null,
    forcePathStyle: false,
  });
});
