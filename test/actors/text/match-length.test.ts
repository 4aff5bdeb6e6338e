import assert from 'node:assert/strict';
import { test } from 'node:test';
import { literalMatchLengthOf, matchBytesMax, matchLengthOf } from '../../../actors/text/match-length.ts';
import { parseRegex } from '../../../actors/text/parse-regex.ts';

const longest = (pattern: string) => matchBytesMax(parseRegex(pattern));

test('a match has at most the bytes of the longest characters that a pattern allows', () => {
  assert.equal(longest('tide'), 4);
  assert.equal(longest('[a-zé]潮(?i)s'), 2 + 3 + 2);
  assert.equal(longest('t[iI]d(e|es)?$'), 5);
  assert.equal(longest('(?i)k{2,5}'), 15);
  assert.equal(longest('\\bx{0}y\\b'), 1);
  assert.equal(longest('(?:\\pL|ab){3}'), 12);
  assert.equal(longest(''), 0);
  assert.equal(longest('(?:^|$)*'), 0);
});

test('nothing bounds a repetition without an end, nor what is not understood', () => {
  for (const pattern of ['tide.*', 'a+', '(?:ab){2,}', '(?s).*?x', 'x(?:y*z)?', '(?P<n>a+)'])
    assert.equal(longest(pattern), Number.POSITIVE_INFINITY, pattern);
  assert.equal(matchBytesMax({ kind: 'anything' }), Number.POSITIVE_INFINITY);
});

test('a match reaches a little way, to the end of its line, or anywhere', () => {
  const length = (pattern: string) => matchLengthOf(parseRegex(pattern));

  for (const pattern of ['tide', 'a\\nb', '(?s)a.{0,200}b', '^$'])
    assert.equal(length(pattern), 'short', pattern);
  for (const pattern of ['tide.*', '^[a-z]+\\b$', '(?:ab){600}', '\\d+|x'])
    assert.equal(length(pattern), 'line', pattern);
  for (const pattern of ['a\\s+b', '[^a]*', '(?s).*', '\\C+', '\\PL*'])
    assert.equal(length(pattern), 'text', pattern);
  assert.equal(literalMatchLengthOf('x'.repeat(1_024)), 'short');
  assert.equal(literalMatchLengthOf('x'.repeat(1_025)), 'line');
  assert.equal(literalMatchLengthOf(`${'x'.repeat(1_024)}\n`), 'text');
});
