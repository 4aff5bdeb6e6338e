import type { Scope } from '../../protocol/account.ts';
import { limits } from '../../protocol/limits.ts';

/** What a person is in a tenant. */
export type Role = 'owner' | 'member';

const ranks: Readonly<Record<Scope, number>> = { read: 0, write: 1, admin: 2 };

export function scopeIncludes(held: Scope, required: Scope): boolean {
  return ranks[held] >= ranks[required];
}

const patternShape = /^[a-z0-9._-]*\*?$/;

/** What is wrong with a namespace pattern (a name, or the beginning of names followed by `*`), or null. */
export function namespacePatternProblem(pattern: string): string | null {
  const stem = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
  if (pattern.length === 0) return 'must not be empty';
  if (stem.length > limits.namespaceNameCharactersMax) {
    return `must have at most ${limits.namespaceNameCharactersMax} characters`;
  }
  return patternShape.test(pattern)
    ? null
    : 'must be a namespace name (a-z, 0-9, "-", "_", ".") or the beginning of one followed by "*"';
}

/** No patterns means no restriction. */
export function namespaceAllowed(patterns: readonly string[], name: string): boolean {
  return patterns.length === 0 || patterns.some((pattern) => patternMatches(pattern, name));
}

function patternMatches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** What a key was narrowed to besides its scope; null means not narrowed. */
export interface KeyCaps {
  /** Requests a second. */
  readonly ratePerS: number | null;
  /** Queries and write requests of one billing period. */
  readonly queries: number | null;
  readonly writes: number | null;
}

/** Only such a key may manage keys: any other could make itself a key that may do more than it may itself. */
export function isUnlimitedAdmin(key: {
  readonly scope: Scope;
  readonly namespaces: readonly string[];
  readonly caps: KeyCaps;
}): boolean {
  const { ratePerS, queries, writes } = key.caps;
  const capped = ratePerS !== null || queries !== null || writes !== null;
  return key.scope === 'admin' && key.namespaces.length === 0 && !capped;
}
