import { hkdfSync } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeyRing } from '../accounts/key-ring.ts';
import { type Random, randomHex } from '../base/random.ts';

/**
 * The server's own secrets: given by the operator, or made at the first start and kept in `<data>/secrets/`. Servers on
 * a shared store must be given them: they have to agree, and losing one folder must not lose what they encrypt.
 */
export interface Secrets {
  /** Keys that sign login tokens, of 32 bytes each, as all secrets are. */
  readonly loginTokenKeys: KeyRing;
  readonly keyEncryptionKeys: KeyRing;
  /** Keys that sign cursors; derived from the login-token keys. */
  readonly cursorKeys: KeyRing;
}

export interface SecretsOptions {
  readonly dataDir: string;
  readonly objectStore: 'fs' | 's3';
  readonly loginTokenKey: Uint8Array | null;
  readonly keyEncryptionKey: Uint8Array | null;
  /** The keys before, accepted beside the present ones while keys are rotated. */
  readonly previousLoginTokenKey: Uint8Array | null;
  readonly previousKeyEncryptionKey: Uint8Array | null;
  readonly random: Random;
}

/** The server cannot start; the message is a sentence for the operator. */
export class SecretsError extends Error {
  override name = 'SecretsError';
}

export const secretBytes = 32;

export async function loadSecrets(options: SecretsOptions): Promise<Secrets> {
  const given = [
    ['TIDEBASE_LOGIN_TOKEN_KEY', options.loginTokenKey],
    ['TIDEBASE_KEY_ENCRYPTION_KEY', options.keyEncryptionKey],
  ] as const;
  const missing = given.filter(([, secret]) => secret === null).map(([name]) => name);
  if (options.objectStore === 's3' && missing.length > 0) {
    throw new SecretsError(
      `${missing.join(' and ')} must be set with TIDEBASE_OBJECT_STORE=s3, each to ${secretBytes} random bytes in ` +
        'base64: a key that exists only in one folder would be lost with it',
    );
  }
  const { random } = options;
  const folder = join(options.dataDir, 'secrets');
  const loginTokenKey = options.loginTokenKey ?? (await keptSecret(folder, 'login-token-key', random));
  const keyEncryptionKey =
    options.keyEncryptionKey ?? (await keptSecret(folder, 'key-encryption-key', random));
  const { previousLoginTokenKey: previous } = options;
  return {
    loginTokenKeys: { present: loginTokenKey, previous },
    keyEncryptionKeys: { present: keyEncryptionKey, previous: options.previousKeyEncryptionKey },
    cursorKeys: { present: cursorKeyOf(loginTokenKey), previous: previous && cursorKeyOf(previous) },
  };
}

function cursorKeyOf(loginTokenKey: Uint8Array): Uint8Array {
  return deriveKey(loginTokenKey, 'tidebase cursor v1');
}

/** The 32 bytes that a text in standard base64 stands for, or null. */
export function parseSecret(base64: string): Uint8Array | null {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(base64)) return null;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.length === secretBytes ? bytes : null;
}

export function deriveKey(key: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, new Uint8Array(0), purpose, secretBytes));
}

async function keptSecret(folder: string, name: string, random: Random): Promise<Uint8Array> {
  const file = join(folder, name);
  const kept = (await readIfThere(file)) ?? (await makeSecret(folder, file, random));
  const secret = parseSecret(kept.trim());
  if (secret === null) {
    throw new SecretsError(`${file} must hold ${secretBytes} bytes in base64: put the file back as it was`);
  }
  return secret;
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw new SecretsError(`${file} cannot be read`, { cause: error });
  }
}

/**
 * Written whole and synced under another name, then linked: a crash leaves no half secret, and of two servers that
 * start at once both end up with the one that was linked first.
 */
async function makeSecret(folder: string, file: string, random: Random): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomHex(random, 8)}.draft`;
  await writeSynced(draft, `${Buffer.from(random.bytes(secretBytes)).toString('base64')}\n`);
  try {
    await link(draft, file);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    await unlink(draft);
  }
  await syncFolder(folder);
  return await readFile(file, 'utf8');
}

async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
