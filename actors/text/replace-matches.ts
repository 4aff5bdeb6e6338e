/**
 * Replaces every match of a pattern, on top of finds of one match (find-match.ts): RE2's own replacing can't be stopped, begins
 * its search again after each match, and its output may grow to a gigabyte before anybody sees it.
 *
 * 1. A text so short that RE2 can't be long about it, whatever it holds, and whose output must fit, is replaced by RE2 in one
 *    call. Nearly all texts are.
 * 2. Of others one match is found after the other, in turns. What stands before it and what replaces it are put out, and how
 *    much that is, is looked at before the next.
 * 3. A match may begin where the one before it ended. After an empty one, the next character is put out as it is.
 */

import { limits } from '../../protocol/limits.ts';
import { withGroups } from './capture-groups.ts';
import { type FindSurroundings, findPasses, MatchFinder } from './find-match.ts';
import { beginsAtText } from './match-length.ts';
import { parseRegex } from './parse-regex.ts';
import type { QueryPattern, QueryPatterns } from './query-pattern.ts';
import { writeOutText } from './quoted-text.ts';
import { compileReplacer, type Match, refusal } from './regex.ts';

/** `late` where the time of the query was over before all was replaced, `too-large` where there is no room for it. */
export type ReplacedSlowly = Buffer | 'late' | 'too-large';

/** What matches are replaced by. */
interface Template {
  /** Texts, and places among the groups that a find tells of; -1 is the match itself. */
  readonly parts: readonly (Buffer | number)[];
  readonly literalBytes: number;
  readonly references: number;
  /** As JavaScript writes it, for RE2's binding. */
  readonly written: string;
}

export class MatchReplacer {
  readonly #pattern: QueryPattern;
  readonly #template: Template;
  readonly #finder: MatchFinder;
  readonly #surroundings: FindSurroundings;
  readonly #bytesMax: number;
  readonly #matchesOnce: boolean;
  #atOnce: ((text: Buffer) => Buffer) | null = null;

  /** `bytesMax`: what may be made of one text. Throws ApiError 422 for a pattern that is wrong or too large, and for a replacement that names a group that is none. */
  constructor(
    { query, replacement, patterns }: { query: string; replacement: string; patterns: QueryPatterns },
    surroundings: FindSurroundings,
    bytesMax: number = limits.sqlReplacedBytesMax,
  ) {
    const groups = groupsNamed(replacement);
    this.#pattern = patterns.of(query, true, new Set(groups));
    refuseMissing(query, groups);
    this.#template = templateOf(replacement, groups);
    this.#finder = new MatchFinder(this.#pattern, surroundings);
    this.#surroundings = surroundings;
    this.#bytesMax = bytesMax;
    this.#matchesOnce = beginsAtText(parseRegex(query));
  }

  /** The text with every match replaced, where RE2 can't be long about it; null for other texts. */
  quickly(text: Buffer): Buffer | null {
    if (!this.#isQuick(text.length)) return null;
    this.#atOnce ??= compileReplacer(this.#pattern.query, this.#pattern.groups, this.#template.written);
    return this.#atOnce(text);
  }

  /** The same in turns, for any text. Throws ApiError 422 where the pattern is too costly for the text. */
  async slowly(text: Buffer): Promise<ReplacedSlowly> {
    const { turns } = this.#surroundings;
    const output = new Output(this.#bytesMax);
    let at = 0;
    while (at <= text.length) {
      const match = await this.#finder.first(text, { start: at, end: text.length }, false);
      if (match === 'late') return 'late';
      if (match === null) break;
      output.add(text.subarray(at, match.start));
      this.#addReplacement(output, text, match);
      if (output.isFull) return 'too-large';
      at = match.end;
      if (match.end === match.start) {
        if (at === text.length) break;
        at = nextCharacter(text, at);
        output.add(text.subarray(match.end, at));
      }
      if (!turns.due()) continue;
      await turns.giveWay();
      if (turns.timedOut) return 'late';
    }
    output.add(text.subarray(at));
    return output.isFull ? 'too-large' : output.bytes;
  }

  /** Whether one call of RE2 takes at most `limits.matchInlineMsMax` and what it makes fits, whatever such a text holds. */
  #isQuick(length: number): boolean {
    const { literalBytes, references } = this.#template;
    const made = length + this.#matchesIn(length) * literalBytes + references * length;
    if (made > Math.min(this.#bytesMax, madeAtOnceBytesMax)) return false;
    return this.nanosecondsFor(length) <= limits.matchInlineMsMax * 1e6;
  }

  #matchesIn(length: number): number {
    return this.#matchesOnce ? 1 : length + 1;
  }

  /** Answers how many nanoseconds one call of RE2 takes at most, whatever a text of so many bytes holds. */
  nanosecondsFor(length: number): number {
    const { nanoseconds, bytesMax } = this.#pattern;
    const matches = this.#matchesIn(length);
    // Each search begins after the match before, and may read to the end of the text, or as far as a match can reach.
    const read = Math.min(
      (length * (length + 3)) / 2,
      (length + 1) * (bytesMax + 2),
      (matches + 1) * (length + 1),
    );
    // Where a match begins that begins with the text needs no second pass.
    const passes = this.#matchesOnce ? 1 : findPasses;
    return read * nanoseconds * passes;
  }

  #addReplacement(output: Output, text: Buffer, match: Match): void {
    for (const part of this.#template.parts) {
      if (typeof part !== 'number') output.add(part);
      else if (part < 0) output.add(text.subarray(match.start, match.end));
      else output.add(match.groups[part] ?? nothing);
      if (output.isFull) return;
    }
  }
}

/** What one call may make: it is written to new memory twice, up to 4 ms a megabyte. */
const madeAtOnceBytesMax = 2 ** 20;
const nothing = Buffer.alloc(0);

/** Bytes that are put together, up to a bound: what goes beyond it is not kept. */
class Output {
  readonly #bytesMax: number;
  #buffer = Buffer.alloc(1_024);
  #length = 0;
  isFull = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytesMax) this.isFull = true;
    if (this.isFull) return;
    if (length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.min(Math.max(length, this.#buffer.length * 2), this.#bytesMax));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#length);
    this.#length = length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** As RE2's binding goes on after an empty match: by what the byte there says of its character's length. */
function nextCharacter(text: Buffer, at: number): number {
  const byte = text[at] as number;
  const length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  return Math.min(at + length, text.length);
}

const written = /\\(\d|\\)/gu;

/** The numbers that stand in a replacement behind a backslash, ascending, but for 0, which is the whole match. */
function groupsNamed(replacement: string): readonly number[] {
  const named = new Set<number>();
  for (const [, escaped] of replacement.matchAll(written)) {
    if (escaped !== '\\' && escaped !== '0') named.add(Number(escaped));
  }
  return [...named].sort((a, b) => a - b);
}

function refuseMissing(query: string, groups: readonly number[]): void {
  const { groupCount } = withGroups(writeOutText(query), () => false);
  const missing = groups.find((group) => group > groupCount);
  if (missing === undefined) return;
  const there =
    groupCount === 0 ? 'has no groups' : groupCount === 1 ? 'has one group' : `has ${groupCount} groups`;
  throw refusal(
    `the replacement names "\\${missing}", and the pattern ${there}: put what is wanted in parentheses`,
  );
}

/** `\1` to `\9` are groups, `\0` is the match, `\\` a backslash, and all else is text. */
function templateOf(replacement: string, groups: readonly number[]): Template {
  const parts: (Buffer | number)[] = [];
  let inJavaScript = '';
  let at = 0;
  const addText = (text: string) => {
    if (text === '') return;
    parts.push(Buffer.from(text));
    inJavaScript += text.replaceAll('$', '$$$$');
  };
  for (const found of replacement.matchAll(written)) {
    addText(replacement.slice(at, found.index));
    at = found.index + found[0].length;
    const [, escaped = ''] = found;
    if (escaped === '\\') addText('\\');
    else if (escaped === '0') {
      parts.push(-1);
      inJavaScript += '$&';
    } else {
      const place = groups.indexOf(Number(escaped));
      parts.push(place);
      inJavaScript += `$${place + 1}`;
    }
  }
  addText(replacement.slice(at));
  const texts = parts.filter((part) => typeof part !== 'number');
  return {
    parts,
    literalBytes: texts.reduce((sum, { length }) => sum + length, 0),
    references: parts.length - texts.length,
    written: inJavaScript,
  };
}
