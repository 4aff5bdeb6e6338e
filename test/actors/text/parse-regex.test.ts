import assert from 'node:assert/strict';
import { test } from 'node:test';
import { staysWithinLine } from '../../../actors/text/line-pieces.ts';
import { parseRegex } from '../../../actors/text/parse-regex.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';
import type { RegexNode } from '../../../actors/text/regex-syntax.ts';
import { seededRandom } from '../../support/segments.ts';

function isValid(pattern: string): boolean {
  try {
    compileMatcher(pattern, true);
    return true;
  } catch {
    return false;
  }
}

const literal = (text: string, ignoresCase = false): RegexNode => ({
  kind: 'literal',
  codePoints: Array.from(text, (character) => character.codePointAt(0) ?? 0),
  ignoresCase,
});

test('patterns become trees', () => {
  const cases: readonly (readonly [string, RegexNode])[] = [
    ['', { kind: 'empty' }],
    ['abc', literal('abc')],
    ['潮😀', literal('潮😀')],
    [
      'ab*',
      {
        kind: 'concatenation',
        parts: [literal('a'), { kind: 'repeat', part: literal('b'), min: 0, max: null }],
      },
    ],
    ['(?i)a(?-i)b', { kind: 'concatenation', parts: [literal('a', true), literal('b')] }],
    ['(?i:a)b', { kind: 'concatenation', parts: [literal('a', true), literal('b')] }],
    [
      '(a(?i)b)c',
      {
        kind: 'concatenation',
        parts: [
          { kind: 'capture', part: { kind: 'concatenation', parts: [literal('a'), literal('b', true)] } },
          literal('c'),
        ],
      },
    ],
    ['a(?i)|b', { kind: 'alternation', parts: [literal('a'), literal('b', true)] }],
    [
      '(?:x{2,})?',
      { kind: 'repeat', part: { kind: 'repeat', part: literal('x'), min: 2, max: null }, min: 0, max: 1 },
    ],
    ['x{2}?', { kind: 'repeat', part: literal('x'), min: 2, max: 2 }],
    [
      '\\Qa.\\E+',
      {
        kind: 'concatenation',
        parts: [literal('a'), { kind: 'repeat', part: literal('.'), min: 1, max: null }],
      },
    ],
    ['\\Qa\\', literal('a\\')],
    ['|', { kind: 'alternation', parts: [{ kind: 'empty' }, { kind: 'empty' }] }],
    ['(?P<n>a)', { kind: 'capture', part: literal('a') }],
    [
      '\\bx$',
      {
        kind: 'concatenation',
        parts: [
          { kind: 'assertion', isWordBoundary: true },
          literal('x'),
          { kind: 'assertion', isWordBoundary: false },
        ],
      },
    ],
    ['[a-cb-d]', { kind: 'class', ranges: [0x61, 0x64] }],
    ['[^\\x00-\\x{10ffff}]', { kind: 'class', ranges: [] }],
    ['[^a]', { kind: 'class', ranges: [0, 0x60, 0x62, 0x10ffff] }],
    ['(?s).', { kind: 'class', ranges: [0, 0x10ffff] }],
    ['[\\pL0]', { kind: 'unicode-class', mayTakeLineFeed: false }],
    ['\\C', { kind: 'byte' }],
  ];
  for (const [pattern, node] of cases) assert.deepEqual(parseRegex(pattern), node, pattern);
});

test('a class with a Unicode group may take a line feed wherever RE2 says that it does', () => {
  const groups = [
    'L',
    '{Lu}',
    '{^L}',
    'C',
    '{Cc}',
    '{^Cc}',
    '{Any}',
    '{Common}',
    '{Greek}',
    'Z',
    'S',
    '{Zl}',
    'M',
    'N',
    'P',
  ];
  const classes = groups.flatMap((name) => [`\\p${name}`, `\\P${name}`]);
  const around = classes.flatMap((one) => [
    one,
    `[${one}a]`,
    `[^${one}a]`,
    `[${one}\\s]`,
    `(?i)[${one}\\x00-\\x1f]`,
  ]);
  for (const pattern of around) {
    const node = parseRegex(pattern);
    assert.ok(node.kind === 'unicode-class', pattern);
    if (compileMatcher(pattern, true).test(Buffer.from('\n'))) assert.ok(node.mayTakeLineFeed, pattern);
  }
  for (const pattern of classes)
    assert.equal(
      staysWithinLine(parseRegex(pattern)),
      !compileMatcher(pattern, true).test(Buffer.from('\n')),
      pattern,
    );
});

/** Valid and invalid alike: RE2 says which, and what it takes must be understood. */
const corners = [
  '^*',
  '$+',
  '\\b+',
  '(?:)+',
  '\\Q\\E+',
  'a\\Q\\E+',
  'a+\\Q\\E+',
  'a|*',
  '(|a)*',
  '()*',
  '(?i)*',
  'a(?i)*',
  '(*)',
  'a**',
  'a*?',
  'a*??',
  'x{2}{3}',
  'x{2}?{3}',
  'a{,2}',
  'a{2',
  '{',
  '}',
  'a{01}',
  'a{0,0}',
  'a{1000}',
  'a{1001}',
  'a{2,1}',
  'a{1000,}',
  '(a{100}){10}',
  '(a{100}){11}',
  '\\pN',
  '\\pNx',
  '\\p{^Greek}',
  '\\PN',
  '\\P{^Lu}',
  '\\p{Letter}',
  '\\p{Script=Greek}',
  '\\p{sc=Han}',
  '\\p{Nope}',
  '\\p',
  '\\p{',
  '\\p{}',
  '[\\pL-z]',
  '[[:^word:]\\d]',
  '[[:word:]',
  '[[:foo:]]',
  '[[:alpha:',
  '[[:alpha]',
  '[[:a:]:]]',
  '[a-\\d]',
  '[\\d-z]',
  '[--a]',
  '[a-]',
  '[-a]',
  '[^-]',
  '[^]]',
  '[]]',
  '[]',
  '[',
  '[a',
  '[z-a]',
  '[\\Qa\\E]',
  '[a-a-z]',
  '[[.a.]]',
  '[\\b]',
  '[\\C]',
  '[\\x41-\\x{43}]',
  '\\_',
  '\\-',
  '\\/',
  '/',
  '\\8',
  '\\08',
  '\\012',
  '\\1',
  '\\18',
  '\\777',
  '\\x{0010FFFF}',
  '\\x{110000}',
  '\\x{}',
  '\\x{4',
  '\\x4',
  '\\xg0',
  '\\u0041',
  '\\u41x',
  '\\u{41}',
  '\\u',
  '\\uz',
  '\\cA',
  '\\ca',
  '\\c',
  '\\',
  'a\\',
  '\\é',
  '\\a\\f\\v',
  '\\Z',
  '\\z',
  '(?s-i:a)',
  '(?U)a*?',
  '(?-)',
  '(?i-)',
  '(?)',
  '(?:)',
  '(?i--s)',
  '(?imsU)',
  '(?x)',
  '(?i',
  '(?',
  '(?P<n>a)',
  '(?<n>a)',
  '(?P<n',
  '(?P<>a)',
  '(?P<n>a)(?P<n>b)',
  '(?P=n)',
  "(?'n'a)",
  '(?=a)',
  '(?!a)',
  '(?<=a)',
  '(?<!a)',
  '[(?<]',
  '\\Q(?<n>\\E',
  '(?>a)',
  '(a',
  'a)',
  '()',
  '((',
  '\ud800',
  '[\ud800]',
  '\\x{d800}',
  '[\\x{d800}-\\x{dfff}]',
  '\u0000',
  '[\u0000-\u0001]',
  '\\Q\\\\E',
  '\\Qa/b\\E',
  '.{0}',
  '(?i)[^k]\\W[[:^upper:]]',
];
test('whatever RE2 takes is understood, in every corner of its syntax', () => {
  const missed = corners.filter((pattern) => isValid(pattern) && !isUnderstood(parseRegex(pattern)));

  // Halves of surrogate pairs are valid in some places, and in no text.
  assert.deepEqual(
    missed.filter((pattern) => !/\ud800|d800/.test(pattern)),
    [],
  );
});

test('whatever RE2 takes is understood, in random mixtures, and nothing makes the parser throw', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  const tokens = [
    ...'()[]{}*+?|^$.\\-:,/<>=!&#~ab01éK\u212a😀',
    '(?:',
    '(?i)',
    '(?P<n>',
    '[^',
    '[[:alpha:]',
    '\\d',
    '\\W',
    '\\Q',
    '\\E',
    '{2}',
    '{1,}',
    '\\x{',
    '41',
    '\\p',
    '{Greek}',
    '\\b',
  ];
  let valid = 0;
  for (let round = 0; round < 20_000; round++) {
    const count = 1 + Math.floor(random() * 7);
    const pattern = Array.from({ length: count }, () => tokens[Math.floor(random() * tokens.length)]).join(
      '',
    );
    const node = parseRegex(pattern);
    if (!isValid(pattern)) continue;
    valid++;
    assert.ok(isUnderstood(node), `seed ${seed}: ${JSON.stringify(pattern)}`);
  }
  assert.ok(valid > 1_000, `${valid}`);
});

test('a class has the characters that RE2 gives it', () => {
  const codePoints = [
    ...Array.from({ length: 0x250 }, (_, at) => at),
    ...[
      0x3a3, 0x3c2, 0x3c3, 0x3a9, 0x2126, 0x212a, 0x212b, 0x1e9e, 0x6f6e, 0x1f600, 0x10400, 0x10428, 0x10ffff,
    ],
  ];
  const characters = codePoints.map(
    (codePoint) => [codePoint, Buffer.from(String.fromCodePoint(codePoint))] as const,
  );
  const classes = [
    '[a-z]',
    '[^a-z]',
    '[\\d_]',
    '[\\W]',
    '[^\\W\\d]',
    '[\\S\\n]',
    '[[:punct:]]',
    '[[:^space:]a ]',
    '[^[:print:]]',
    '\\s',
    '\\D',
    '.',
    '[]^-]',
    '[\\x{100}-\\x{24f}k]',
    '[ς]',
    '[K-M]',
    '[\\x00-\\x1f]',
    '[!-~]',
    '[[:xdigit:]g]',
    '[[:cntrl:][:blank:]]',
    '[^\\n]',
    '[\\t-\\r]',
    '[[:alnum:]ſ]',
    '[[:graph:]]',
    '[[:lower:]]',
    '[[:upper:]]',
    '[[:word:]]',
    '[[:ascii:]]',
    '[𐐀]',
  ];
  for (const flags of ['', '(?i)', '(?s)']) {
    for (const pattern of classes) {
      const node = parseRegex(flags + pattern);
      const matcher = compileMatcher(`${flags}${pattern}`, true);
      assert.equal(node.kind, 'class');
      if (node.kind !== 'class') continue;
      const { ranges } = node;
      for (const [codePoint, bytes] of characters) {
        const isIn = ranges.some(
          (first, at) => at % 2 === 0 && first <= codePoint && codePoint <= (ranges[at + 1] ?? 0),
        );
        assert.equal(isIn, matcher.test(bytes), `${flags}${pattern} U+${codePoint.toString(16)}`);
      }
    }
  }
});

function isUnderstood(node: RegexNode): boolean {
  if ('parts' in node) return node.parts.every(isUnderstood);
  return 'part' in node ? isUnderstood(node.part) : node.kind !== 'anything';
}
