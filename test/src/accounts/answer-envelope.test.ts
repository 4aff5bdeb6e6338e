import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openAnswer, sealAnswer } from '../../../src/accounts/answer-envelope.ts';
import { sealProviderKey } from '../../../src/accounts/provider-key-envelope.ts';
import { packMessage, unpackMessage } from '../../../src/base/msgpack.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { alone } from '../../support/key-rings.ts';

const serverKey = alone(new Uint8Array(32).fill(7));
const owner = { tenantId: 7, keyDigest: 'a'.repeat(64), requestDigest: 'b'.repeat(64) };
const answer = '{"key":"tb_secret ä漢"}';
const sealed = () => sealAnswer(serverKey, owner, answer, systemRandom);

test('an answer opens where it was sealed, also after it was stored, and does not show itself', () => {
  const stored = packMessage(sealed());

  const opened = openAnswer(serverKey, owner, unpackMessage(stored) as ReturnType<typeof sealed>);

  assert.equal(opened, answer);
  assert.equal(Buffer.from(stored).includes('tb_secret'), false);
});

test('it opens for no other tenant, key, request, server key or kind of secret, nor once damaged', () => {
  const envelope = sealed();
  const others = [
    { ...owner, tenantId: 8 },
    { ...owner, keyDigest: 'c'.repeat(64) },
    { ...owner, requestDigest: 'c'.repeat(64) },
  ];

  for (const other of others) assert.equal(openAnswer(serverKey, other, envelope), null);
  assert.equal(openAnswer(alone(new Uint8Array(32)), owner, envelope), null);
  assert.equal(openAnswer(serverKey, owner, { ...envelope, version: 3 as 1 }), null);
  const providerKey = sealProviderKey(serverKey, { tenantId: 7, provider: 'openai' }, 'sk', systemRandom);
  assert.equal(openAnswer(serverKey, owner, providerKey), null);
  for (const part of ['wrappedKey', 'sealed'] as const) {
    for (let at = 0; at < envelope[part].length; at++) {
      const spoilt = Uint8Array.from(envelope[part]);
      spoilt[at] = (spoilt[at] ?? 0) ^ 1;
      assert.equal(openAnswer(serverKey, owner, { ...envelope, [part]: spoilt }), null);
    }
  }
});
