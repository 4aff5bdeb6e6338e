/**
 * The door to RE2: the only judge of a match, literal or regex, always on UTF-8 bytes, so that a literal and its
 * regex can't disagree and offsets are byte offsets. What a pattern costs is known before it comes here: query-pattern.ts.
 */
import RE2 from 're2';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { withGroups } from './capture-groups.ts';
import { writeOutLiteral, writeOutText } from './quoted-text.ts';

export interface Matcher {
  test(text: Buffer): boolean;
  /** The leftmost match at or after a byte offset; null where there is none. */
  find(text: Buffer, from: number): Match | null;
}

export interface Match {
  readonly start: number;
  readonly end: number;
  /** What the wanted groups matched, in the order of their numbers; null for one that took no part. */
  readonly groups: readonly (Uint8Array | null)[];
}

/**
 * Compiles plain text, matched literally and ignoring case, or an RE2 pattern, case-sensitive unless it begins with (?i).
 * `groups` are the numbers of those that a find tells of. Throws ApiError 422 for what RE2 refuses.
 */
export function compileMatcher(
  query: string,
  isRegex: boolean,
  groups: ReadonlySet<number> = noGroups,
): Matcher {
  refuseLong(query, isRegex);
  if (!isRegex) return matcherOf(writeOutLiteral(query), { flags: 'i', groups });
  try {
    return matcherOf(writeOutText(query), { flags: '', groups });
  } catch (error) {
    throw refusal(`not a valid RE2 regex: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const noGroups: ReadonlySet<number> = new Set();

/** Throws ApiError 422 for a pattern or a literal that is longer than may be asked for. */
export function refuseLong(query: string, isRegex: boolean): void {
  if (isRegex && query.length > limits.patternCharactersMax)
    throw refusal(`a regex may have at most ${limits.patternCharactersMax} characters`);
  if (!isRegex && Buffer.byteLength(query) > limits.literalBytesMax)
    throw refusal(`text to search for may have at most ${limits.literalBytesMax} bytes`);
}

/** A 422 that blames the query; whoever asked by another name says so instead. */
export function refusal(problem: string): ApiError {
  return new ApiError('invalid', `q: ${problem}`, { fields: { q: problem } });
}

/**
 * Replaces all matches at once, for texts so short that this can't be long (replace-matches.ts): `template` is written as
 * JavaScript's. The pattern captures the groups of the template alone.
 */
export function compileReplacer(
  query: string,
  groups: ReadonlySet<number>,
  template: string,
): (text: Buffer) => Buffer {
  const compiled = new RE2(withGroups(writeOutText(query), (group) => groups.has(group)).pattern, 'g');
  const written = Buffer.from(template);
  return (text) => compiled.replace(text, written);
}

function matcherOf(
  pattern: string,
  { flags, groups }: { readonly flags: string; readonly groups: ReadonlySet<number> },
): Matcher {
  // Without the global flag a test need not find out where the match ends, which spares RE2 a pass.
  const tester = new RE2(pattern, flags);
  // Most texts that are looked at have no match.
  let finder: RE2 | null = null;
  return {
    test: (text) => tester.test(text as unknown as string),
    find(text, from) {
      finder ??= new RE2(withGroups(pattern, (group) => groups.has(group)).pattern, `${flags}g`);
      finder.lastIndex = from;
      const found = finder.exec(text as unknown as string) as unknown as FoundBytes | null;
      if (found === null) return null;
      return { start: found.index, end: found.index + found[0].length, groups: groupsOf(found) };
    },
  };
}

type FoundBytes = readonly [Buffer, ...(Buffer | undefined)[]] & { readonly index: number };

const noneFound: readonly (Uint8Array | null)[] = [];

function groupsOf(found: FoundBytes): readonly (Uint8Array | null)[] {
  return found.length === 1 ? noneFound : found.slice(1).map((group) => group ?? null);
}
