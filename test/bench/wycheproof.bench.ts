/**
 * Runs the vectors of C2SP/wycheproof that fit our code, from a folder with its `testvectors_v1`:
 *
 *   node dist/test/bench/wycheproof.bench.js FOLDER
 *
 * - AES-GCM: those that are of an envelope's form (a key of 256 bits, a nonce of 96, a tag of 128), sealed and opened.
 * - JSON Web Signatures, keys and encryption: every token, of whatever algorithm, must be refused as a login token under its
 *   own secret and, where its key is none, under the public key's text as the secret, which is the classic confusion.
 *   Right ones are refused too, for they are no login tokens; so these vectors show that nothing gets in, and no more.
 *
 * Fails at the first vector that comes out otherwise. Prints how many ran, and how many were left out and why.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decryptBytes, encryptBytes } from '../../src/accounts/envelope.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { loginTokens, verifyLoginToken } from '../../src/identity/login-token.ts';
import { alone } from '../support/key-rings.ts';

interface GcmTest {
  readonly tcId: number;
  readonly key: string;
  readonly iv: string;
  readonly aad: string;
  readonly msg: string;
  readonly ct: string;
  readonly tag: string;
  readonly result: 'valid' | 'invalid' | 'acceptable';
}

interface JwsGroup {
  readonly private?: JwkOrSet;
  readonly public?: JwkOrSet;
  readonly tests: readonly { readonly tcId: number; readonly jws?: string; readonly jwe?: string }[];
}

interface JwkOrSet {
  readonly k?: string;
  readonly keys?: readonly { readonly k?: string }[];
}

const [folder] = process.argv.slice(2);
assert.ok(folder !== undefined, 'name the folder that has testvectors_v1');

const vectorsOf = <Group>(name: string): readonly Group[] =>
  JSON.parse(readFileSync(join(folder, 'testvectors_v1', `${name}.json`), 'utf8')).testGroups;

function runGcm(): void {
  let [ran, otherKeys, otherNonces] = [0, 0, 0];
  for (const { keySize, ivSize, tagSize, tests } of vectorsOf<{
    readonly keySize: number;
    readonly ivSize: number;
    readonly tagSize: number;
    readonly tests: readonly GcmTest[];
  }>('aes_gcm_test')) {
    if (keySize !== 256) otherKeys += tests.length;
    else if (ivSize !== 96 || tagSize !== 128) otherNonces += tests.length;
    else {
      for (const test of tests) checkGcm(test);
      ran += tests.length;
    }
  }
  const leftOut = `${otherKeys} have keys of 128 or 192 bits, ${otherNonces} nonces that are not of 96 bits`;
  process.stdout.write(`AES-GCM: ${ran} ran; left out: ${leftOut}\n`);
}

function checkGcm({ tcId, key, iv, aad, msg, ct, tag, result }: GcmTest): void {
  const [secret, nonce, context, plain] = [key, iv, aad, msg].map((text) => Buffer.from(text, 'hex'));
  assert.ok(secret !== undefined && nonce !== undefined && context !== undefined && plain !== undefined);
  const sealed = Buffer.from(iv + ct + tag, 'hex');
  const opened = decryptBytes(secret, sealed, context);
  if (result !== 'valid') return assert.equal(opened, null, `vector ${tcId} opens`);
  assert.deepEqual(opened, plain, `vector ${tcId} does not open`);
  const made = encryptBytes(secret, plain, context, { bytes: () => nonce });
  assert.deepEqual(Buffer.from(made), sealed, `vector ${tcId} is sealed otherwise`);
}

async function runTokens(name: string): Promise<void> {
  let [ran, refusals] = [0, 0];
  for (const { private: own, public: shown, tests } of vectorsOf<JwsGroup>(name)) {
    const secrets = secretsOf(own, shown);
    for (const { tcId, jws, jwe } of tests) {
      const token = jws ?? jwe ?? assert.fail(`vector ${tcId} of ${name} has no token`);
      for (const secret of secrets) {
        const tokens = loginTokens(alone(secret), systemClock, systemRandom);
        const text = typeof token === 'string' ? token : JSON.stringify(token);
        assert.equal(await verifyLoginToken(tokens, text), null, `vector ${tcId} of ${name} is let in`);
        refusals += 1;
      }
      ran += 1;
    }
  }
  process.stdout.write(`${name}: ${ran} ran, ${refusals} refused, 0 let in\n`);
}

/** Symmetric keys as they are, and every key as text. */
function secretsOf(...keys: readonly (JwkOrSet | undefined)[]): readonly Buffer[] {
  const known = keys.filter((key): key is JwkOrSet => key !== undefined);
  const symmetric = known
    .flatMap((key) => [key, ...(key.keys ?? [])])
    .flatMap(({ k }) => (k === undefined ? [] : [k]));
  return [
    ...symmetric.map((k) => Buffer.from(k, 'base64url')),
    ...known.map((key) => Buffer.from(JSON.stringify(key))),
  ].filter(({ length }) => length > 0);
}

runGcm();
for (const name of [
  'json_web_signature_test',
  'json_web_key_test',
  'json_web_encryption_test',
  'json_web_crypto_test',
])
  await runTokens(name);
