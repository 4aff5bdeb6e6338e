import { parseCharacterClass, parsePerlClass, parseUnicodeGroup } from './parse-character-class.ts';
import { parseEscape } from './parse-escape.ts';
import { NotUnderstood, PatternScanner } from './pattern-scanner.ts';
import { writeOutText } from './quoted-text.ts';
import { patternForRe2 } from './re2-pattern.ts';
import { anything, emptyText, type RegexNode } from './regex-syntax.ts';

/**
 * RE2's syntax, with the flags that our door to RE2 sets: Perl's classes and groups, (?-msU), UTF-8. One pass over the
 * pattern with a stack of open groups of our own, so that no pattern is too deep for it.
 *
 * Never throws. RE2 decides whether a pattern is valid; one that this parser does not understand is `anything`.
 */
export function parseRegex(pattern: string): RegexNode {
  const scanner = new PatternScanner(patternForRe2(writeOutText(pattern)));
  const parser = new RegexParser();
  try {
    while (!scanner.isAtEnd) parseItem(scanner, parser);
    return parser.finish();
  } catch (error) {
    if (error instanceof NotUnderstood) return anything;
    throw error;
  }
}

/** Groups within groups: whoever walks the tree may call itself for each. RE2 takes no more in 1,000 characters. */
const depthMax = 1_000;
/** RE2 refuses more repetitions. */
const repetitionsMax = 1_000;

interface Flags {
  readonly ignoresCase: boolean;
  readonly dotTakesLineFeed: boolean;
  readonly isByLines: boolean;
}

/** A group that is still open. */
interface Frame {
  readonly isCapture: boolean;
  readonly flagsOutside: Flags;
  readonly branches: RegexNode[];
  /** The current branch; a literal stands here as one node a character, since a repetition takes the last only. */
  parts: RegexNode[];
}

class RegexParser {
  flags: Flags = { ignoresCase: false, dotTakesLineFeed: false, isByLines: false };
  /** Whether a repetition was just read: another may not follow at once. */
  #isAfterRepetition = false;
  #frame: Frame = newFrame(false, this.flags);
  readonly #outer: Frame[] = [];

  push(node: RegexNode): void {
    this.#frame.parts.push(node);
  }

  pushLiteral(codePoint: number): void {
    // RE2 takes half a surrogate pair for the replacement character, or for nothing that a text has.
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) this.push(anything);
    else this.push({ kind: 'literal', codePoints: [codePoint], ignoresCase: this.flags.ignoresCase });
  }

  /** Before each item: whether the one before was a repetition. */
  takeAfterRepetition(): boolean {
    const isAfter = this.#isAfterRepetition;
    this.#isAfterRepetition = false;
    return isAfter;
  }

  repeat(min: number, max: number | null): void {
    const part = this.#frame.parts.pop();
    if (part === undefined) throw new NotUnderstood();
    this.push({ kind: 'repeat', part, min, max });
    this.#isAfterRepetition = true;
  }

  open(isCapture: boolean): void {
    if (this.#outer.length >= depthMax) throw new NotUnderstood();
    this.#outer.push(this.#frame);
    this.#frame = newFrame(isCapture, this.flags);
  }

  close(): void {
    const outer = this.#outer.pop();
    if (outer === undefined) throw new NotUnderstood();
    const part = nodeOf(this.#frame);
    this.flags = this.#frame.flagsOutside;
    const isCapture = this.#frame.isCapture;
    this.#frame = outer;
    this.push(isCapture ? { kind: 'capture', part } : part);
  }

  nextBranch(): void {
    this.#frame.branches.push(concatenationOf(this.#frame.parts));
    this.#frame.parts = [];
  }

  finish(): RegexNode {
    if (this.#outer.length > 0) throw new NotUnderstood();
    return nodeOf(this.#frame);
  }
}

function newFrame(isCapture: boolean, flagsOutside: Flags): Frame {
  return { isCapture, flagsOutside, branches: [], parts: [] };
}

function nodeOf(frame: Frame): RegexNode {
  const last = concatenationOf(frame.parts);
  return frame.branches.length === 0 ? last : { kind: 'alternation', parts: [...frame.branches, last] };
}

/** Neighbouring characters become one literal. */
function concatenationOf(items: readonly RegexNode[]): RegexNode {
  const parts: RegexNode[] = [];
  let run: { readonly codePoints: number[]; readonly ignoresCase: boolean } | null = null;
  for (const item of items) {
    if (item.kind !== 'literal') {
      run = null;
      parts.push(item);
    } else if (run !== null && run.ignoresCase === item.ignoresCase) {
      run.codePoints.push(...item.codePoints);
    } else {
      run = { codePoints: [...item.codePoints], ignoresCase: item.ignoresCase };
      parts.push({ kind: 'literal', ...run });
    }
  }
  const [first] = parts;
  if (first === undefined) return emptyText;
  return parts.length === 1 ? first : { kind: 'concatenation', parts };
}

const lineFeed = 0x0a;
const anyCharacter: RegexNode = { kind: 'class', ranges: [0, 0x10ffff] };
const anyButLineFeed: RegexNode = { kind: 'class', ranges: [0, lineFeed - 1, lineFeed + 1, 0x10ffff] };
const assertion: RegexNode = { kind: 'assertion', isWordBoundary: false };
const textBegin: RegexNode = { kind: 'assertion', isWordBoundary: false, isTextBegin: true };
const wordBoundary: RegexNode = { kind: 'assertion', isWordBoundary: true };

function parseItem(scanner: PatternScanner, parser: RegexParser): void {
  const isAfterRepetition = parser.takeAfterRepetition();
  switch (String.fromCodePoint(scanner.peek())) {
    case '(':
      return parseOpening(scanner, parser);
    case ')':
      scanner.next();
      return parser.close();
    case '|':
      scanner.next();
      return parser.nextBranch();
    case '^':
      scanner.next();
      return parser.push(parser.flags.isByLines ? assertion : textBegin);
    case '$':
      scanner.next();
      return parser.push(assertion);
    case '.':
      scanner.next();
      return parser.push(parser.flags.dotTakesLineFeed ? anyCharacter : anyButLineFeed);
    case '[':
      return parser.push(parseCharacterClass(scanner, parser.flags.ignoresCase));
    case '*':
    case '+':
    case '?':
    case '{':
      return parseRepetition(scanner, parser, isAfterRepetition);
    case '\\':
      return parseBackslash(scanner, parser);
    default:
      return parser.pushLiteral(scanner.next());
  }
}

function parseOpening(scanner: PatternScanner, parser: RegexParser): void {
  if (!scanner.startsWith('(?')) {
    scanner.next();
    parser.open(true);
  } else if (scanner.skip('(?P<') || scanner.skip('(?<')) {
    if (scanner.until('>') === null) throw new NotUnderstood();
    parser.open(true);
  } else {
    parseFlags(scanner, parser);
  }
}

/** (?i), (?s-i), (?m: and the like. They hold to the end of the group they stand in, or within the one they open. */
function parseFlags(scanner: PatternScanner, parser: RegexParser): void {
  scanner.skip('(?');
  let { ignoresCase, dotTakesLineFeed, isByLines } = parser.flags;
  let isOn = true;
  for (;;) {
    const letter = String.fromCodePoint(scanner.next());
    if (letter === ':' || letter === ')') {
      if (letter === ':') parser.open(false);
      parser.flags = { ignoresCase, dotTakesLineFeed, isByLines };
      return;
    }
    if (letter === '-' && isOn) isOn = false;
    else if (letter === 'i') ignoresCase = isOn;
    else if (letter === 's') dotTakesLineFeed = isOn;
    else if (letter === 'm') isByLines = isOn;
    // How greedy repetitions are is of no interest here.
    else if (letter !== 'U') throw new NotUnderstood();
  }
}

function parseRepetition(scanner: PatternScanner, parser: RegexParser, isAfterRepetition: boolean): void {
  const bounds = parseBounds(scanner);
  if (bounds === null) return parser.pushLiteral(scanner.next());
  scanner.skip('?');
  const { min, max } = bounds;
  if (isAfterRepetition || min > (max ?? repetitionsMax) || (max ?? 0) > repetitionsMax)
    throw new NotUnderstood();
  parser.repeat(min, max);
}

interface Bounds {
  readonly min: number;
  readonly max: number | null;
}

/** Null where a brace begins no {n}, {n,} or {n,m}: it is a character then, and the scanner stays before it. */
function parseBounds(scanner: PatternScanner): Bounds | null {
  if (scanner.skip('*')) return { min: 0, max: null };
  if (scanner.skip('+')) return { min: 1, max: null };
  if (scanner.skip('?')) return { min: 0, max: 1 };
  const start = scanner.at;
  scanner.skip('{');
  const min = scanner.number();
  let max = min;
  if (min !== null && scanner.skip(',')) max = scanner.peek() === 0x7d ? null : scanner.number();
  if (min !== null && scanner.skip('}')) return { min, max };
  scanner.at = start;
  return null;
}

function parseBackslash(scanner: PatternScanner, parser: RegexParser): void {
  if (scanner.skip('\\A')) return parser.push(textBegin);
  if (scanner.skip('\\z')) return parser.push(assertion);
  for (const letter of ['b', 'B']) if (scanner.skip(`\\${letter}`)) return parser.push(wordBoundary);
  if (scanner.skip('\\C')) return parser.push({ kind: 'byte' });
  if (scanner.skip('\\Q')) {
    while (!scanner.isAtEnd && !scanner.skip('\\E')) parser.pushLiteral(scanner.next());
    return;
  }
  const unicode = parseUnicodeGroup(scanner);
  if (unicode !== null) return parser.push(unicode);
  const ranges = parsePerlClass(scanner, parser.flags.ignoresCase);
  if (ranges !== null) return parser.push({ kind: 'class', ranges });
  parser.pushLiteral(parseEscape(scanner));
}
