import RE2 from 're2';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { writeOutLiteral, writeOutText } from './quoted-text.ts';

/**
 * The door to RE2: the only judge of a match, literal or regex, always on UTF-8 bytes, so that a literal and its
 * regex can't disagree and offsets are byte offsets.
 */
export interface Matcher {
  test(text: Buffer): boolean;
  /** The leftmost match at or after a byte offset; null where there is none. */
  find(text: Buffer, from: number): { readonly start: number; readonly end: number } | null;
}

/** Plain text, matched literally and ignoring case, or an RE2 pattern, case-sensitive unless it begins with (?i). */
export function compileMatcher(query: string, isRegex: boolean): Matcher {
  return isRegex ? compilePattern(query) : compileLiteral(query);
}

function compilePattern(pattern: string): Matcher {
  if (pattern.length > limits.patternCharactersMax) {
    throw refusal(`a regex may have at most ${limits.patternCharactersMax} characters`);
  }
  try {
    return matcherOf(writeOutText(pattern), '');
  } catch (error) {
    throw refusal(`not a valid RE2 regex: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function compileLiteral(text: string): Matcher {
  if (Buffer.byteLength(text) > limits.literalBytesMax) {
    throw refusal(`text to search for may have at most ${limits.literalBytesMax} bytes`);
  }
  return matcherOf(writeOutLiteral(text), 'i');
}

/** Every match of an RE2 pattern in UTF-8 → the replacement, in which `\\1` is what the first group matched. Throws ApiError. */
export function compileReplacer(pattern: string, replacement: string): (text: Buffer) => Buffer {
  if (pattern.length > limits.patternCharactersMax)
    throw refusal(`a regex may have at most ${limits.patternCharactersMax} characters`);
  let compiled: RE2;
  try {
    compiled = new RE2(pattern, 'g');
  } catch (error) {
    throw refusal(`not a valid RE2 regex: ${error instanceof Error ? error.message : String(error)}`);
  }
  const written = Buffer.from(asTemplate(replacement));
  return (text) => compiled.replace(text, written);
}

/** `\\1` and `\\\\` as the package writes them. */
function asTemplate(replacement: string): string {
  return replacement.replace(/\$|\\(\d|\\)/gu, (_, escaped: string | undefined) => {
    if (escaped === undefined) return '$$';
    return escaped === '\\' ? '\\' : escaped === '0' ? '$&' : `$${escaped}`;
  });
}

function refusal(problem: string): ApiError {
  return new ApiError('invalid', `q: ${problem}`, { fields: { q: problem } });
}

function matcherOf(pattern: string, flags: string): Matcher {
  // Without the global flag a test need not find out where the match ends, which spares RE2 a pass.
  const tester = new RE2(pattern, flags);
  // Most texts that are looked at have no match.
  let finder: RE2 | null = null;
  return {
    test: (text) => tester.test(text as unknown as string),
    find(text, from) {
      finder ??= new RE2(pattern, `${flags}g`);
      finder.lastIndex = from;
      const match = finder.exec(text as unknown as string) as unknown as { index: number; 0: Buffer } | null;
      return match === null ? null : { start: match.index, end: match.index + match[0].length };
    },
  };
}
