import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemRandom } from '../../../src/base/random.ts';
import { loadSecrets, parseSecret, SecretsError } from '../../../src/identity/secrets.ts';

const none = {
  loginTokenKey: null,
  keyEncryptionKey: null,
  previousLoginTokenKey: null,
  previousKeyEncryptionKey: null,
  random: systemRandom,
} as const;

async function inFolder(run: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'secrets-'));
  try {
    await run(dataDir);
  } finally {
    await rm(dataDir, { recursive: true, maxRetries: 10, retryDelay: 50 });
  }
}

test('secrets are made once, kept for nobody else to read, and found again', () =>
  inFolder(async (dataDir) => {
    const made = await loadSecrets({ dataDir, objectStore: 'fs', ...none });
    const again = await loadSecrets({ dataDir, objectStore: 'fs', ...none });

    assert.deepEqual(again, made);
    assert.equal(made.loginTokenKeys.present.length, 32);
    assert.notDeepEqual(made.loginTokenKeys, made.keyEncryptionKeys);
    const folder = join(dataDir, 'secrets');
    assert.deepEqual((await readdir(folder)).sort(), ['key-encryption-key', 'login-token-key']);
    assert.equal((await stat(join(folder, 'login-token-key'))).mode & 0o777, 0o600);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
  }));

test('servers that start at once on one folder agree', () =>
  inFolder(async (dataDir) => {
    const all = await Promise.all(
      Array.from({ length: 16 }, () => loadSecrets({ dataDir, objectStore: 'fs', ...none })),
    );

    for (const secrets of all) assert.deepEqual(secrets, all[0]);
  }));

test('given secrets are used and nothing is written', () =>
  inFolder(async (dataDir) => {
    const loginTokenKey = new Uint8Array(32).fill(1);
    const keyEncryptionKey = new Uint8Array(32).fill(2);

    const secrets = await loadSecrets({
      ...none,
      dataDir,
      objectStore: 's3',
      loginTokenKey,
      keyEncryptionKey,
    });

    assert.deepEqual(secrets.loginTokenKeys, { present: loginTokenKey, previous: null });
    assert.deepEqual(secrets.keyEncryptionKeys, { present: keyEncryptionKey, previous: null });
    assert.equal(secrets.cursorKeys.present.length, 32);
    assert.notDeepEqual(secrets.cursorKeys.present, loginTokenKey);
    assert.deepEqual(await readdir(dataDir), []);
  }));

test('with s3 a missing secret stops the start with a sentence that names it', () =>
  inFolder(async (dataDir) => {
    const loginTokenKey = new Uint8Array(32);

    await assert.rejects(
      loadSecrets({ ...none, dataDir, objectStore: 's3', loginTokenKey }),
      (error: unknown) =>
        error instanceof SecretsError &&
        error.message.startsWith('TIDEBASE_KEY_ENCRYPTION_KEY must be set with TIDEBASE_OBJECT_STORE=s3'),
    );
  }));

test('a damaged secret is not replaced by a new one', () =>
  inFolder(async (dataDir) => {
    await loadSecrets({ dataDir, objectStore: 'fs', ...none });
    const file = join(dataDir, 'secrets', 'key-encryption-key');
    await writeFile(file, 'short\n');

    await assert.rejects(loadSecrets({ dataDir, objectStore: 'fs', ...none }), SecretsError);
    assert.equal(await readFile(file, 'utf8'), 'short\n');
  }));

test('a secret is exactly 32 bytes of standard base64', () => {
  const bytes = Buffer.alloc(32, 9);

  assert.deepEqual(parseSecret(bytes.toString('base64')), bytes);
  for (const wrong of ['', 'abc', bytes.toString('hex'), Buffer.alloc(31).toString('base64')]) {
    assert.equal(parseSecret(wrong), null);
  }
});

test('previous keys come along, and the cursor key of the previous login key', () =>
  inFolder(async (dataDir) => {
    const key = (byte: number) => new Uint8Array(32).fill(byte);
    const given = { ...none, dataDir, objectStore: 's3' } as const;
    const before = await loadSecrets({ ...given, loginTokenKey: key(1), keyEncryptionKey: key(2) });

    const rotated = await loadSecrets({
      ...given,
      loginTokenKey: key(3),
      keyEncryptionKey: key(4),
      previousLoginTokenKey: key(1),
      previousKeyEncryptionKey: key(2),
    });

    assert.deepEqual(rotated.loginTokenKeys, { present: key(3), previous: key(1) });
    assert.deepEqual(rotated.keyEncryptionKeys, { present: key(4), previous: key(2) });
    assert.deepEqual(rotated.cursorKeys.previous, before.cursorKeys.present);
    assert.notDeepEqual(rotated.cursorKeys.present, before.cursorKeys.present);
  }));
