import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';

/** Patterns, and what RE2 was asked to compile for them. */
function patternsAndCompiled() {
  const compiled: string[] = [];
  const patterns = new QueryPatterns((query, isRegex, groups) => {
    compiled.push(query);
    return compileMatcher(query, isRegex, groups);
  });
  return { patterns, compiled };
}

function problemOf(patterns: QueryPatterns, query: string, isRegex = true): string {
  try {
    patterns.of(query, isRegex);
  } catch (error) {
    assert.ok(error instanceof ApiError && error.status === 422 && error.code === 'invalid');
    assert.equal(error.message, `q: ${error.fields?.q}`);
    return error.fields?.q ?? '';
  }
  return '';
}

test('a regex whose program would be too large is refused before RE2 sees it, with what makes it large', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      '\\pL'.repeat(300),
      /a class such as "\\pL" stands for hundreds of ranges of characters; all of it makes \d+ steps/,
    ],
    ['[^\\pL\\pN]{100}', /"\\pL" .*, and "\{100\}" repeats up to 100 times/],
    ['(?:[a-z]{0,50}é){500}', /"\{500\}" repeats up to 500 times/],
    ['(?:(?:abc){30}){400}', /repeat fewer times, or smaller parts/],
    [`(?i)${'x{1000}'.repeat(30)}`, /"\{1000\}" repeats up to 1000 times/],
    // Not understood, because invalid: RE2 would read 300 classes before it says so.
    [`(${'\\pL'.repeat(300)}`, /"\\pL"/],
    [`((a{100}){100}`, /"\{100\}"/],
  ];
  for (const [query, problem] of cases) {
    const { patterns, compiled } = patternsAndCompiled();
    assert.match(problemOf(patterns, query), problem);
    assert.deepEqual(compiled, [], query);
  }
});

test('what is wrong with a small pattern is what RE2 says', () => {
  const { patterns, compiled } = patternsAndCompiled();
  assert.equal(problemOf(patterns, '(tide'), 'not a valid RE2 regex: missing ): (tide');
  assert.match(problemOf(patterns, 'a**'), /bad repetition operator/);
  assert.equal(compiled.length, 2);
  assert.match(problemOf(patterns, 'x'.repeat(limits.patternCharactersMax + 1)), /at most 1000 characters/);
  assert.match(problemOf(patterns, 'x'.repeat(limits.literalBytesMax + 1), false), /at most 4000 bytes/);
});

test('a refusal is remembered, so that asking again costs a look-up, and a thread remembers so many', () => {
  const { patterns, compiled } = patternsAndCompiled();
  const first = problemOf(patterns, '(tide');
  for (let again = 0; again < 50; again++) assert.equal(problemOf(patterns, '(tide'), first);
  assert.equal(compiled.length, 1);
  // The same words are no wrong literal.
  assert.equal(problemOf(patterns, '(tide', false), '');
  for (let other = 0; other < 2 * limits.patternRefusalsKeptMax; other++) problemOf(patterns, `(${other}`);
  assert.equal(problemOf(patterns, '(tide'), first);
  assert.equal(
    compiled.filter((query) => query === '(tide').length,
    3,
    'twice as a regex, once as a literal',
  );
});

test('a literal of the largest size is none too large, whatever its letters fold to', () => {
  for (const letter of ['K', 's', 'å', '潮', ' ']) {
    const query = letter.repeat(Math.floor(limits.literalBytesMax / Buffer.byteLength(letter)));
    assert.equal(problemOf(new QueryPatterns(), query, false), '', letter);
  }
});

test('a pattern that RE2 takes and the parser does not is taken for as costly as any', () => {
  const { nanoseconds, bytesMax } = new QueryPatterns().of('\ud800', true);
  assert.ok(nanoseconds >= limits.patternInstructionsMax);
  assert.equal(bytesMax, Number.POSITIVE_INFINITY);
});
