import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieceOf } from '../../../actors/text/literal-piece.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';

const textOf = (literal: string) => {
  const piece = pieceOf(literal);
  return piece === null ? null : Buffer.from(piece.folds).toString();
};

test('a piece is the longest run of characters that are one byte however they are written', () => {
  assert.equal(textOf('The Tide'), 'the tide');
  assert.equal(pieceOf('The Tide')?.isWhole, true);
  assert.equal(textOf('disk full'), ' full');
  assert.equal(pieceOf('disk full')?.isWhole, false);
  assert.equal(textOf('größe 12'), 'e 12');
  assert.equal(textOf('naïve café tablet'), ' tablet');
  assert.equal(textOf('a'), null);
  assert.equal(textOf('ask'), null);
  assert.equal(textOf(''), null);
  assert.equal(textOf('x'.repeat(33))?.length, 32);
  assert.equal(pieceOf('x'.repeat(33))?.isWhole, false);
});

test('its anchors are its rarest bytes, and only letters have a mask', () => {
  const piece = pieceOf('eexe_Q[');
  assert.deepEqual(piece?.anchors, [6, 4]);
  assert.deepEqual([...(piece?.masks ?? [])], [0x20, 0x20, 0x20, 0x20, 0, 0x20, 0]);
});

test('RE2 matches no character of a piece with one of another length', () => {
  const every = Array.from({ length: 0x20000 - 0x80 }, (_, at) => at + 0x80)
    .filter((codePoint) => codePoint < 0xd800 || codePoint > 0xdfff)
    .map((codePoint) => String.fromCodePoint(codePoint))
    .join('');
  const beyondAscii = Buffer.from(every);
  for (let code = 0; code < 0x80; code++) {
    const character = String.fromCharCode(code);
    const isOfPiece = pieceOf(character.repeat(2)) !== null;
    assert.equal(compileMatcher(character, false).test(beyondAscii), !isOfPiece, `character ${code}`);
  }
});
