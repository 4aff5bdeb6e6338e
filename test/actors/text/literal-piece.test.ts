import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieceOf } from '../../../actors/text/literal-piece.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';

const textOf = (literal: string) => {
  const wanted = pieceOf(literal);
  return wanted === null ? null : Buffer.from(wanted.piece.folds).toString();
};

test('a piece is the longest run of characters that are one byte however they are written', () => {
  assert.equal(textOf('The Tide'), 'the tide');
  assert.equal(pieceOf('The Tide')?.isExact, true);
  assert.equal(textOf('disk full'), ' full');
  assert.equal(pieceOf('disk full')?.isExact, false);
  assert.equal(textOf('größe 12'), 'e 12');
  assert.equal(textOf('naïve café tablet'), ' tablet');
  assert.equal(textOf('a'), null);
  assert.equal(textOf('ask'), null);
  assert.equal(textOf(''), null);
  assert.equal(textOf('x'.repeat(33))?.length, 32);
  assert.equal(pieceOf('x'.repeat(33))?.isExact, false);
});

test('a short literal of ASCII is compared as it is written, and its piece begins where it does there', () => {
  const of = (literal: string) => {
    const wanted = pieceOf(literal);
    const compared = wanted?.literal ?? null;
    return [wanted?.pieceStart, compared === null ? null : Buffer.from(compared.folds).toString()];
  };
  assert.deepEqual(of('Disk full'), [4, 'disk full']);
  assert.deepEqual(of('tide'), [0, 'tide']);
  assert.deepEqual(of(`k${'x'.repeat(31)}`), [1, `k${'x'.repeat(31)}`]);
  assert.deepEqual(of(`k${'x'.repeat(32)}`), [1, null]);
  assert.equal(of('größe 12')[1], null);
});

test('its anchors are its rarest bytes, and only letters have a mask', () => {
  const piece = pieceOf('eexe_Q[')?.piece;
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
