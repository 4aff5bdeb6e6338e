import { assert } from '../../src/base/assert.ts';
import { isWhole, type Manifest } from './manifest.ts';
import { keyOfObject } from './object-ref.ts';
import { needsParent, objectsNamedBy, pinnedKeys } from './shared-objects.ts';

/**
 * What must hold between a manifest and its successor, checked before each commit. Each predicate says what would be
 * lost if it did not hold.
 */
const invariants: readonly (readonly [string, (next: Manifest, current: Manifest) => boolean])[] = [
  [
    'the version rises by one: a skipped one hides a commit of another owner',
    (n, c) => n.version === c.version + 1,
  ],
  [
    'the nonce is new: a lost answer could not be told from another owner’s commit',
    (n, c) => n.nonce !== c.nonce,
  ],
  ['it is the same namespace', (n, c) => n.namespaceId === c.namespaceId && n.tenantId === c.tenantId],
  ['a deleted namespace stays deleted', (n, c) => c.state === 'live' || n.state === 'deleted'],
  [
    'the view never goes back: an older owner would take the namespace back',
    (n, c) => n.owner.view >= c.owner.view,
  ],
  [
    'no counter falls',
    (n, c) => n.counters.version >= c.counters.version && n.counters.docsWritten >= c.counters.docsWritten,
  ],
  [
    'sequences never fall: a cursor would repeat or skip',
    (n, c) => n.counters.lastSequence >= c.counters.lastSequence,
  ],
  ['no watermark falls: flushed records would be applied twice', (n, c) => watermarksRise(n, c)],
  ['segments lie in time order without overlap: newest first would be wrong', (n) => segmentsInOrder(n)],
  [
    'tombstones are there: documents that are only counted as deleted would come back',
    (n) => n.segments.every(isWhole),
  ],
  [
    'what others hold is named: it would be deleted under them',
    (n) => {
      const named = new Set(objectsNamedBy(n).map((object) => keyOfObject(n.namespaceId, object)));
      return [...pinnedKeys(n)].every((key) => named.has(key));
    },
  ],
  [
    'a manifest that names objects of others has a parent: nothing would keep them',
    (n) => !needsParent(n) || (n.parent ?? null) !== null,
  ],
  ['tombstones fit their segment', (n) => n.segments.every((s) => s.tombstones.count <= s.toc.rowCount)],
];

function watermarksRise(next: Manifest, current: Manifest): boolean {
  for (const [logId, before] of current.applied) {
    const after = next.applied.get(logId);
    // A finished log's watermark may be dropped: nobody replays it any more.
    if (after === undefined) continue;
    if (after.slot < before.slot || (after.slot === before.slot && after.index < before.index)) return false;
  }
  return true;
}

function segmentsInOrder(next: Manifest): boolean {
  let last = 0;
  for (const { toc } of next.segments) {
    if (toc.minSequence <= last || toc.maxSequence < toc.minSequence) return false;
    last = toc.maxSequence;
  }
  const firstOfTail = next.tail?.sequences[0];
  return (firstOfTail === undefined || firstOfTail > last) && last <= next.counters.lastSequence;
}

export function checkManifest(next: Manifest, current: Manifest | null): void {
  if (current === null) {
    assert(next.version === 1, () => 'a first manifest has version 1');
    assert(segmentsInOrder(next), () => 'segments lie in time order without overlap');
    return;
  }
  for (const [meaning, holds] of invariants) {
    assert(holds(next, current), () => `manifest ${next.namespaceId} version ${next.version}: ${meaning}`);
  }
}
