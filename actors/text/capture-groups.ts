import { partAt } from './quoted-text.ts';

/** A pattern of which RE2 captures the wanted groups alone. */
export interface CapturedGroups {
  readonly pattern: string;
  /** How many groups the pattern as it was given has. */
  readonly groupCount: number;
}

/**
 * The pattern with those of its groups that `isWanted` names, by their number from 1, and without the names of them; all
 * others only hold their parts together. RE2 carries the place of every group along with each state, so 300 groups that
 * nobody asks for would make a find a hundred times as long. The pattern is one that `writeOutText` has made.
 */
export function withGroups(pattern: string, isWanted: (group: number) => boolean): CapturedGroups {
  let made = '';
  let groupCount = 0;
  for (let at = 0; at < pattern.length; ) {
    const { end } = partAt(pattern, at);
    const name = pattern.charAt(at) === '(' ? groupBegin(pattern, at) : null;
    if (name === null) made += pattern.slice(at, end);
    else made += isWanted(++groupCount) ? '(' : '(?:';
    at = name ?? end;
  }
  return { pattern: made, groupCount };
}

const named = /\(\?P?<(?![=!])[^>]*>/y;

/** Where the inside of a capturing group begins whose bracket stands here; null where it captures nothing. */
function groupBegin(pattern: string, at: number): number | null {
  if (pattern.charAt(at + 1) !== '?') return at + 1;
  named.lastIndex = at;
  return named.test(pattern) ? named.lastIndex : null;
}
