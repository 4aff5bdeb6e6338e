import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likePattern, matchDictionary } from '../../../../actors/sql/expression/like.ts';
import { dictionaryOf } from '../../../../actors/sql/frame/column.ts';
import { limits } from '../../../../protocol/limits.ts';
import { seededRandom } from '../../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const like = (strings: readonly string[], pattern: string, escapedBy: string | null = null): boolean[] =>
  [...matchDictionary(likePattern(pattern, escapedBy), dictionaryOf(strings))].map((is) => is === 1);

/** Whether each beginning of the text is like each beginning of the pattern, character by character. */
function naiveLike(text: string, pattern: string, escapedBy: string | null): boolean {
  const characters = [...text];
  const wanted: { readonly kind: 'any' | 'one' | 'this'; readonly character: string }[] = [];
  const written = [...pattern];
  for (let at = 0; at < written.length; at++) {
    const character = written[at] as string;
    if (character === escapedBy && at + 1 < written.length)
      wanted.push({ kind: 'this', character: written[++at] as string });
    else wanted.push({ kind: character === '%' ? 'any' : character === '_' ? 'one' : 'this', character });
  }
  let row = [true, ...characters.map(() => false)];
  for (const { kind, character } of wanted) {
    const next = [kind === 'any' && row[0] === true];
    for (const [at, one] of characters.entries())
      next.push(
        kind === 'any'
          ? next[at] === true || row[at + 1] === true
          : row[at] === true && (kind === 'one' || one === character),
      );
    row = next;
  }
  return row.at(-1) === true;
}

test('LIKE is what its naive twin says, of texts and patterns by chance', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const textOf = (letters: readonly string[], length: number) =>
    Array.from({ length: Math.floor(random() * length) }, () => pick(letters)).join('');
  let matching = 0;
  for (let round = 0; round < 6_000; round++) {
    const letters = pick([['a'], ['a', 'b'], ['a', 'b', 'é', '潮', '😀', '\n'], ['é', 'ê', '!', '%', '_']]);
    const strings = Array.from({ length: 8 }, () => textOf(letters, pick([4, 30, 120])));
    // A part of one of the strings, so that it may match, with wildcards in it.
    const part = [...pick(strings)].slice(Math.floor(random() * 3)).slice(0, pick([2, 5, 40, 100]));
    const places = pick([0, 0.1, 0.4]);
    const inner = part.map((one) => (random() < places ? pick(['%', '_', '_']) : one)).join('');
    const pattern = `${pick(['', '%', '_', '%_', '%%'])}${inner}${pick(['', '%', '_', '_%'])}`;
    const escapedBy = pick([null, null, '!', '%', '_']);

    const found = like(strings, pattern, escapedBy);

    const naive = strings.map((text) => naiveLike(text, pattern, escapedBy));
    assert.deepEqual(found, naive, `seed ${seed}: ${JSON.stringify({ strings, pattern, escapedBy })}`);
    matching += naive.filter((is) => is).length;
  }
  assert.ok(matching > 6_000 && matching < 42_000, `seed ${seed}: ${matching}`);
});

test('a text that is looked for natively is found in one string, not across two', () => {
  assert.deepEqual(like(['xa', 'bx', 'ab', 'a', 'b', 'aab', ''], '%ab%'), [
    false,
    false,
    true,
    false,
    false,
    true,
    false,
  ]);
  assert.deepEqual(like(['aaa', 'aaaa', 'aa', 'aaaaa'], '%aaaa%'), [false, true, false, true]);
  const long = 'ab'.repeat(200);
  assert.deepEqual(like([long, `x${long}`, long.slice(1), `${long.slice(1)}b`], `%${long}%`), [
    true,
    true,
    false,
    false,
  ]);
});

test('wildcards stand for characters, in texts of any length', () => {
  const text = `${'潮'.repeat(40)}b${'é'.repeat(200)}`;
  assert.deepEqual(like([text], `%b${'_'.repeat(200)}`), [true]);
  assert.deepEqual(like([text], `%b${'_'.repeat(199)}é%`), [true]);
  assert.deepEqual(like([text], `%b${'_'.repeat(200)}é%`), [false]);
  assert.deepEqual(like([text], `%_b${'_'.repeat(33)}é_%é`), [true]);
  assert.deepEqual(like(['a\nb', 'a\ud800b', 'ab'], 'a_b'), [true, true, false]);
  assert.deepEqual(like(['xa\ud800bx'], '%_\ud800b%'), [true]);
});

test('no pattern takes more steps for a byte than its longest part has words of 32 characters', () => {
  const max = limits.patternCharactersMax;
  const patterns = [
    `%_${'a'.repeat(max - 3)}%`,
    '%a_'.repeat(max / 4),
    `%${'a'.repeat(max - 2)}%`,
    '_'.repeat(max),
    `%${'_'.repeat(max - 2)}%`,
  ];
  for (const pattern of patterns) assert.ok(likePattern(pattern, null).stepsPerByte <= Math.ceil(max / 32));
  // A hundred strings of 16 KB: what took 38 s when each place of a text was compared anew.
  const strings = Array.from({ length: 100 }, (_, at) => `${'a'.repeat(16_000)}${at}`);
  for (const pattern of [`%_${'a'.repeat(500)}b%`, `%${'a'.repeat(900)}b%`, `%a%${'a_'.repeat(400)}b%`])
    assert.ok(!like(strings, pattern).includes(true));
});
