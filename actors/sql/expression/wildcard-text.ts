/**
 * Finds a text in which some places take any one character, in time that its length and the text's bound. After Baeza-Yates
 * and Gonnet, "A New Approach to Text Searching":
 *
 * 1. A set of bits says how many characters of the wanted text each of the possible finds has passed so far: bit n stands
 *    where its first n + 1 characters are those that were just read.
 * 2. Each character that is read moves all of them on by one, begins another, and drops those that want another character:
 *    one shift and one AND for every 32 characters of the wanted text, whatever the texts are.
 */
export interface WildcardText {
  readonly kind: 'wildcards';
  /** How many steps each character of the text takes. */
  readonly words: number;
  /** Answers where the first find ends that begins at or after `from`, the begin of a character; -1 where there is none before `end`. */
  find(bytes: Uint8Array, from: number, end: number): number;
}

/** Makes the finder for these characters, at least one; null stands for any one. */
export function wildcardText(characters: readonly (string | null)[]): WildcardText {
  const words = Math.ceil(characters.length / 32);
  const classes = new CharacterClasses(characters);
  const masks = masksOf(characters, classes, words);
  const last = 1 << ((characters.length - 1) & 31);
  if (words === 1)
    return {
      kind: 'wildcards',
      words,
      find: (bytes, from, end) => findShort({ classes, masks, last }, bytes, from, end),
    };
  const set = new Int32Array(words);
  return {
    kind: 'wildcards',
    words,
    find: (bytes, from, end) => findLong({ classes, masks, last, set }, bytes, from, end),
  };
}

/** Numbers the characters that are wanted anywhere, from 1; all others are 0. */
class CharacterClasses {
  readonly ofAscii = new Uint16Array(0x80);
  readonly ofOthers = new Map<number, number>();
  #count = 1;

  constructor(characters: readonly (string | null)[]) {
    for (const character of characters) if (character !== null) this.#add(codePointOf(character));
  }

  get count(): number {
    return this.#count;
  }

  of(codePoint: number): number {
    return codePoint < 0x80 ? (this.ofAscii[codePoint] as number) : (this.ofOthers.get(codePoint) ?? 0);
  }

  #add(codePoint: number): void {
    if (this.of(codePoint) !== 0) return;
    if (codePoint < 0x80) this.ofAscii[codePoint] = this.#count++;
    else this.ofOthers.set(codePoint, this.#count++);
  }
}

/** Answers the code point that a character has in UTF-8, where half a surrogate pair is the replacement character. */
function codePointOf(character: string): number {
  return Buffer.from(character).toString().codePointAt(0) ?? 0;
}

/** Makes, for each number of a character, the set of places that take it. */
function masksOf(
  characters: readonly (string | null)[],
  classes: CharacterClasses,
  words: number,
): Int32Array {
  const masks = new Int32Array(classes.count * words);
  for (const [place, character] of characters.entries()) {
    const [word, bit] = [place >>> 5, 1 << (place & 31)];
    const taking = character === null ? allBelow(classes.count) : [classes.of(codePointOf(character))];
    for (const one of taking) masks[one * words + word] = (masks[one * words + word] as number) | bit;
  }
  return masks;
}

function allBelow(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at);
}

interface Prepared {
  readonly classes: CharacterClasses;
  readonly masks: Int32Array;
  /** The bit of the last character, in the last word. */
  readonly last: number;
}

/** Finds by a set of one word. Hot. */
function findShort({ classes, masks, last }: Prepared, bytes: Uint8Array, from: number, end: number): number {
  const { ofAscii } = classes;
  let set = 0;
  for (let at = from; at < end; ) {
    const byte = bytes[at] as number;
    let character: number;
    if (byte < 0x80) {
      character = ofAscii[byte] as number;
      at++;
    } else {
      character = classes.of(codePointAt(bytes, at, end));
      at = characterEnd;
    }
    set = ((set << 1) | 1) & (masks[character] as number);
    if ((set & last) !== 0) return at;
  }
  return -1;
}

/** Finds by a set of several words. Hot. */
function findLong(
  { classes, masks, last, set }: Prepared & { readonly set: Int32Array },
  bytes: Uint8Array,
  from: number,
  end: number,
): number {
  const { ofAscii } = classes;
  const words = set.length;
  set.fill(0);
  for (let at = from; at < end; ) {
    const byte = bytes[at] as number;
    let character: number;
    if (byte < 0x80) {
      character = ofAscii[byte] as number;
      at++;
    } else {
      character = classes.of(codePointAt(bytes, at, end));
      at = characterEnd;
    }
    const mask = character * words;
    let carry = 1;
    for (let word = 0; word < words; word++) {
      const before = set[word] as number;
      set[word] = ((before << 1) | carry) & (masks[mask + word] as number);
      carry = before >>> 31;
    }
    if (((set[words - 1] as number) & last) !== 0) return at;
  }
  return -1;
}

/** The end of the character that was read last: an object for each would cost more than reading it. */
let characterEnd = 0;

/** Reads one character above ASCII and leaves its end in `characterEnd`. */
function codePointAt(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at] as number;
  let codePoint = lead & (lead < 0xe0 ? 0x1f : lead < 0xf0 ? 0x0f : 0x07);
  let next = at + 1;
  for (; next < end && ((bytes[next] as number) & 0xc0) === 0x80; next++)
    codePoint = (codePoint << 6) | ((bytes[next] as number) & 0x3f);
  characterEnd = next;
  return codePoint;
}
