import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paraphrasePairs } from '../../load-tests/paraphrase-pairs.ts';
import { paraphraseRates } from '../../load-tests/paraphrases.ts';

/** Words that say nothing of a subject. */
const emptyWords = new Set(
  (
    'a about after again all an and any are aside at away be because been before but by can cannot could did do does down ' +
    'each either every for from get gets getting go goes going had has have he her him his how i if in into is it its ' +
    'keep keeps let make may me moved much must my never no not of off on one only or other our out over put putting ' +
    'should show so some somebody than that the their them then there they this through to too two until up us very was ' +
    'we were what when where which while who why will with without would you your cant between both'
  ).split(' '),
);

function contentWords(text: string): string[] {
  const words =
    text
      .toLowerCase()
      .replaceAll("'", '')
      .match(/[a-z0-9]+/g) ?? [];
  return words.filter((word) => !emptyWords.has(word));
}

test('no question has a word of its text, nor the beginning of one, so that no literal search finds it', () => {
  assert.ok(paraphrasePairs.length >= 60);
  for (const { query, text } of paraphrasePairs) {
    const words = contentWords(query);
    assert.ok(words.length > 0, query);
    for (const word of words) {
      const stem = word.slice(0, Math.max(3, Math.min(5, word.length)));
      const shared = contentWords(text).filter((other) => other === word || other.startsWith(stem));
      assert.deepEqual(shared, [], `${query} / ${text}: ${word}`);
    }
  }
});

test('the rates are those of the places by cosine', async () => {
  const pairs = ['a', 'b'].map((topic) => ({ topic, query: `q${topic}`, text: `t${topic}` }));
  const directions: Readonly<Record<string, readonly number[]>> = {
    qa: [1, 0],
    ta: [0.8, 0.6],
    qb: [0, 1],
    tb: [-1, 0],
    near: [0, 1],
  };
  const embed = async (texts: readonly string[]) =>
    Float32Array.from(texts.flatMap((text) => directions[text] ?? [0.6, 0.8]));

  const rates = await paraphraseRates(pairs, ['near', '1', '2', '3'], embed);

  assert.deepEqual(rates, { topOne: 0.5, topFive: 0.5, places: [1, 6] });
});
