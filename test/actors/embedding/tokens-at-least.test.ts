import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readVocabulary } from '../../../actors/embedding/model-weights.ts';
import { plainSentence } from '../../../actors/embedding/plain-sentence.ts';
import { tokensAtLeast } from '../../../actors/embedding/tokens-at-least.ts';
import { UnigramTokenizer } from '../../../actors/embedding/unigram-tokenizer.ts';
import { limits } from '../../../protocol/limits.ts';

test('no text has fewer tokens than it is said to have at least', async () => {
  const vocabulary = await readVocabulary();
  const tokenizer = new UnigramTokenizer(vocabulary);
  const words = vocabulary.map(([piece]) => piece.replaceAll('▁', ' '));
  const part = fc.oneof(
    fc.constantFrom(...words),
    fc.constantFrom(' ', '\n', '\u00a0', '\u0301', '´', 'ﾞ', '一', '𝒂', '.', 'K', 'A'),
    fc.string({ unit: 'binary' }),
  );
  const texts = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(''));

  fc.assert(
    fc.property(texts, (text) => {
      const tokens = tokenizer.encode(plainSentence(text), limits.embeddedTokensMax).length;
      assert.ok(tokensAtLeast([text]) <= tokens, JSON.stringify(text));
    }),
    { numRuns: 2_000 },
  );
});

test('of English most tokens are known before it is cut into them', () => {
  assert.equal(tokensAtLeast(['The tide turns at noon,  and the boats come in.', '']), 10);
  assert.equal(tokensAtLeast(['-- 一 a\u0301']), 0);
  assert.equal(tokensAtLeast(['a '.repeat(limits.embeddedTextBytesMax)]), limits.embeddedTextBytesMax / 2);
});
