import { limits } from '../protocol/limits.ts';
import type { Chance } from '../test/simulation/chance.ts';
import { isPattern, quoted } from './re2-oracle.ts';
import type { SearchCase } from './search-cases.ts';

/**
 * Literals and regexes made of pieces of the texts that they are to be looked for in, changed by chance; some that match
 * nothing. The same ones for the same texts and the same chance.
 */
export interface TextCase extends SearchCase {
  readonly kind: string;
}

export interface CasesWanted {
  readonly literals: number;
  readonly regexes: number;
}

export function textCases(texts: readonly Buffer[], chance: Chance, wanted: CasesWanted): TextCase[] {
  const draw = new Drawing(texts, chance);
  // Every kind has its turn, however few are wanted.
  const literal = (i: number) => drawCase(draw, literalMakers, { i, isRegex: false });
  const regex = (i: number) => drawCase(draw, regexMakers, { i, isRegex: true });
  return [
    ...Array.from({ length: wanted.literals }, (_, i) => literal(i)),
    ...Array.from({ length: wanted.regexes }, (_, i) => regex(i)),
  ];
}

type Maker = (draw: Drawing) => string;
type Makers = Readonly<Record<string, Maker>>;

/** A drawn pattern may be too long, or none: a maker gets so many tries. */
const triesMax = 100;
const piecesLookedAt = 30;

function drawCase(
  draw: Drawing,
  makers: Makers,
  { i, isRegex }: { readonly i: number; readonly isRegex: boolean },
): TextCase {
  const names = Object.keys(makers);
  const name = names[i % names.length] ?? '';
  for (let tries = 0; tries < triesMax; tries++) {
    const query = makers[name]?.(draw) ?? '';
    if (
      isAskable(query) &&
      (isRegex ? isAllowedPattern(query) : Buffer.byteLength(query) <= limits.literalBytesMax)
    ) {
      return { query, isRegex, kind: `${isRegex ? 'regex' : 'literal'}, ${name}` };
    }
  }
  throw new Error(`nothing of the kind "${name}" could be made of these texts`);
}

function isAllowedPattern(query: string): boolean {
  return query.length <= limits.patternCharactersMax && isPattern(query);
}

/** Strings are cut between UTF-16 units here and there. */
function isAskable(query: string): boolean {
  return query !== '' && query.isWellFormed();
}

/** Characters that fold to each other across blocks, and some of which one might think that they do. */
const relatives: readonly string[] = [
  'kK\u212A',
  'sS\u017F',
  'aAªå',
  'åÅ\u212B',
  'iIİı',
  'ßẞ',
  'σςΣ',
  'µμΜ',
  'θϑϴΘ',
  'ωΩ\u2126',
  'ǆǅǄ',
  'ﬀﬁ',
  'яЯ',
  'ёЁе',
  'ꙋᲈꙊ',
  'აႠᲐ',
];

/** Pieces of texts, drawn by chance. Counts are of characters, which are never cut. */
class Drawing {
  readonly chance: Chance;
  readonly #texts: readonly Buffer[];

  constructor(texts: readonly Buffer[], chance: Chance) {
    this.#texts = texts.filter((text) => text.length > 0);
    if (this.#texts.length === 0) throw new Error('there is no text to draw from');
    this.chance = chance;
  }

  text(): Buffer {
    return this.chance.pick(this.#texts);
  }

  piece(from: number, to: number): string {
    const text = this.text();
    return this.pieceAt(text, this.chance.integer(0, text.length - 1), this.chance.integer(from, to));
  }

  /** Shorter where the text ends. */
  pieceAt(text: Buffer, offset: number, characters: number): string {
    let start = offset;
    while (((text[start] ?? 0) & 0xc0) === 0x80) start--;
    const near = text.subarray(start, start + characters * 4 + 4).toString();
    return Array.from(near).slice(0, characters).join('');
  }

  /** A word of letters and digits, as they stand in a text. */
  word(from: number, to: number): string {
    return (
      this.found(new RegExp(`(?<![\\p{L}\\p{N}_])[\\p{L}\\p{N}_]{${from},${to}}(?![\\p{L}\\p{N}_])`, 'u')) ??
      this.piece(from, to)
    );
  }

  /** Somewhere in a text; null where many pieces have none. */
  found(pattern: RegExp): string | null {
    const every = new RegExp(pattern.source, `${pattern.flags}g`);
    for (let tries = 0; tries < piecesLookedAt; tries++) {
      const all = this.piece(200, 200).match(every);
      if (all !== null) return this.chance.pick(all);
    }
    return null;
  }

  line(): string {
    const lines = this.piece(400, 400).split('\n').slice(1, -1);
    return lines.length === 0 ? this.piece(5, 30) : this.chance.pick(lines);
  }

  /** Each character through `change` with the given probability. */
  changed(text: string, probability: number, change: (character: string) => string): string {
    return Array.from(text)
      .map((character) => (this.chance.happens(probability) ? change(character) : character))
      .join('');
  }

  otherCase(text: string): string {
    return this.changed(text, 0.5, (each) =>
      this.chance.happens(0.5) ? each.toUpperCase() : each.toLowerCase(),
    );
  }

  relative(character: string): string {
    const group = relatives.find((each) => each.includes(character));
    return group === undefined ? character : this.chance.pick(Array.from(group));
  }

  absent(): string {
    return Array.from({ length: 12 }, () => String.fromCharCode(this.chance.integer(0x61, 0x7a))).join('');
  }
}

const literalMakers: Makers = {
  word: (draw) => draw.word(3, 20),
  piece: (draw) => draw.piece(3, 40),
  long: (draw) => draw.piece(60, 300),
  short: (draw) => draw.piece(1, 2),
  'other case': (draw) => draw.otherCase(draw.piece(3, 30)),
  relatives: (draw) => draw.changed(draw.piece(3, 20), 0.8, (each) => draw.relative(each)),
  'one of relatives': (draw) => draw.chance.pick(Array.from(draw.chance.pick(relatives))),
  'composed and decomposed': (draw) => draw.piece(3, 20).normalize(draw.chance.pick(['NFD', 'NFC', 'NFKD'])),
  'combining mark': (draw) =>
    draw.found(/.{0,3}\p{M}+.{0,3}/u) ??
    `${draw.word(2, 8)}${draw.chance.pick(['\u0301', '\u0345', '\u0307'])}`,
  'one character changed': (draw) => mutated(draw, draw.piece(4, 20)),
  signs: (draw) => draw.found(/[^\p{L}\p{N}]{2,}/u) ?? '',
  nothing: (draw) => draw.absent(),
};

/** One character replaced, left out or put in. */
function mutated(draw: Drawing, text: string): string {
  const characters = Array.from(text);
  const at = draw.chance.integer(0, characters.length - 1);
  const other = Array.from(draw.piece(1, 1));
  const [removed, added] = draw.chance.pick([
    [1, other],
    [1, []],
    [0, other],
  ] as const);
  characters.splice(at, removed, ...added);
  return characters.join('');
}

/** How many Unicode classes a pattern has at most: each counts as 3,000 steps of RE2's program, of which it may have `patternInstructionsMax`. */
const unicodeClassesMax = 6;

const regexMakers: Makers = {
  quoted: (draw) => quoted(draw.piece(4, 40)),
  classes: (draw) => withClasses(draw, draw.piece(5, 25)),
  alternation: (draw) => alternation(draw, () => quoted(draw.piece(3, 12))),
  'alternation in a word': (draw) => {
    const [first, second] = halves(draw, draw.word(4, 14));
    return `${first}${alternation(
      draw,
      () => second,
      () => draw.word(2, 6),
    )}`;
  },
  'start of a line': (draw) => `(?m)^${quoted(draw.line().slice(0, 12))}`,
  'end of a line': (draw) => `(?m)${quoted(draw.line().slice(-10))}\\r?$`,
  'start of a text': (draw) => draw.chance.pick(['\\A', '^']) + quoted(draw.pieceAt(draw.text(), 0, 6)),
  'end of a text': (draw) => {
    const text = draw.text();
    return quoted(draw.pieceAt(text, Math.max(0, text.length - 6), 6)) + draw.chance.pick(['\\z', '$']);
  },
  'word borders': (draw) => `\\b${quoted(draw.word(2, 12))}\\b`,
  'ignoring case': (draw) => `(?i)${quoted(draw.otherCase(draw.piece(3, 25)))}`,
  'ignoring case, relatives': (draw) =>
    `(?i)${quoted(draw.changed(draw.piece(3, 12), 0.8, (each) => draw.relative(each)))}`,
  'ignoring case, classes': (draw) => `(?i)${withClasses(draw, draw.piece(4, 16))}`,
  'case of a part': (draw) => {
    const [first, second] = halves(draw, draw.piece(4, 14));
    return `${quoted(first)}(?i:${quoted(draw.otherCase(second))})`;
  },
  'over lines': (draw) => around(draw, '(?s)', draw.chance.pick(['.*', '.*?', '.+', '.{0,80}'])),
  'within a line': (draw) => around(draw, '', draw.chance.pick(['.*', '.*?', '[^;]*', '.{1,20}'])),
  'Unicode classes': (draw) => {
    let left = unicodeClassesMax;
    return draw.changed(quoted(draw.piece(3, 10)), 0.4, (each) =>
      left-- > 0 ? unicodeClassOf(draw, each) : each,
    );
  },
  scripts: (draw) =>
    `\\p{${draw.chance.pick(['Greek', 'Cyrillic', 'Han', 'Hiragana', 'Hangul', 'Arabic', 'Devanagari'])}}` +
    `{${draw.chance.integer(1, 4)},}${draw.chance.pick(['', '\\s', '\\PL', '[0-9]', '(?:\\n|\\z)'])}`,
  repeats: (draw) => repeated(draw, draw.piece(4, 14)),
  'optional parts': (draw) => {
    const [first, second] = halves(draw, draw.piece(5, 16));
    return `${quoted(first)}(?:${quoted(draw.piece(2, 6))})?${quoted(second)}(?:${quoted(draw.piece(1, 3))})*`;
  },
  'ranges of letters and digits': (draw) =>
    `[${draw.chance.pick(['a-z', 'A-Z', '0-9a-f', 'а-я', 'ぁ-ん', '一-龥', '^\\x00-\\x7F'])}]{${draw.chance.integer(2, 9)}}` +
    quoted(draw.piece(1, 3)),
  short: (draw) =>
    draw.chance.pick(['.', '^', '$', 'q?', '\\d', '[a-f]', '(?s).\\z', '\\pL', '\\W\\n', '(?m)^$']),
  'character codes': (draw) => draw.changed(draw.piece(3, 10), 1, codeOf),
  nothing: (draw) => `${draw.absent()}[0-9]+${quoted(draw.word(3, 6))}`,
};

function halves(draw: Drawing, text: string): readonly [string, string] {
  const characters = Array.from(text);
  const cut = draw.chance.integer(1, Math.max(1, characters.length - 1));
  return [characters.slice(0, cut).join(''), characters.slice(cut).join('')];
}

function alternation(draw: Drawing, first: () => string, other: () => string = first): string {
  const parts = [first(), ...Array.from({ length: draw.chance.integer(1, 3) }, other)];
  return `(${draw.chance.happens(0.5) ? '?:' : ''}${parts.join('|')})`;
}

function codeOf(character: string): string {
  return `\\x{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Some characters become classes that hold them. */
function withClasses(draw: Drawing, text: string): string {
  return Array.from(text)
    .map((each) => (draw.chance.happens(0.3) ? classOf(draw, each) : quoted(each)))
    .join('');
}

function classOf(draw: Drawing, character: string): string {
  const others = Array.from({ length: draw.chance.integer(0, 3) }, () => codeOf(draw.piece(1, 1)));
  const listed = `[${[codeOf(character), ...others].join('')}]`;
  const perl = /\w/.test(character)
    ? /\d/.test(character)
      ? '\\d'
      : '\\w'
    : /[ \t\n]/.test(character)
      ? '\\s'
      : '\\W';
  return draw.chance.pick([listed, listed, perl, '.', `[^${codeOf(draw.piece(1, 1))}]`]);
}

function unicodeClassOf(draw: Drawing, character: string): string {
  // A backslash stands before a sign, and is nothing alone.
  if (character === '\\') return character;
  if (/\p{Lu}/u.test(character)) return draw.chance.pick(['\\p{Lu}', '\\pL', '\\P{Ll}']);
  if (/\p{L}/u.test(character)) return draw.chance.pick(['\\pL', '\\p{L}+', '\\P{N}', '[\\pL\\pM]+']);
  if (/\p{N}/u.test(character)) return draw.chance.pick(['\\pN', '\\p{Nd}', '[\\pN.]+']);
  return character;
}

/** Two pieces that stand near each other in a text, and something between. */
function around(draw: Drawing, flags: string, between: string): string {
  const near = Array.from(draw.piece(60, 60));
  const cut = draw.chance.integer(10, 50);
  const [first, second] = [near.slice(0, 8).join(''), near.slice(cut, cut + 6).join('')];
  return `${flags}${quoted(first)}${between}${quoted(second)}`;
}

function repeated(draw: Drawing, text: string): string {
  return Array.from(text)
    .map((each) => {
      const times = draw.chance.pick(['+', '*', '?', '+?', '{1,3}', '{1,}']);
      return draw.chance.happens(0.25) ? `(?:${quoted(each)})${times}` : quoted(each);
    })
    .join('');
}
