import assert from 'node:assert/strict';
import { test } from 'node:test';
import RE2 from 're2';
import { patternInstructions } from '../../../actors/text/pattern-cost.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { writeOutText } from '../../../actors/text/quoted-text.ts';
import { MatchReplacer } from '../../../actors/text/replace-matches.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { judging } from '../../support/judging.ts';
import { randomPattern, randomText } from '../../support/patterns.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const rounds = Number(process.env.REPLACE_ROUNDS ?? 1_500);

function replacerOf(
  query: string,
  replacement: string,
  { bytesMax, cancelAfter }: { readonly bytesMax?: number; readonly cancelAfter?: number } = {},
) {
  const surroundings = judging({ isDue: true, ...(cancelAfter === undefined ? {} : { cancelAfter }) });
  const asked = { query, replacement, patterns: new QueryPatterns() };
  return { replacer: new MatchReplacer(asked, surroundings, bytesMax), ...surroundings };
}

/** RE2's own replacing of all matches, in one call. */
function replacedByRe2(query: string, replacement: string, text: Buffer): string {
  const template = replacement.replace(/\$|\\(\d|\\)/gu, (_, escaped: string | undefined) => {
    if (escaped === undefined) return '$$';
    return escaped === '\\' ? '\\' : escaped === '0' ? '$&' : `$${escaped}`;
  });
  return new RE2(writeOutText(query), 'g').replace(text, Buffer.from(template)).toString();
}

function groupsOf(query: string): number | null {
  try {
    return (new RE2(`${writeOutText(query)}|`).exec('')?.length ?? 1) - 1;
  } catch {
    return null;
  }
}

function isTooLarge(query: string): boolean {
  return patternInstructions(query) > limits.patternInstructionsMax;
}

const corners: readonly (readonly [query: string, replacement: string, text: string])[] = [
  ['a*', '-', 'baaac'],
  ['', '-', 'aé潮'],
  ['b|', '[\\0]', 'abb'],
  ['^', '>', 'a\nb'],
  ['(?m)^', '>', 'a\nb\n'],
  ['$', '<', 'a\n'],
  ['(?m)$', '<', 'a\n\n'],
  ['\\b', '|', 'ab cd'],
  ['(a)|(b)', '\\1\\2\\2', 'abc'],
  ['(a)(b)?', '<\\2\\1>', 'aab'],
  ['(.)(.)(.)(.)(.)(.)(.)(.)(.)', '\\9\\1', 'abcdefghij'],
  ['(?P<x>a)(?P<y>.)', '\\2', 'abac'],
  ['((a)|b)+', '\\1\\2', 'abab b'],
  ['x', '$1 $& $$ \\\\ \\x', 'axb'],
  ['(x)', '\\10', 'axb'],
  ['a', '', 'banana'],
  ['a', 'b', ''],
  ['', 'b', ''],
];

test('replacing match by match is what RE2 makes in one call', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const check = async (query: string, replacement: string, text: string) => {
    const expected = replacedByRe2(query, replacement, Buffer.from(text));
    const { replacer } = replacerOf(query, replacement);
    const what = `seed ${seed}: ${JSON.stringify({ query, replacement, text })}`;
    assert.equal(replacer.quickly(Buffer.from(text))?.toString() ?? expected, expected, what);
    assert.equal((await replacer.slowly(Buffer.from(text))).toString(), expected, what);
    return expected !== text;
  };
  for (const [query, replacement, text] of corners) await check(query, replacement, text);
  let changed = 0;
  for (let round = 0; round < rounds; round++) {
    const text = randomText(random).repeat(pick([1, 1, 3]));
    const query = random() < 0.2 ? pick(corners)[0] : randomPattern(random, text);
    const groups = groupsOf(query);
    if (groups === null || isTooLarge(query)) continue;
    const known = ['\\0', 'x', '$', '$1', '$&', '\\\\', 'é', '-', ...[1, 2, 3].map((group) => `\\${group}`)];
    const parts = known.filter((part) => !/^\\[1-3]$/.test(part) || Number(part[1]) <= groups);
    const replacement = Array.from({ length: Math.floor(random() * 4) }, () => pick(parts)).join(
      pick(['', ' ']),
    );
    if (await check(query, replacement, text)) changed++;
  }
  assert.ok(changed > rounds / 4, `${changed} of ${rounds}`);
});

test('texts are replaced in one call only where it can be neither long nor large', async () => {
  const text = Buffer.from('ab'.repeat(8_000));
  const quick = (query: string, replacement: string, length = text.length) =>
    replacerOf(query, replacement).replacer.quickly(text.subarray(0, length)) !== null;
  assert.ok(quick('a', 'x'), 'a match is found where it ends');
  assert.ok(quick('^https?://(?:www\\.)?([^/]+)/.*$', '\\1', 2_000), 'there is one match at most');
  assert.ok(!quick('a.*?c|b', 'x'), 'each search may read to the end');
  assert.ok(quick('a.*?c|b', 'x', 300));
  assert.ok(!quick('(?:a?){999}(?:b?){999}c', 'x', 1_000));
  assert.ok(!quick('[ab]', '\\0'.repeat(500)), '8 MB would come of it');

  const { replacer, turnsGiven, tasks } = replacerOf('a.*?c|b', 'x');
  assert.equal((await replacer.slowly(text)).toString(), 'ax'.repeat(8_000));
  assert.ok(turnsGiven() >= 8_000, 'others have their turn between two matches');
  assert.equal(tasks.length, 0);
});

test('output is looked at after each match, so that it never grows far beyond what fits', async () => {
  const text = Buffer.alloc(1_500_000, 'a');
  for (const [query, replacement] of [
    ['(?s).*', '\\0'.repeat(500)],
    ['a', '\\0'.repeat(500)],
    ['(?s)(.*)', '\\1'.repeat(500)],
    ['', 'x'.repeat(1_000)],
  ] as const) {
    const { replacer } = replacerOf(query, replacement);
    assert.equal(replacer.quickly(text), null);
    const before = process.memoryUsage().arrayBuffers;
    assert.equal(await replacer.slowly(text), 'too-large', `${query} ${replacement.slice(0, 4)}`);
    assert.ok(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024);
  }
  const fits = replacerOf('(?s).*', '\\0\\0', { bytesMax: 3_000_000 });
  assert.equal((await fits.replacer.slowly(text)).length, 3_000_000);
});

test('finds of a costly pattern are made elsewhere, piece by piece, until nobody waits any more', async () => {
  const text = Buffer.from('ab'.repeat(8_000));
  const { replacer, tasks, charged } = replacerOf('a[ab]{900}c', 'x', { cancelAfter: 4 });
  assert.equal(await replacer.slowly(text), 'late');
  assert.equal(tasks.length, 4);
  assert.equal(charged(), 4);
});

test('a pattern that may take longer than a second for a text is refused, and judged for a short one', async () => {
  // Of the reference attack: each of a thousand places may be the next one.
  const query = `${'(?:a?){999}(?:b?){999}'.repeat(4)}c*`;
  const { replacer } = replacerOf(query, 'x');
  const text = Buffer.from('ab'.repeat(8_000));
  await assert.rejects(
    replacer.slowly(text),
    (error) => error instanceof ApiError && /longer than 1 s for 1\d KB of a text/.test(error.message),
  );
  assert.equal((await replacer.slowly(Buffer.from('dd'))).toString(), 'xdxdx');
});

test('a group that a replacement names and the pattern does not have is refused', () => {
  for (const [query, replacement, says] of [
    ['a(b)', '\\2', /names "\\2", and the pattern has one group/],
    ['ab', '\\1', /has no groups: put what is wanted in parentheses/],
    ['(a)(?:b)(?P<n>c)[(]\\(\\Q(\\E', '\\3', /has 2 groups/],
  ] as const)
    assert.throws(
      () => replacerOf(query, replacement),
      (error) => error instanceof ApiError && error.code === 'invalid' && says.test(error.message),
    );
});

test('groups that nobody asks for cost nothing, wherever they stand', async () => {
  const query = `(?:${'()'.repeat(300)}[ab])*(b)`;
  const { replacer } = replacerOf(query, '\\0');
  assert.throws(
    () => replacerOf('(?P<n>a)(?P<n>b)', 'x'),
    /RE2/,
    'RE2 still judges the pattern as it was given',
  );
  const text = Buffer.from('ab'.repeat(100));
  assert.equal((await replacer.slowly(text)).toString(), text.toString());
  const last = replacerOf(query, `\\0`);
  assert.equal((await last.replacer.slowly(Buffer.from('abc'))).toString(), 'abc');
});
