/**
 * Go's published test data for RE2, as Debian's package golang-1.19-src installs it; TIDEBASE_TEST_RE2_DATA names
 * another place of that file, or of re2-exhaustive.txt, unpacked.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseRegex } from '../../../actors/text/parse-regex.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';
import { planQuery } from '../../../actors/text/regex-plan.ts';
import { type Re2Case, readRe2Cases } from '../../support/re2-cases.ts';
import { fulfils, trigramsOfText } from '../../support/trigram-queries.ts';

const path = process.env.TIDEBASE_TEST_RE2_DATA ?? '/usr/share/go-1.19/src/regexp/testdata/re2-search.txt';
const skip = existsSync(path) ? false : `${path} is missing: install golang-1.19-src`;
/** \C takes bytes out of the middle of characters: left out. */
const cases = (): readonly Re2Case[] =>
  readRe2Cases(readFileSync(path, 'utf8')).filter(({ pattern }) => !pattern.includes('\\C'));

test('matches begin and end where the published data says, leftmost-first', { skip }, () => {
  let tried = 0;
  const matcherOf = remembered((pattern) => compileMatcher(pattern, true));
  for (const { pattern, text, leftmostFirst } of cases()) {
    const found = matcherOf(pattern).find(Buffer.from(text), 0);
    const isRight = found?.start === leftmostFirst?.start && found?.end === leftmostFirst?.end;
    if (!isRight) assert.deepEqual(found, leftmostFirst, JSON.stringify({ pattern, text }));
    tried++;
  }
  assert.ok(tried > 700, `${tried}`);
});

test('each published pattern is understood, and no text that matches is excluded by its plan', {
  skip,
}, () => {
  const planOf = remembered((pattern) => {
    assert.notEqual(parseRegex(pattern).kind, 'anything', pattern);
    return planQuery(pattern, true);
  });
  for (const { pattern, text, leftmostFirst } of cases()) {
    const plan = planOf(pattern);
    if (leftmostFirst === null || plan.kind === 'all') continue;
    if (!fulfils(trigramsOfText(Buffer.from(text)), plan)) assert.fail(JSON.stringify({ pattern, text }));
  }
});

/** What was made of the last pattern: the data has each with many texts. */
function remembered<T>(make: (pattern: string) => T): (pattern: string) => T {
  let last: { readonly pattern: string; readonly made: T } | null = null;
  return (pattern) => {
    if (last?.pattern !== pattern) last = { pattern, made: make(pattern) };
    return last.made;
  };
}

test('the form of the published data is read', () => {
  const text = '# a comment\nstrings\n""\n"x\\u00e9\\n"\nregexps\n"é|\\\\n"\n-;-;-;-\n-;1-3 1-3;-;1-3\n';

  assert.deepEqual(readRe2Cases(text), [
    { pattern: 'é|\\n', text: '', leftmostFirst: null },
    { pattern: 'é|\\n', text: 'xé\n', leftmostFirst: { start: 1, end: 3 } },
  ]);
});
