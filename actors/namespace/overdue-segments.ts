import type { ActorComponents } from '../actor/components.ts';
import type { Manifest } from '../storage/manifest.ts';
import type { NamespaceState } from './namespace-state.ts';

/**
 * Segments that hold documents which were replaced or deleted so long ago that they are rewritten for that alone: a deleted
 * document is to be gone from store and local disk within a day, however quiet its namespace is. Each segment is rewritten
 * for it once in `deletedRowsKeptMs` at most.
 */
export function overdueSegments(
  { clock, limits }: Pick<ActorComponents, 'clock' | 'limits'>,
  { committed }: NamespaceState,
): ReadonlySet<string> {
  return committed === null ? none : overdueIn(committed.value, clock.now() - limits.deletedRowsKeptMs);
}

/** Ids of segments whose first deleted row came at or before `beforeMs`. Pure. */
export function overdueIn({ segments }: Pick<Manifest, 'segments'>, beforeMs: number): ReadonlySet<string> {
  const overdue = segments.filter(({ deletedAtMs }) => deletedAtMs !== null && deletedAtMs <= beforeMs);
  return overdue.length === 0 ? none : new Set(overdue.map(({ id }) => id));
}

/** When the next segment is overdue, in milliseconds since 1970; null where none holds a deleted row. */
export function nextOverdueMs(
  { limits }: Pick<ActorComponents, 'limits'>,
  { committed }: NamespaceState,
): number | null {
  const since = (committed?.value.segments ?? []).flatMap(({ deletedAtMs }) => deletedAtMs ?? []);
  return since.length === 0 ? null : Math.min(...since) + limits.deletedRowsKeptMs;
}

const none: ReadonlySet<string> = new Set();
