import { must } from '../../../src/base/assert.ts';
import { type Dictionary, startOf } from '../frame/column.ts';
import { type WildcardText, wildcardText } from './wildcard-text.ts';

/**
 * A pattern of LIKE over UTF-8, in which `%` is any sequence and `_` one character. The worst case is linear in the text:
 *
 * 1. The pattern is cut at each `%`. The first piece stands at the begin of a string and the last one at its end: each is
 *    compared once, byte by byte.
 * 2. Each piece between two `%` is looked for once, from where the one before it was found first: if any places match, the
 *    first ones do. So a string is passed once, however many pieces there are.
 * 3. A piece without `_` is found by Knuth, Morris and Pratt's rule, at most two comparisons for a byte. One with `_` is
 *    found by a set of bits (wildcard-text.ts), one step for a character and each 32 characters of the piece: 32 steps for
 *    the longest pattern that a statement may have.
 * 4. A pattern that is one plain text between two `%` is looked for by a native search in a whole dictionary, which is begun
 *    again at most once for each string.
 */
export interface LikePattern {
  /** What stands at the begin of a string, and at its end: bytes, with `anyCharacter` for `_`. */
  readonly first: Int16Array;
  readonly last: Int16Array;
  /** Whether there is no `%`: `first` is the whole string then. */
  readonly isWhole: boolean;
  /** The pieces that are looked for between them, in this order. */
  readonly between: readonly Wanted[];
  /** The text of a pattern that is one plain `%text%`, short enough for the native search; null for others. */
  readonly within: Buffer | null;
  /** How many steps a byte of text takes at most: it tells how many strings may be judged in one turn. */
  readonly stepsPerByte: number;
}

type Wanted = PlainText | WildcardText;

interface PlainText {
  readonly kind: 'plain';
  readonly bytes: Uint8Array;
  /** With how many bytes another find may have begun, by how many bytes of the piece were found. */
  readonly shorter: Uint16Array;
}

const anyCharacter = -1;

/**
 * The longest text that Node's search is used for: it has tables for the last 250 bytes of what it looks for, and without them its
 * worst case is not linear.
 */
const nativeBytesMax = 250;

/** Parses a pattern. `escapedBy` takes the meaning from a `%`, a `_` or itself after it; as the last character it is one like any other. */
export function likePattern(pattern: string, escapedBy: string | null): LikePattern {
  const pieces: (string | typeof anyCharacter)[][] = [[]];
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    let character = characters[i] as string;
    const isEscaped = character === escapedBy && i + 1 < characters.length;
    if (isEscaped) character = characters[++i] as string;
    const piece = pieces.at(-1) as (string | typeof anyCharacter)[];
    if (!isEscaped && character === '%') pieces.push([]);
    else piece.push(!isEscaped && character === '_' ? anyCharacter : character);
  }
  const between = pieces
    .slice(1, -1)
    .filter((piece) => piece.length > 0)
    .map(wantedOf);
  const first = bytesOf(must(pieces[0], 'a piece'));
  const last = bytesOf(pieces.length === 1 ? [] : (pieces.at(-1) ?? []));
  return {
    first,
    last,
    isWhole: pieces.length === 1,
    between,
    within: first.length === 0 && last.length === 0 ? plainWithin(between) : null,
    stepsPerByte: between.reduce((most, wanted) => Math.max(most, stepsOf(wanted)), 1),
  };
}

function wantedOf(piece: readonly (string | typeof anyCharacter)[]): Wanted {
  if (piece.includes(anyCharacter))
    return wildcardText(
      piece.map((character) => (character === anyCharacter ? null : (character as string))),
    );
  const bytes = Buffer.from(piece.join(''));
  return { kind: 'plain', bytes, shorter: shorterFinds(bytes) };
}

function bytesOf(piece: readonly (string | typeof anyCharacter)[]): Int16Array {
  return Int16Array.from(
    piece.flatMap((character) =>
      character === anyCharacter ? [anyCharacter] : [...Buffer.from(character as string)],
    ),
  );
}

function plainWithin(between: readonly Wanted[]): Buffer | null {
  const [only, ...others] = between;
  if (only === undefined || others.length > 0 || only.kind !== 'plain') return null;
  return only.bytes.length <= nativeBytesMax ? Buffer.from(only.bytes) : null;
}

function stepsOf(wanted: Wanted): number {
  return wanted.kind === 'plain' ? 2 : wanted.words;
}

/** Answers 1 for each string that matches and 0 for each other. */
export function matchDictionary(pattern: LikePattern, dictionary: Dictionary): Uint8Array {
  const matches = new Uint8Array(dictionary.count);
  if (pattern.within !== null) findWithin(pattern.within, dictionary, matches);
  else {
    const { bytes, ends, count } = dictionary;
    for (let code = 0; code < count; code++)
      matches[code] = isLike(pattern, bytes, startOf(dictionary, code), ends[code] as number) ? 1 : 0;
  }
  return matches;
}

/** Finds a text by one native search over all strings; what begins in one string and ends in another does not count. */
function findWithin(text: Buffer, dictionary: Dictionary, matches: Uint8Array): void {
  const { bytes, ends, count } = dictionary;
  let code = 0;
  for (let from = 0; code < count; ) {
    const found = bytes.indexOf(text, from);
    if (found < 0) return;
    while (code < count && (ends[code] as number) <= found) code++;
    if (code === count) return;
    const end = ends[code] as number;
    if (found + text.length <= end) matches[code] = 1;
    // Whatever else begins in this string begins later, and would end beyond it too.
    from = end;
  }
}

function isLike(pattern: LikePattern, bytes: Uint8Array, start: number, end: number): boolean {
  let at = matchFirst(pattern.first, bytes, start, end);
  if (at < 0) return false;
  if (pattern.isWhole) return at === end;
  const { between } = pattern;
  for (let i = 0; i < between.length; i++) {
    const wanted = between[i] as Wanted;
    at = wanted.kind === 'plain' ? findPlain(wanted, bytes, at, end) : wanted.find(bytes, at, end);
    if (at < 0) return false;
  }
  return endsWithLast(pattern.last, bytes, at, end);
}

/** Answers where a piece ends that begins at `at`; -1 where it does not match there. */
function matchFirst(piece: Int16Array, bytes: Uint8Array, at: number, end: number): number {
  let position = at;
  for (let i = 0; i < piece.length; i++) {
    if (position >= end) return -1;
    const byte = piece[i] as number;
    if (byte === anyCharacter) position = nextCharacter(bytes, position, end);
    else if (bytes[position++] !== byte) return -1;
  }
  return position;
}

/** Answers where the first find at or after `from` ends; -1 where there is none. */
function findPlain(
  { bytes: wanted, shorter }: PlainText,
  bytes: Uint8Array,
  from: number,
  end: number,
): number {
  const { length } = wanted;
  let found = 0;
  for (let at = from; at < end; at++) {
    const byte = bytes[at];
    while (found > 0 && byte !== wanted[found]) found = shorter[found - 1] as number;
    if (byte === wanted[found] && ++found === length) return at + 1;
  }
  return -1;
}

/** Answers, for each beginning of a text, how long the longest other beginning is that it ends with. */
function shorterFinds(wanted: Uint8Array): Uint16Array {
  const shorter = new Uint16Array(wanted.length);
  let found = 0;
  for (let i = 1; i < wanted.length; i++) {
    while (found > 0 && wanted[i] !== wanted[found]) found = shorter[found - 1] as number;
    if (wanted[i] === wanted[found]) found++;
    shorter[i] = found;
  }
  return shorter;
}

/** Compares a piece with the end of a string, backwards, a character at a time. */
function endsWithLast(piece: Int16Array, bytes: Uint8Array, from: number, end: number): boolean {
  let position = end;
  for (let i = piece.length - 1; i >= 0; i--) {
    if (position <= from) return false;
    const byte = piece[i] as number;
    if (byte === anyCharacter) {
      position--;
      while (position > from && ((bytes[position] as number) & 0xc0) === 0x80) position--;
    } else if (bytes[--position] !== byte) return false;
  }
  return true;
}

function nextCharacter(bytes: Uint8Array, at: number, end: number): number {
  let next = at + 1;
  while (next < end && ((bytes[next] as number) & 0xc0) === 0x80) next++;
  return next;
}
