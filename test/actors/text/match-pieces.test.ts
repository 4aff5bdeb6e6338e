import assert from 'node:assert/strict';
import { test } from 'node:test';
import { staysWithinLine } from '../../../actors/text/line-pieces.ts';
import { matchBytesMax } from '../../../actors/text/match-length.ts';
import { leastPieceBytes, nextPiece } from '../../../actors/text/match-pieces.ts';
import { findInPiece } from '../../../actors/text/match-task.ts';
import { parseRegex } from '../../../actors/text/parse-regex.ts';
import { compileMatcher, type Match, type Matcher } from '../../../actors/text/regex.ts';
import { afterMatch } from '../../../actors/text/snippet.ts';
import { randomPattern, randomText } from '../../support/patterns.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const rounds = Number(process.env.PIECE_ROUNDS ?? 1_500);

type Place = readonly [start: number, end: number];

/** Every match, one after the other, as `find` tells them. */
function allPlaces(text: Buffer, find: (from: number) => Match | null): Place[] {
  const places: Place[] = [];
  for (let from = 0; from <= text.length; ) {
    const match = find(from);
    if (match === null) break;
    places.push([match.start, match.end]);
    from = afterMatch(text, match);
  }
  return places;
}

interface Known {
  readonly matcher: Matcher;
  readonly bytesMax: number;
  readonly byLines: boolean;
}

function findByPieces(text: Buffer, known: Known, begin: number, more: number): Match | null {
  for (let from = begin; from <= text.length; ) {
    const left = { start: from, end: text.length };
    const piece = nextPiece(text, left, known, leastPieceBytes(text, left, known) + more);
    assert.ok(piece !== null && piece.below > from, 'there is a piece, and it goes on');
    const { start, end, below } = piece;
    const inPiece = { from: from - start, below: below - start };
    const match = findInPiece(known.matcher, text.subarray(start, end), { ...inPiece, isTest: false });
    const isMatch =
      findInPiece(known.matcher, text.subarray(start, end), { ...inPiece, isTest: true }) !== null;
    assert.equal(isMatch, match !== null);
    if (match !== null) return { ...match, start: match.start + start, end: match.end + start };
    from = below;
  }
  return null;
}

function compiled(pattern: string): Known | null {
  try {
    const node = parseRegex(pattern);
    return {
      matcher: compileMatcher(pattern, true),
      bytesMax: matchBytesMax(node),
      byLines: staysWithinLine(node),
    };
  } catch {
    return null;
  }
}

function assertSame(pattern: string, known: Known, text: Buffer, more: number): number {
  const whole = allPlaces(text, (from) => known.matcher.find(text, from));
  const pieces = allPlaces(text, (from) => findByPieces(text, known, from, more));
  assert.deepEqual(pieces, whole, `seed ${seed}: ${pattern} on ${JSON.stringify(text.toString())}, ${more}`);
  return whole.length;
}

const corners = [
  '\\b',
  '\\B',
  '\\ba{2}\\b',
  '^',
  '$',
  '^a|b$',
  '\\Aab?',
  '(?:b|ab)\\z',
  '(?m)^',
  '(?m)$',
  '(?m)^a?b?$',
  '(?m)$\\n^',
  '(?ms)b$.^a',
  '(?m)^\\n',
  'a|ab|abc',
  '(?:ab|a)(?:c|bcd)?',
  'a{1,3}?',
  'a??b',
  '(?U)a{1,4}',
  '',
  '(?:)',
  'b?',
  '(?s).',
  '(?s).{3}',
  '(?s).{0,5}b',
  '[^a]{2}',
  'é.?潮',
  '\\pL\\PL',
  '(a)(b)?(?:c)',
  '(|a){3}b',
  '(?:\\b|a)b',
  '\\C',
  '(?i)[k-s]{2}\\b',
];

test('windows and lines find the matches that one call for the whole text finds', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const alphabets = [
    ['a', 'b'],
    ['a', 'b', 'c', ' ', '\n'],
    ['a', 'b', 'é', '潮', '😀', '\n', '_', '.'],
    ['\n', 'a', '\r'],
  ];
  let matches = 0;
  let bounded = 0;
  for (let round = 0; round < rounds; round++) {
    const isCorner = round % 3 === 0;
    const letters = pick(alphabets);
    const text = isCorner
      ? Array.from({ length: Math.floor(random() * 80) }, () => pick(letters)).join('')
      : Array.from({ length: 4 }, () => randomText(random)).join(pick(['', '\n', ' ']));
    const pattern = isCorner ? pick(corners) : randomPattern(random, text);
    const known = compiled(pattern);
    if (known === null) continue;
    if (Number.isFinite(known.bytesMax)) bounded++;
    const utf8 = Buffer.from(text);
    for (const more of [0, Math.floor(random() * 20)]) matches += assertSame(pattern, known, utf8, more);
  }
  assert.ok(bounded > rounds / 3, `${bounded} of ${rounds} were judged by windows`);
  assert.ok(matches > rounds, `${matches} matches`);
});

test('a piece is no longer than it may be, but for a character on either side', () => {
  const text = Buffer.from(`${'ab潮é'.repeat(300)}\n${'x'.repeat(700)}\n${'y\n'.repeat(400)}`);
  for (const pattern of ['a[^x]{20}b', '[a-z]{3}', 'x+', '(?s)x.{9}y', '\\n']) {
    const known = compiled(pattern) as Known;
    for (const bytes of [200, 1_000, 1_500]) {
      for (let from = 0; from <= text.length; ) {
        const piece = nextPiece(text, { start: from, end: text.length }, known, bytes);
        if (piece === null) break;
        assert.ok(piece.end - piece.start <= bytes + 12, `${pattern}: ${piece.end - piece.start}`);
        assert.ok(piece.start <= from && piece.below > from);
        from = piece.below;
      }
    }
  }
});
