import { documentTextBytes } from '../storage/document-batch.ts';
import { Memtable, type RowFinder } from '../storage/memtable.ts';
import { MemtableIndex } from './memtable-index.ts';
import type { TrigramQuery } from './trigram-query.ts';

/** A memtable whose rows are found by their texts' trigrams. */
export function searchableMemtable(): Memtable {
  return new Memtable(new TextFinder());
}

/**
 * Fills `target` with rows below `row` that may satisfy the condition, in descending order, and answers how many; fewer
 * than fit where there are no more. All rows where the memtable has no index.
 */
export function rowsBelow(
  memtable: Memtable,
  condition: TrigramQuery,
  { row, target }: { readonly row: number; readonly target: Uint32Array },
): number {
  const { finder } = memtable;
  const index = finder instanceof TextFinder ? finder.index : null;
  if (index !== null) return index.findBelow(condition, row, target);
  let count = 0;
  for (let next = row - 1; next >= 0 && count < target.length; next--) target[count++] = next;
  return count;
}

class TextFinder implements RowFinder {
  /** Made with the first row: most open namespaces have an empty memtable. */
  index: MemtableIndex | null = null;

  get bytes(): number {
    return this.index?.bytes ?? 0;
  }

  add(buffer: Buffer, offset: number): void {
    this.index ??= new MemtableIndex();
    const text = documentTextBytes(buffer, offset);
    this.index.add(text, 0, text.length);
  }
}
