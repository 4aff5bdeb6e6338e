import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patternInstructions } from '../../../actors/text/pattern-cost.ts';
import { fits, roomBehind } from '../../support/re2-program.ts';

/** Each is as large, written out, as makes what RE2 adds or saves here and there not count. */
const patterns = [
  '(?:abc){1000}',
  '(?:潮汐){900}',
  '(?i)(?:kelvin){500}',
  '(?i)(?:äöß){300}',
  '.{1000}',
  '(?s).{1000}',
  '[^é]{700}',
  '(?:\\w+\\W){300}',
  '(?i)(?:\\W[^k]){200}',
  '[\\x{100}-\\x{ffff}a-z]{500}',
  '(?:[a-q]?[b-p]){500}x',
  'a[ab]{900}c',
  '(?:a{0,10}b{2,}c{5,9}){40}',
  '(?:(?:a|b|cd|)*e){200}',
  '((a)(b)){300}',
  '(?:\\bfoo$|^bar){200}',
  '(?:color|colour|colt|cold){150}',
];

/** Unicode groups count alike; these are among the largest. */
const unicodePatterns = ['\\pL', '[^\\pM\\p{Lu}\\pN]', '[\\pL\\pM\\pN]', '\\P{Lu}', '[^\\pN\\pL]'];

/** Programs are counted by what RE2 refuses, see the room that a pattern leaves. */
let room: number | undefined;
const roomOfAll = () => {
  room ??= roomBehind('');
  return room;
};

test('an estimate is not below the size of the program, and not far above it', () => {
  for (const pattern of patterns) {
    const estimate = patternInstructions(pattern);

    assert.ok(fits(pattern, roomOfAll() - estimate), `${pattern}: larger than ${estimate}`);
    assert.ok(
      !fits(pattern, roomOfAll() - Math.floor(estimate / 4)),
      `${pattern}: far smaller than ${estimate}`,
    );
  }
});

test('classes of Unicode groups are not larger than they are taken for', () => {
  for (const pattern of unicodePatterns)
    assert.ok(fits(pattern, roomOfAll() - patternInstructions(pattern)), pattern);
});

test('what RE2 refuses for its size is estimated above what it takes', () => {
  for (const pattern of ['\\pL{1000}', '(?:\\PL\\pL){300}']) {
    assert.equal(fits(pattern, 0), false, pattern);
    assert.ok(patternInstructions(pattern) > roomOfAll(), pattern);
  }
  for (const pattern of ['.{1000}', '\\pL{100}', '(?:[a-q]?[b-p]){500}x']) {
    assert.equal(fits(pattern, 0), true, pattern);
    assert.ok(patternInstructions(pattern) < roomOfAll(), pattern);
  }
});

test('estimates of patterns that cannot be are numbers all the same', () => {
  for (const pattern of [
    '(',
    '\\1',
    'x{1001}',
    '[^\\s\\S]',
    '',
    '(((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9}){9})',
  ]) {
    const estimate = patternInstructions(pattern);
    assert.ok(Number.isFinite(estimate) && estimate > 0, `${pattern}: ${estimate}`);
  }
});
