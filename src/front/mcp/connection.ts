import { ApiError } from '../../../protocol/errors.ts';
import { parseQueryString } from '../../../protocol/query-string.ts';
import { namespaceAllowed, namespacePatternProblem, scopeIncludes } from '../../accounts/scopes.ts';
import type { Principal } from '../../auth/principal.ts';

/**
 * What the address of a connection narrows it to: `/mcp?read_only=1&namespaces=notes,logs-*`. It takes away from what the credential
 * may do, and never adds to it.
 */
export interface Narrowing {
  readonly readOnly: boolean;
  /** Names or `prefix*` patterns; null for no narrowing. */
  readonly namespaces: readonly string[] | null;
}

const noNarrowing: Narrowing = { readOnly: false, namespaces: null };
/** More are a mistake, and each is looked at for each namespace. */
const patternsMax = 100;

/** Throws ApiError 400 for what is no such parameter: who asks for less than it gets must hear of it. */
export function narrowingOf(query: string): Narrowing {
  if (query === '') return noNarrowing;
  let narrowing = noNarrowing;
  for (const [name, value] of parametersOf(query)) {
    if (name === 'read_only') narrowing = { ...narrowing, readOnly: booleanOf(value) };
    else if (name === 'namespaces') narrowing = { ...narrowing, namespaces: patternsOf(value) };
    else throw wrong(name, 'is not a parameter of /mcp, which has read_only and namespaces');
  }
  return narrowing;
}

/** What is wrong with an address is told with one status: the message in the body is not looked at. */
function parametersOf(query: string): ReturnType<typeof parseQueryString> {
  try {
    return parseQueryString(query);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(
      'bad_request',
      error.message,
      error.fields === undefined ? {} : { fields: error.fields },
    );
  }
}

function booleanOf(value: string): boolean {
  if (value === '1' || value === 'true') return true;
  if (value === '0' || value === 'false') return false;
  throw wrong('read_only', 'must be 1 or 0');
}

function patternsOf(value: string): readonly string[] {
  const patterns = value.split(',').map((each) => each.trim());
  if (patterns.length > patternsMax) throw wrong('namespaces', `may have at most ${patternsMax} patterns`);
  for (const pattern of patterns) {
    const problem = namespacePatternProblem(pattern);
    if (problem !== null) throw wrong('namespaces', `each pattern ${problem}`);
  }
  return patterns;
}

function wrong(name: string, problem: string): ApiError {
  return new ApiError('bad_request', `${name}: ${problem}`, { fields: { [name]: problem } });
}

export function narrowed(principal: Principal, { readOnly, namespaces }: Narrowing): Principal {
  if (!readOnly && namespaces === null) return principal;
  return {
    ...principal,
    scope: readOnly && scopeIncludes(principal.scope, 'read') ? 'read' : principal.scope,
    namespaces: namespaces === null ? principal.namespaces : bothOf(principal.namespaces, namespaces),
  };
}

/** An empty list would allow all; no namespace has the empty name. */
const nothing: readonly string[] = [''];

/** Patterns of the names that both lists allow. */
function bothOf(held: readonly string[], asked: readonly string[]): readonly string[] {
  if (held.length === 0) return asked;
  const both = [
    ...asked.filter((pattern) => isWithin(pattern, held)),
    ...held.filter((pattern) => isWithin(pattern, asked)),
  ];
  return both.length === 0 ? nothing : [...new Set(both)];
}

/** Whether each name of the pattern is one of those of the patterns: its fixed part is tested, as far as both have a star. */
function isWithin(pattern: string, patterns: readonly string[]): boolean {
  if (!pattern.endsWith('*')) return namespaceAllowed(patterns, pattern);
  const stem = pattern.slice(0, -1);
  return patterns.some((each) => each.endsWith('*') && stem.startsWith(each.slice(0, -1)));
}
