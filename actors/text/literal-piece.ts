/**
 * What the vector instructions look for in place of a literal: the longest run of its characters that are one byte however they are
 * written. A text that has the literal, as RE2 matches it without regard to case, has those bytes; where the run is all of the literal,
 * the reverse is true as well. k and s are no such characters: RE2 takes the Kelvin sign and the long s for them, which are longer.
 */
import { type FoldedText, pieceBytesMax, type WantedPiece } from '../kernels/literal-finder.ts';
import { foldCodePoint, foldedPairs } from './fold.ts';

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
export function pieceOf(literal: string): WantedPiece | null {
  const longest = runsOf(literal).reduce((best, run) => (run.text.length > best.text.length ? run : best));
  if (longest.text.length < pieceBytesMin) return null;
  const text = longest.text.slice(0, pieceBytesMax);
  const piece = foldedText(text);
  return {
    piece: { ...piece, anchors: rarest(piece.folds) },
    literal: literal.length <= pieceBytesMax && isAscii(literal) ? foldedText(literal) : null,
    pieceStart: longest.start,
    isExact: text.length === literal.length,
  };
}

/** A text of ASCII as the kernel compares it. */
function foldedText(text: string): FoldedText {
  const folds = Uint8Array.from(text, (character) => foldCodePoint(character.charCodeAt(0)));
  return { folds, masks: folds.map((byte) => (isLetter(byte) ? letterBit : 0)) };
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

interface Run {
  text: string;
  /** Bytes of the literal before it, where all of that is ASCII. */
  readonly start: number;
}

function runsOf(literal: string): readonly Run[] {
  const runs: [Run, ...Run[]] = [{ text: '', start: 0 }];
  let last = runs[0];
  let at = 0;
  for (const character of literal) {
    at += character.length;
    const codePoint = character.codePointAt(0) as number;
    if (codePoint < asciiEnd && !longRepresentatives.has(foldCodePoint(codePoint))) last.text += character;
    else {
      last = { text: '', start: at };
      runs.push(last);
    }
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
