import { documentTextBytes } from '../storage/document-batch.ts';
import { Memtable, type RowFinder } from '../storage/memtable.ts';
import { MemtableIndex } from './memtable-index.ts';
import type { TextCondition } from './trigram-query.ts';

/**
 * A memtable whose rows are found by their texts' trigrams. Searches index it, a few milliseconds of rows each: a write
 * waits for nothing, and what is written and never searched costs nothing. Rows that are not indexed yet are candidates.
 */
export function searchableMemtable(): Memtable {
  return new Memtable(new TextFinder());
}

/** Bytes of text that one look indexes: a millisecond or two, and several times that where the cores are busy. */
const indexedBytesPerLook = 256 * 1024;

/**
 * Fills `target` with rows below `row` that may satisfy the condition, in descending order, and answers how many; fewer
 * than fit where there are no more. All rows where the memtable has no index. `indexesMore`: whether rows are indexed first that are not
 * yet, which takes longer than to judge a few texts. Default: true.
 */
export function rowsBelow(
  memtable: Memtable,
  condition: TextCondition,
  {
    row,
    target,
    indexesMore = true,
  }: { readonly row: number; readonly target: Uint32Array; readonly indexesMore?: boolean },
): number {
  const { finder } = memtable;
  const isIndexed = finder instanceof TextFinder && condition.query.kind !== 'all';
  const index = !isIndexed ? null : indexesMore ? finder.catchUp(memtable) : finder.index;
  const indexedRows = index?.rowCount ?? 0;
  let count = 0;
  for (let next = row - 1; next >= indexedRows && count < target.length; next--) target[count++] = next;
  if (index === null || count === target.length) return count;
  return count + index.findBelow(condition, Math.min(row, indexedRows), target.subarray(count));
}

/** Which parts of a large text of a row may match (text-parts.ts); null for all. */
export function partsOfRow(
  memtable: Memtable,
  condition: TextCondition,
  row: number,
): readonly number[] | null {
  const { finder } = memtable;
  return finder instanceof TextFinder && condition.query.kind !== 'all'
    ? finder.partsOf(condition, row)
    : null;
}

class TextFinder implements RowFinder {
  /** Made with the first search: most open namespaces have an empty memtable. */
  #index: MemtableIndex | null = null;

  get bytes(): number {
    return this.#index?.bytes ?? 0;
  }

  /** What is indexed so far; null where nothing is. */
  get index(): MemtableIndex | null {
    return this.#index;
  }

  partsOf(condition: TextCondition, row: number): readonly number[] | null {
    const index = this.#index;
    return index === null || row >= index.rowCount ? null : index.partsOf(condition, row);
  }

  /** Indexes some more rows, or parts of a large text, the oldest first. */
  catchUp(memtable: Memtable): MemtableIndex | null {
    if (memtable.rowCount === 0) return null;
    this.#index ??= new MemtableIndex();
    const index = this.#index;
    let left = indexedBytesPerLook;
    while (index.rowCount < memtable.rowCount && left > 0) {
      const row = index.rowCount;
      const text = documentTextBytes(memtable.bufferOf(row), memtable.offsetOf(row));
      left -= index.addSome(text, left) + rowCost;
    }
    return index;
  }
}

/** What indexing a row costs beside its text, in bytes of text. */
const rowCost = 64;
