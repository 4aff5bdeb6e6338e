import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileMatcher } from '../../../actors/text/regex.ts';
import {
  firstLineOf,
  linesAfterFirst,
  linesAround,
  matchPlace,
  snippetOf,
} from '../../../actors/text/snippet.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { seededRandom } from '../../support/segments.ts';

const matches = (query: string, text: string, isRegex = false) =>
  compileMatcher(query, isRegex).test(Buffer.from(text));

function hit(query: string, text: string, isRegex = false) {
  const bytes = Buffer.from(text);
  const found = compileMatcher(query, isRegex).find(bytes, 0);
  return found === null ? null : snippetOf(bytes, matchPlace(bytes, found));
}

test('every ASCII character is searched for literally', () => {
  for (let code = 0; code < 128; code++) {
    const character = String.fromCharCode(code);
    assert.equal(matches(character, `a${character}b`), true, `U+${code.toString(16)}`);
    assert.equal(matches(`x${character}y`, `..x${character}y..`), true);
    const other = String.fromCharCode((code + 1) % 128);
    const isSame = other.toLowerCase() === character.toLowerCase();
    assert.equal(
      matches(`x${character}y`, `x${other}y`),
      isSame,
      `U+${code.toString(16)} against its neighbour`,
    );
  }
  assert.equal(matches('\\d+.*(a|b)[c]{2}^$?', 'say \\d+.*(a|b)[c]{2}^$? twice'), true);
  assert.equal(matches('.', 'a'), false);
  assert.equal(matches('\\Qa\\E', 'a'), false);
});

test('quoted text and classes are read as RE2 reads them, whatever they look like to JavaScript', () => {
  const quoted = ['a/b', '/', '\\u0041', '\\cA', '(?<n>', '\\', 'a\\', '.*', 'é/ü', '\u0000'];
  for (const text of quoted) {
    assert.equal(matches(`^\\Q${text}\\E$`, text, true), true, text);
    assert.equal(matches(`\\Q${text}`, `x${text}`, true), true, text);
    assert.equal(matches(`(?:\\Q${text}\\E){2}`, text, true), false, text);
  }
  assert.equal(matches('^\\Qa/\\E+$', 'a///', true), true);
  assert.equal(matches('^a+\\Q\\E+$', 'aaa', true), true);
  for (const character of ['(', '?', '<']) assert.equal(matches('^[(?<]$', character, true), true);
  for (const character of ['P', '\\', '/']) assert.equal(matches('^[(?<]$', character, true), false);
  for (const character of ['(', '?', '<', ']', 'a'])
    assert.equal(matches('^[](?<[:alpha:]]$', character, true), true);
  assert.equal(matches('^[^](?<]$', 'P', true), true);
});

test('literals ignore case, in every script, as RE2 folds it', () => {
  assert.equal(matches('GRÖSSE', 'die grösse'), true);
  assert.equal(matches('ΣΊΣΥΦΟΣ', 'σίσυφος'), true);
  // The Kelvin sign and the long s fold to k and s.
  assert.equal(matches('k', '\u212a'), true);
  assert.equal(matches('\u212a', 'K'), true);
  assert.equal(matches('mess', 'me\u017f\u017f'), true);
  assert.equal(matches('潮汐', '海の潮汐表'), true);
  assert.equal(matches('ß', 'SS'), false);
});

test('offsets and what they show agree for folded letters of other lengths', () => {
  const found = hit('ask', 'nichts a\u017f\u212a mehr');

  assert.deepEqual([found?.match, found?.start, found?.end], ['a\u017f\u212a', 7, 7 + 1 + 2 + 3]);
});

test('a regex is case-sensitive unless it says otherwise', () => {
  assert.deepEqual([matches('Tide', 'tide', true), matches('(?i)Tide', 'tide', true)], [false, true]);
});

test('a pattern that RE2 does not take is 422, whatever is wrong with it', () => {
  const wrong = [
    '(',
    '[a',
    'a{2,1}',
    '(?<=a)b',
    '\\1',
    'a**',
    '(?P<n',
    'x'.repeat(limits.patternCharactersMax + 1),
    '(((a{1000}){1000}){1000})',
  ];
  for (const pattern of wrong) {
    assert.throws(
      () => compileMatcher(pattern, true),
      (error) => error instanceof ApiError && error.status === 422,
      pattern.slice(0, 40),
    );
  }
});

test('literals of the largest size match, whatever they consist of', () => {
  const random = seededRandom(70);
  for (const alphabet of [
    'abcXYZ',
    '.\\ ()[]{}^$|?*+',
    'kKsS',
    'ßäÖ',
    'σΣς',
    '潮汐表',
    '😀😁',
    '\u0000\u0001',
  ]) {
    const characters = [...alphabet];
    let text = '';
    // Chosen by chance: a literal of one character over and over costs RE2 the square of its length.
    while (Buffer.byteLength(text) < limits.literalBytesMax - 4)
      text += characters[Math.floor(random() * characters.length)];

    const matcher = compileMatcher(text, false);

    assert.equal(matcher.test(Buffer.from(`<${text}>`)), true, alphabet);
    assert.equal(matcher.test(Buffer.from(text.slice(0, -2))), false, alphabet);
  }
  assert.throws(() => compileMatcher('a'.repeat(limits.literalBytesMax + 1), false), { code: 'invalid' });
});

test('text with NUL bytes is text', () => {
  const found = hit('b\u0000c', 'a\u0000b\u0000c\nd');

  assert.deepEqual([found?.match, found?.line, found?.start], ['b\u0000c', 'a\u0000b\u0000c', 2]);
});

test('a match at the end, in the middle and of nothing has its line', () => {
  const text = 'first\nsecond line\nthird';
  const cases = [
    ['third$', 'third', 'third', 3, 18, 23],
    ['cond l', 'cond l', 'second line', 2, 8, 14],
    ['^', '', 'first', 1, 0, 0],
    ['(?m)d$', 'd', 'third', 3, 22, 23],
    ['\\z', '', 'third', 3, 23, 23],
    ['line\\nth', 'line\nth', 'second line', 2, 13, 20],
    ['\\n', '\n', 'first', 1, 5, 6],
  ] as const;
  for (const [pattern, match, line, lineNumber, start, end] of cases)
    assert.deepEqual(hit(pattern, text, true), { match, line, lineNumber, start, end }, pattern);
});

test('a line ends before CR LF', () => {
  assert.deepEqual(hit('b', 'a\r\nb x\r\nc'), { match: 'b', line: 'b x', lineNumber: 2, start: 3, end: 4 });
  assert.equal(hit('c', 'a\r\nb\r\nc\r')?.line, 'c');
  assert.equal(hit('\\r', 'abc\r\nd', true)?.line, 'abc');
  assert.equal(hit('a', 'a\rb')?.line, 'a\rb');
});

test('an empty text, and an empty match in it', () => {
  assert.deepEqual(hit('^$', '', true), { match: '', line: '', lineNumber: 1, start: 0, end: 0 });
  assert.equal(hit('a', ''), null);
  assert.deepEqual(firstLineOf(Buffer.from('')), { match: '', line: '', lineNumber: 1, start: 0, end: 0 });
  assert.equal(firstLineOf(null).line, '');
});

test('the first line is the first that is not blank', () => {
  const line = (text: string) => [
    firstLineOf(Buffer.from(text)).line,
    firstLineOf(Buffer.from(text)).lineNumber,
  ];

  assert.deepEqual(line('\n \r\n\t\n  here \nnext'), ['  here ', 4]);
  assert.deepEqual(line('only'), ['only', 1]);
  assert.deepEqual(line('\r\nx\r\n'), ['x', 2]);
  assert.deepEqual(line(' \n \n'), ['', 1]);
});

/** The line without its ellipses, and how many bytes it has. */
function bare(line: string): { text: string; bytes: number } {
  const text = line.replace(/^…/, '').replace(/…$/, '');
  return { text, bytes: Buffer.byteLength(text) };
}

test('a long line is trimmed around the match, which stays in it', () => {
  for (const at of [0, 1, 150, 199, 200, 201, 4_000, 9_800, 9_990]) {
    const text = `${'x'.repeat(at)}NEEDLE${'y'.repeat(10_000 - at)}`;
    const found = hit('needle', `before\n${text}\nafter`);
    assert.ok(found);
    assert.ok(found.line.includes('NEEDLE'), `at ${at}`);
    assert.equal(bare(found.line).bytes, limits.lineBytesMax, `at ${at}`);
    assert.equal(found.line.startsWith('…'), at > 197, `at ${at}: ${found.line.slice(0, 10)}`);
    assert.deepEqual([found.lineNumber, found.start], [2, 7 + at]);
  }
});

test('a match longer than what is shown is cut, and so is its line', () => {
  const found = hit('x+', `a${'x'.repeat(5_000)}b`, true);

  assert.equal(found?.match.length, limits.matchBytesMax);
  assert.equal(bare(found?.line ?? '').bytes, limits.lineBytesMax);
  assert.deepEqual([found?.start, found?.end], [1, 5_001]);
});

for (const seed of [71, 72, 73]) {
  test(`no cut splits a character, and match, line and offsets agree (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const alphabet = ['a', 'ß', '潮', '😀', '\n', '\r\n', ' ', 'NEEDLE', 'e\u0301', '\u0000'];
    for (let round = 0; round < 300; round++) {
      const length = Math.floor(random() * 600);
      const weights = random();
      const units = Array.from({ length }, () => {
        const unit = alphabet[Math.floor(random() * alphabet.length)] ?? 'a';
        return unit.includes('\n') && random() < weights ? '潮' : unit;
      });
      const text = units.join('');
      const bytes = Buffer.from(text);
      const pattern =
        random() < 0.5
          ? 'NEEDLE'
          : (['[^a]+', '😀(?s:.{0,300})', '潮*', '(?s).+'][Math.floor(random() * 4)] ?? 'x');
      const found = compileMatcher(pattern, true).find(bytes, 0);
      if (found === null) continue;
      const { match, line, lineNumber, start, end } = snippetOf(bytes, matchPlace(bytes, found));
      const whole = bytes.toString('utf8', start, end);
      assert.equal(Buffer.from(whole).length, end - start, 'offsets are borders of characters');
      for (const shown of [match, line]) assert.equal(shown.includes('\ufffd'), false, JSON.stringify(shown));
      assert.ok(whole.startsWith(match));
      assert.ok(Buffer.byteLength(match) <= limits.matchBytesMax);
      assert.ok(
        end - start <= limits.matchBytesMax
          ? match === whole
          : Buffer.byteLength(match) > limits.matchBytesMax - 4,
      );
      assert.ok(bare(line).bytes <= limits.lineBytesMax, `${bare(line).bytes} bytes`);
      const before = text.slice(0, bytes.toString('utf8', 0, start).length);
      assert.equal(lineNumber, before.split('\n').length);
      const wholeLine = text.split('\n')[lineNumber - 1]?.replace(/\r$/, '') ?? '';
      assert.ok(wholeLine.includes(bare(line).text), 'the line is of the text');
      if (Buffer.byteLength(wholeLine) <= limits.lineBytesMax) assert.equal(line, wholeLine);
    }
  });
}

test('lines around a match are those of the text, without their ends', () => {
  const text = Buffer.from('one\r\ntwo\n\nfour tide\nfive\nsix\n');
  const around = (word: string, count: number) => linesAround(text, { start: text.indexOf(word) }, count);

  assert.deepEqual(around('tide', 2), { before: ['two', ''], after: ['five', 'six'] });
  assert.deepEqual(around('four', 1), { before: [''], after: ['five'] });
  assert.deepEqual(around('one', 3), { before: [], after: ['two', '', 'four tide'] });
  assert.deepEqual(around('six', 10), { before: ['one', 'two', '', 'four tide', 'five'], after: [] });
  assert.deepEqual(linesAround(Buffer.from('a\nb'), { start: 3 }, 1), { before: ['a'], after: [] });
  assert.deepEqual(linesAfterFirst(Buffer.from('\n \nfirst\nsecond\nthird'), 1), ['second']);
  assert.deepEqual(linesAfterFirst(Buffer.from(''), 1), []);
});

test('a long line around a match is cut at a character', () => {
  const { after } = linesAround(Buffer.from(`x\n${'é'.repeat(500)}`), { start: 0 }, 1);

  assert.deepEqual(after, [`${'é'.repeat(200)}…`]);
});
