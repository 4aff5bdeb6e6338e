import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Envelope } from '../../../protocol/stored-tenant.ts';
import { keyName } from '../../../src/accounts/key-ring.ts';
import {
  keyHint,
  openProviderKey,
  ProviderKeyEnvelopeError,
  resealProviderKey,
  sealProviderKey,
} from '../../../src/accounts/provider-key-envelope.ts';
import { packMessage, unpackMessage } from '../../../src/base/msgpack.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { decodeValue, encodeValue } from '../../../src/base/record.ts';
import { goldenBytes } from '../../support/golden.ts';
import { alone } from '../../support/key-rings.ts';

const serverKey = alone(new Uint8Array(32).fill(7));
const owner = { tenantId: 281_474_976_710_655, provider: 'openai' };
const key = 'sk-proj-0123456789abcdef-ä漢🦊';
const seal = () => sealProviderKey(serverKey, owner, key, systemRandom);
const refused = (work: () => unknown) => assert.throws(work, ProviderKeyEnvelopeError);

test('what was sealed opens, also after it was stored', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (secret) => {
      const sealed = sealProviderKey(serverKey, owner, secret, systemRandom);
      const stored = unpackMessage(packMessage(sealed)) as Envelope;

      assert.equal(openProviderKey(serverKey, owner, stored), secret);
    }),
  );
});

/** The envelope whose bytes are in `golden/`, sealed by chance that counts. */
function goldenEnvelope(): Envelope {
  let byte = 0;
  const counted = { bytes: (length: number) => Uint8Array.from({ length }, () => byte++) };
  return sealProviderKey(serverKey, { tenantId: 42, provider: 'mistral' }, 'secret', counted);
}

test('the bytes of an envelope are those of the golden file, and it names its key', () => {
  const made = encodeValue(goldenEnvelope());

  const golden = goldenBytes('envelope-v2.bin', made);

  assert.deepEqual(Buffer.from(made), golden);
  const { version, keyName: name } = goldenEnvelope();
  assert.deepEqual([version, name], [2, keyName(serverKey.present)]);
  assert.match(keyName(serverKey.present), /^[0-9a-f]{16}$/);
  assert.notEqual(keyName(new Uint8Array(32)), keyName(serverKey.present));
});

test('an envelope of each version opens for ever, one without a name with either key', () => {
  const other = new Uint8Array(32).fill(8);
  const rings = [
    serverKey,
    { present: serverKey.present, previous: other },
    { present: other, previous: serverKey.present },
  ];
  const place = { tenantId: 42, provider: 'mistral' };
  for (const version of [1, 2]) {
    const bytes = readFileSync(join(process.cwd(), `test/golden/envelope-v${version}.bin`));
    const envelope = decodeValue(bytes) as Envelope;
    assert.equal(envelope.version, version);

    for (const ring of rings) assert.equal(openProviderKey(ring, place, envelope), 'secret');
    const missing = /damaged, or TIDEBASE_KEY_ENCRYPTION_KEY is another/;
    const named =
      /a key that is neither TIDEBASE_KEY_ENCRYPTION_KEY nor TIDEBASE_KEY_ENCRYPTION_KEY_PREVIOUS/;
    assert.throws(() => openProviderKey(alone(other), place, envelope), version === 1 ? missing : named);
  }
});

test('what the previous key or the old version sealed is sealed anew with the present one, and nothing else is', () => {
  const present = new Uint8Array(32).fill(8);
  const rotated = { present, previous: serverKey.present };
  const place = { tenantId: 42, provider: 'mistral' };
  const old = readFileSync(join(process.cwd(), 'test/golden/envelope-v1.bin'));
  for (const envelope of [goldenEnvelope(), decodeValue(old) as Envelope]) {
    const renewed = resealProviderKey(rotated, place, envelope, systemRandom);

    assert.deepEqual([renewed.version, renewed.keyName], [2, keyName(present)]);
    assert.equal(openProviderKey(alone(present), place, renewed), 'secret');
    assert.equal(resealProviderKey(rotated, place, renewed, systemRandom), renewed);
    // What does not open stays as it is: the key that opens it may come back.
    const stranger = alone(new Uint8Array(32).fill(9));
    assert.equal(resealProviderKey(stranger, place, envelope, systemRandom), envelope);
  }
});

test('the same key is never sealed to the same bytes, and is not among them', () => {
  const [one, two] = [seal(), seal()];

  assert.notDeepEqual(one.sealed, two.sealed);
  assert.notDeepEqual(one.wrappedKey, two.wrappedKey);
  assert.equal(Buffer.from(packMessage(one)).includes('0123456789abcdef'), false);
});

test('an envelope with any byte changed, missing or added does not open', () => {
  const envelope = seal();
  for (const field of ['wrappedKey', 'sealed'] as const) {
    const bytes = envelope[field];
    const opens = (changed: Uint8Array) =>
      refused(() => openProviderKey(serverKey, owner, { ...envelope, [field]: changed }));

    for (let at = 0; at < bytes.length; at++) {
      for (const flip of [1, 128]) opens(bytes.map((byte, i) => (i === at ? byte ^ flip : byte)));
    }
    for (let length = 0; length < bytes.length; length++) opens(bytes.slice(0, length));
    opens(Buffer.concat([bytes, new Uint8Array(1)]));
    opens(seal()[field]);
  }
});

test('an envelope of another tenant, provider, version or key-encryption key does not open', () => {
  const envelope = seal();

  refused(() => openProviderKey(serverKey, { ...owner, tenantId: 1 }, envelope));
  refused(() => openProviderKey(serverKey, { ...owner, provider: 'cohere' }, envelope));
  refused(() => openProviderKey(alone(new Uint8Array(32).fill(8)), owner, envelope));
  refused(() => openProviderKey(serverKey, owner, { ...envelope, version: 3 as 1 }));
  refused(() =>
    openProviderKey(serverKey, owner, {
      ...envelope,
      sealed: envelope.wrappedKey,
      wrappedKey: envelope.sealed,
    }),
  );
});

test('an error says nothing of the key', () => {
  const other = alone(new Uint8Array(32));
  assert.throws(
    () => openProviderKey(other, owner, seal()),
    (error: Error) => !`${error.stack}`.includes('sk-proj') && error.cause === undefined,
  );
});

test('a hint shows the ends of a long key, and nothing of a short one', () => {
  assert.equal(keyHint('sk-proj-0123456789abcdefWXYZ'), 'sk-…WXYZ');
  assert.equal(keyHint('abcdefghijklmno'), 'ab…mno');
  assert.equal(keyHint('abcdefghijkl'), 'ab…kl');
  assert.equal(keyHint('abcdefghijk'), '…');
  assert.equal(keyHint(''), '…');
  for (let length = 0; length < 100; length++)
    assert.ok(keyHint('k'.repeat(length)).length - 1 <= length / 3, `${length}`);
});
