import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  keyHint,
  openProviderKey,
  type ProviderKeyEnvelope,
  ProviderKeyEnvelopeError,
  sealProviderKey,
} from '../../../src/accounts/provider-key-envelope.ts';
import { packMessage, unpackMessage } from '../../../src/base/msgpack.ts';
import { systemRandom } from '../../../src/base/random.ts';

const serverKey = new Uint8Array(32).fill(7);
const owner = { tenantId: 281_474_976_710_655, provider: 'openai' };
const key = 'sk-proj-0123456789abcdef-ä漢🦊';
const seal = () => sealProviderKey(serverKey, owner, key, systemRandom);
const refused = (work: () => unknown) => assert.throws(work, ProviderKeyEnvelopeError);

test('what was sealed opens, also after it was stored', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (secret) => {
      const sealed = sealProviderKey(serverKey, owner, secret, systemRandom);
      const stored = unpackMessage(packMessage(sealed)) as ProviderKeyEnvelope;

      assert.equal(openProviderKey(serverKey, owner, stored), secret);
    }),
  );
});

test('an envelope of this version opens for ever', () => {
  let byte = 0;
  const counted = { bytes: (length: number) => Uint8Array.from({ length }, () => byte++) };
  const envelope = sealProviderKey(serverKey, { tenantId: 42, provider: 'mistral' }, 'secret', counted);

  assert.equal(
    Buffer.from(envelope.wrappedKey).toString('base64'),
    'ICEiIyQlJicoKSorbHAav+7rPNzq7UV6NcuUa16uxgUKClK4wd/3TC8WkeUhYNPSnO9IvTvjs8S6qhdt',
  );
  assert.equal(
    Buffer.from(envelope.sealed).toString('base64'),
    'LC0uLzAxMjM0NTY3IZhGZAflfW4L7n/AKReKwwUHqL3naQ==',
  );
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
  refused(() => openProviderKey(new Uint8Array(32).fill(8), owner, envelope));
  refused(() => openProviderKey(serverKey, owner, { ...envelope, version: 2 as 1 }));
  refused(() =>
    openProviderKey(serverKey, owner, {
      ...envelope,
      sealed: envelope.wrappedKey,
      wrappedKey: envelope.sealed,
    }),
  );
});

test('an error says nothing of the key', () => {
  const other = new Uint8Array(32);
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
