import { threadCpuMs } from '../../src/base/thread-cpu.ts';
import { compileMatcher, type Match, type Matcher } from './regex.ts';

/** A call of RE2 that is made on a thread that nobody else waits for: one piece of a text (match-pieces.ts). */
export interface MatchTask {
  readonly task: 'match';
  readonly query: string;
  readonly isRegex: boolean;
  /** UTF-8, of its own. */
  readonly text: Uint8Array;
  /** Only matches that begin from here on, and before `below`, count. */
  readonly from: number;
  readonly below: number;
  /** Whether it is enough to know that there is one. */
  readonly isTest: boolean;
  /** Numbers of the groups that are asked for. */
  readonly groups: readonly number[];
}

export interface MatchAnswer {
  /** Null: there is none. */
  readonly match: Match | null;
  /** What the other thread took, in CPU time. */
  readonly cpuMs: number;
}

/** Has the call made elsewhere; the text is moved. Rejects with ApiError 429 where too many wait. */
export type MatchElsewhere = (task: MatchTask) => Promise<MatchAnswer>;

/** The first match of a piece that counts; where a test is enough, one whose place is not told. */
export function findInPiece(
  matcher: Matcher,
  text: Buffer,
  { from, below, isTest }: { readonly from: number; readonly below: number; readonly isTest: boolean },
): Match | null {
  if (!matcher.test(text)) return null;
  // A test knows nothing of what must not count.
  if (isTest && from === 0 && below > text.length) return somewhere;
  const match = matcher.find(text, from);
  return match === null || match.start >= below ? null : match;
}

/** A match of which only is known that there is one. */
export const somewhere: Match = { start: 0, end: 0, groups: [] };

/** The last program: a search sends many pieces with the same pattern. */
interface Compiled {
  readonly key: string;
  readonly matcher: Matcher;
}

/** Makes the calls that come to a thread. */
export class MatchRunner {
  #last: Compiled | null = null;

  run(task: MatchTask): MatchAnswer {
    const beganMs = threadCpuMs();
    const { query, isRegex, text, groups } = task;
    const key = `${isRegex}${groups.join()}:${query}`;
    if (this.#last?.key !== key)
      this.#last = { key, matcher: compileMatcher(query, isRegex, new Set(groups)) };
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    const match = findInPiece(this.#last.matcher, bytes, task);
    return { match, cpuMs: Math.max(threadCpuMs() - beganMs, 0) };
  }
}
