/** [a-z^\d[:alpha:]\pL] and the classes that have a name of their own. */
import { complementOf, hasLineFeed, rangesOf, unionOf, withOrbits } from './code-point-ranges.ts';
import { parseEscape } from './parse-escape.ts';
import { NotUnderstood, type PatternScanner } from './pattern-scanner.ts';
import type { Ranges, RegexNode } from './regex-syntax.ts';

const ascii = (text: string): Ranges =>
  rangesOf(Array.from(text.matchAll(/(.)-(.)/gsu), ([, a, b]) => [code(a), code(b)] as const));
const code = (character: string | undefined): number => character?.codePointAt(0) ?? 0;

const wordCharacters = ascii('0-9A-Z_-_a-z');

/** \d, \s, \w: ASCII only, in RE2. \s has no vertical tab, [:space:] has. */
const perlClasses: ReadonlyMap<string, Ranges> = new Map([
  ['d', ascii('0-9')],
  ['s', ascii('\t-\n\f-\r - ')],
  ['w', wordCharacters],
]);

const posixClasses: ReadonlyMap<string, Ranges> = new Map([
  ['alnum', ascii('0-9A-Za-z')],
  ['alpha', ascii('A-Za-z')],
  ['ascii', ascii('\x00-\x7f')],
  ['blank', ascii('\t-\t - ')],
  ['cntrl', ascii('\x00-\x1f\x7f-\x7f')],
  ['digit', ascii('0-9')],
  ['graph', ascii('!-~')],
  ['lower', ascii('a-z')],
  ['print', ascii(' -~')],
  ['punct', ascii('!-/:-@[-`{-~')],
  ['space', ascii('\t-\r - ')],
  ['upper', ascii('A-Z')],
  ['word', wordCharacters],
  ['xdigit', ascii('0-9A-Fa-f')],
]);

/** Where `\d`, `\S` and the like stand: goes past it. */
export function parsePerlClass(scanner: PatternScanner, ignoresCase: boolean): Ranges | null {
  if (scanner.peek() !== code('\\')) return null;
  const letter = String.fromCodePoint(Math.max(scanner.peek(1), 0));
  const ranges = perlClasses.get(letter.toLowerCase());
  if (ranges === undefined) return null;
  scanner.at += 2;
  return groupOf(ranges, letter !== letter.toLowerCase(), ignoresCase);
}

type UnicodeClass = Extract<RegexNode, { readonly kind: 'unicode-class' }>;

/** Control characters are in these groups and in no others. */
const groupsOfControls = new Set(['Any', 'C', 'Cc', 'Common']);

/** Where \pL, \p{Greek} or \P{^Lu} stand: goes past it. Which names there are is left to RE2. */
export function parseUnicodeGroup(scanner: PatternScanner): UnicodeClass | null {
  const isNegated = scanner.skip('\\P');
  if (!isNegated && !scanner.skip('\\p')) return null;
  const letter = scanner.next();
  const name = letter === code('{') ? scanner.until('}') : String.fromCodePoint(letter);
  if (name === null) throw new NotUnderstood();
  const isComplement = isNegated !== name.startsWith('^');
  return {
    kind: 'unicode-class',
    mayTakeLineFeed: isComplement !== groupsOfControls.has(name.replace('^', '')),
  };
}

/** The scanner stands at `[`. */
export function parseCharacterClass(scanner: PatternScanner, ignoresCase: boolean): RegexNode {
  scanner.skip('[');
  const isNegated = scanner.skip('^');
  const own: (readonly [number, number])[] = [];
  let groups: Ranges = [];
  const unicode: UnicodeClass[] = [];
  for (let isFirst = true; isFirst || scanner.peek() !== code(']'); isFirst = false) {
    const group = parsePosixClass(scanner, ignoresCase) ?? parseUnicodeGroup(scanner);
    if (group !== null && 'kind' in group) unicode.push(group);
    else if (group !== null) groups = unionOf(groups, group);
    else {
      const perl = parsePerlClass(scanner, ignoresCase);
      if (perl !== null) groups = unionOf(groups, perl);
      else own.push(parseRange(scanner));
    }
  }
  scanner.skip(']');
  const characters = rangesOf(own);
  const ranges = unionOf(groups, ignoresCase ? withOrbits(characters) : characters);
  if (unicode.length === 0) return { kind: 'class', ranges: isNegated ? complementOf(ranges) : ranges };
  const mayTakeLineFeed = isNegated || hasLineFeed(ranges) || unicode.some((group) => group.mayTakeLineFeed);
  return { kind: 'unicode-class', mayTakeLineFeed };
}

/** Where [:alpha:] or [:^alpha:] stand: goes past it. Without its end, the bracket is one more character. */
function parsePosixClass(scanner: PatternScanner, ignoresCase: boolean): Ranges | null {
  if (!scanner.startsWith('[:')) return null;
  const start = scanner.at;
  scanner.at += 2;
  let name = scanner.until(':');
  // A colon by itself belongs to the name, which is then none that there is.
  while (name !== null && scanner.peek() !== code(']')) {
    const more = scanner.until(':');
    name = more === null ? null : `${name}:${more}`;
  }
  if (name === null) {
    scanner.at = start;
    return null;
  }
  scanner.skip(']');
  const ranges = posixClasses.get(name.replace(/^\^/, ''));
  if (ranges === undefined) throw new NotUnderstood();
  return groupOf(ranges, name.startsWith('^'), ignoresCase);
}

/** Negated after folding: (?i)\W has no long s, which is a word character then. */
function groupOf(ranges: Ranges, isNegated: boolean, ignoresCase: boolean): Ranges {
  const folded = ignoresCase ? withOrbits(ranges) : ranges;
  return isNegated ? complementOf(folded) : folded;
}

function parseRange(scanner: PatternScanner): readonly [first: number, last: number] {
  const first = parseClassCharacter(scanner);
  if (scanner.peek() !== code('-') || scanner.peek(1) === code(']') || scanner.peek(1) < 0)
    return [first, first];
  scanner.skip('-');
  const last = parseClassCharacter(scanner);
  if (last < first) throw new NotUnderstood();
  return [first, last];
}

function parseClassCharacter(scanner: PatternScanner): number {
  return scanner.peek() === code('\\') ? parseEscape(scanner) : scanner.next();
}
