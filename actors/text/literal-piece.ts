/**
 * What the vector instructions look for in place of a literal: the longest run of its characters that are one byte however they are
 * written. A text that has the literal, as RE2 matches it without regard to case, has those bytes; where the run is all of the literal,
 * the reverse is true as well. k and s are no such characters: RE2 takes the Kelvin sign and the long s for them, which are longer.
 */
import { type FoldedPiece, pieceBytesMax } from '../kernels/piece-finder.ts';
import { foldCodePoint, foldedPairs } from './fold.ts';

export interface LiteralPiece extends FoldedPiece {
  /** Whether the piece is all of the literal: what has the one has the other. */
  readonly isWhole: boolean;
}

/** A shorter one is nearly everywhere. */
const pieceBytesMin = 2;
const asciiEnd = 0x80;
const letterBit = 0x20;
/** ASCII bytes from the frequent to the rare, as texts have them; what is not here is rarer. */
const frequentFirst = ' etaoinsrhldcumfpgwybvkxjqz\n.,0123456789_-()"\'/:;=';

/** Those that stand for characters outside of ASCII as well. */
const longRepresentatives: ReadonlySet<number> = new Set(
  foldedPairs.flatMap(([codePoint, representative]) => (codePoint >= asciiEnd ? [representative] : [])),
);

/** Answers null where no run has two bytes. A run is cut to 32. */
export function pieceOf(literal: string): LiteralPiece | null {
  const runs = runsOf(literal);
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '');
  if (longest.length < pieceBytesMin) return null;
  const text = longest.slice(0, pieceBytesMax);
  const folds = Uint8Array.from(text, (character) => foldCodePoint(character.charCodeAt(0)));
  const masks = folds.map((byte) => (isLetter(byte) ? letterBit : 0));
  return { folds, masks, anchors: rarest(folds), isWhole: text.length === literal.length };
}

function runsOf(literal: string): readonly string[] {
  const runs = [''];
  for (const character of literal) {
    const codePoint = character.codePointAt(0) as number;
    const isOneByte = codePoint < asciiEnd && !longRepresentatives.has(foldCodePoint(codePoint));
    if (isOneByte) runs[runs.length - 1] += character;
    else runs.push('');
  }
  return runs;
}

function isLetter(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}

/** Places of the two rarest bytes, which say the most about a place of a text. */
function rarest(folds: Uint8Array): readonly [number, number] {
  const places = Array.from(folds.keys()).toSorted((a, b) => rarity(folds[b]) - rarity(folds[a]));
  return [places[0] as number, places[1] as number];
}

function rarity(byte = 0): number {
  const at = frequentFirst.indexOf(String.fromCharCode(byte));
  return at < 0 ? frequentFirst.length : at;
}
