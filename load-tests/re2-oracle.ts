import RE2 from 're2';
import { limits } from '../protocol/limits.ts';
import type { Oracle, Place } from './check-search.ts';
import type { SearchCase } from './search-cases.ts';

/**
 * RE2 run over every document, from its first byte: what the server must answer, found without anything of the server's.
 * The load tests' own door to RE2; the product has another.
 */
export function re2Oracle(texts: ReadonlyMap<string, Buffer>): Oracle {
  // What the last case matched: its places are asked for right after it.
  let known: { readonly asked: SearchCase; readonly ranges: ReadonlyMap<string, Range> } | null = null;
  const rangesOf = (asked: SearchCase) => {
    if (known?.asked !== asked) known = { asked, ranges: firstRanges(texts, asked) };
    return known.ranges;
  };
  return {
    async matching(asked) {
      return new Set(rangesOf(asked).keys());
    },
    async firstMatches(asked, ids) {
      const ranges = rangesOf(asked);
      return new Map(ids.map((id) => [id, placeOf(texts.get(id), ranges.get(id))]));
    },
    allMatches(asked, id) {
      const text = texts.get(id) ?? Buffer.alloc(0);
      return allRanges(text, asked).map((range) => placeOf(text, range));
    },
  };
}

/** How many of the documents match. */
export function countMatching(texts: Iterable<Buffer>, asked: SearchCase): number {
  const pattern = compiled(asked);
  let count = 0;
  for (const text of texts) if (pattern.test(text as unknown as string)) count++;
  return count;
}

export function isPattern(pattern: string): boolean {
  try {
    compiled({ query: pattern, isRegex: true });
    return true;
  } catch {
    return false;
  }
}

/** A pattern that matches the text and nothing else. */
export function quoted(text: string): string {
  return text
    .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    .replaceAll('\0', '\\x00')
    .replaceAll('\n', '\\n');
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function compiled({ query, isRegex }: SearchCase, flags = ''): RE2 {
  return new RE2(isRegex ? query : `(?i)${quoted(query)}`, flags);
}

function firstRanges(texts: ReadonlyMap<string, Buffer>, asked: SearchCase): Map<string, Range> {
  const pattern = compiled(asked);
  const ranges = new Map<string, Range>();
  for (const [id, text] of texts) {
    // Of bytes RE2 answers bytes, and its index counts them.
    const match = pattern.exec(text as unknown as string) as unknown as { index: number; 0: Buffer } | null;
    if (match !== null) ranges.set(id, { start: match.index, end: match.index + match[0].length });
  }
  return ranges;
}

/** As a replacement of all matches goes through them: by RE2's own steps. At most so many as an answer shows. */
function allRanges(text: Buffer, asked: SearchCase): Range[] {
  const ranges: Range[] = [];
  const note = (match: Buffer, ...groups: readonly unknown[]) => {
    const start = groups.find((each) => typeof each === 'number') ?? 0;
    if (ranges.length < limits.matchesMax) ranges.push({ start, end: start + match.length });
    return match;
  };
  // With this mark the function is called with bytes, and the place is counted in bytes.
  const replacer = Object.assign(note, { useBuffers: true });
  compiled(asked, 'g').replace(text as unknown as string, replacer as unknown as string);
  return ranges;
}

function placeOf(text: Buffer | undefined, range: Range | undefined): Place {
  if (text === undefined || range === undefined)
    throw new Error('asked for the place of a text without a match');
  let lineNumber = 1;
  for (let at = text.indexOf(0x0a); at >= 0 && at < range.start; at = text.indexOf(0x0a, at + 1))
    lineNumber++;
  return { ...range, lineNumber };
}
