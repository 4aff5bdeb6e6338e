import { type Dictionary, startOf } from './vector.ts';

/**
 * LIKE over UTF-8: `%` is any sequence, `_` one character. Linear in the text for each part between two `%`: the first one stands
 * at the begin, the last one at the end, and each of the others where it is found first.
 */
export interface LikePattern {
  /** Parts between `%`; each of bytes, with `anyCharacter` for `_`. */
  readonly parts: readonly Int16Array[];
  /** Of patterns of one `%text%`: the text, to be looked for in a whole dictionary. */
  readonly within: Buffer | null;
}

const anyCharacter = -1;

export function likePattern(pattern: string, escapedBy: string | null): LikePattern {
  const parts: number[][] = [[]];
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    let character = characters[i] as string;
    const isEscaped = character === escapedBy && i + 1 < characters.length;
    if (isEscaped) character = characters[++i] as string;
    const part = parts.at(-1) as number[];
    if (!isEscaped && character === '%') parts.push([]);
    else if (!isEscaped && character === '_') part.push(anyCharacter);
    else part.push(...Buffer.from(character));
  }
  const [first = [], middle = [], last = []] = parts;
  const isWithin = parts.length === 3 && first.length === 0 && last.length === 0 && middle.length > 0;
  const plain = isWithin && !middle.includes(anyCharacter);
  return { parts: parts.map((part) => Int16Array.from(part)), within: plain ? Buffer.from(middle) : null };
}

/** 1 for each string that matches, 0 for each other. */
export function matchDictionary({ parts, within }: LikePattern, dictionary: Dictionary): Uint8Array {
  const matches = new Uint8Array(dictionary.count);
  if (within !== null) findWithin(within, dictionary, matches);
  else {
    for (let code = 0; code < dictionary.count; code++) {
      const start = startOf(dictionary, code);
      matches[code] = isLike(parts, dictionary.bytes, start, dictionary.ends[code] as number) ? 1 : 0;
    }
  }
  return matches;
}

/** One native search over all strings: what crosses from one into the next is none. */
function findWithin(text: Buffer, dictionary: Dictionary, matches: Uint8Array): void {
  const { bytes, ends, count } = dictionary;
  let code = 0;
  for (let from = 0; code < count; ) {
    const found = bytes.indexOf(text, from);
    if (found < 0) return;
    while (code < count && (ends[code] as number) <= found) code++;
    if (code === count) return;
    if (found + text.length <= (ends[code] as number)) {
      matches[code] = 1;
      from = ends[code] as number;
    } else from = found + 1;
  }
}

function isLike(parts: readonly Int16Array[], bytes: Uint8Array, start: number, end: number): boolean {
  const first = parts[0] as Int16Array;
  let at = matchPart(first, bytes, start, end);
  if (parts.length === 1) return at === end;
  if (at < 0) return false;
  for (let i = 1; i < parts.length - 1; i++) {
    at = findPart(parts[i] as Int16Array, bytes, at, end);
    if (at < 0) return false;
  }
  return endsWithPart(parts.at(-1) as Int16Array, bytes, at, end);
}

/** Where the part that begins at `at` ends; -1 where it does not match there. */
function matchPart(part: Int16Array, bytes: Uint8Array, at: number, end: number): number {
  let position = at;
  for (let i = 0; i < part.length; i++) {
    if (position >= end) return -1;
    const byte = part[i] as number;
    if (byte === anyCharacter) position = nextCharacter(bytes, position, end);
    else if (bytes[position++] !== byte) return -1;
  }
  return position;
}

function findPart(part: Int16Array, bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at <= end; at = at < end ? nextCharacter(bytes, at, end) : end + 1) {
    const matched = matchPart(part, bytes, at, end);
    if (matched >= 0) return matched;
  }
  return -1;
}

/** From the end backwards, a character at a time. */
function endsWithPart(part: Int16Array, bytes: Uint8Array, from: number, end: number): boolean {
  let position = end;
  for (let i = part.length - 1; i >= 0; i--) {
    if (position <= from) return false;
    const byte = part[i] as number;
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
