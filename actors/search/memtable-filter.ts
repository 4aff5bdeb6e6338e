import { type ChunkRows, evaluateAtHand } from '../columns/evaluate-filter.ts';
import type { ColumnTerm } from '../columns/filter-terms.ts';
import { ask, no, type Verdict, yes } from '../columns/verdicts.ts';
import type { Memtable } from '../storage/memtable.ts';
import { isSet, lastBit } from './filter-rows.ts';
import { type MemtableColumns, memtableColumns } from './memtable-columns.ts';
import type { TimeSlice } from './time-slice.ts';

/** The share of a chunk's rows up to which those that pass are few: indexing a text takes some ten times as long as looking for a word in it. */
const fewShare = 1 / 8;

/** A filter's terms, with what is needed to make a memtable's columns for them. */
export interface MemtableTerms {
  readonly terms: readonly ColumnTerm[];
  readonly temporalKeys: ReadonlySet<string>;
  readonly slice: Pick<TimeSlice, 'due' | 'giveWay'>;
}

/**
 * What a filter's columns say of the rows of a memtable. `settle` comes before a row's verdict is asked for; it knows neighbouring rows
 * together, so rows are best asked for in their order, up or down.
 */
export class MemtableFilter {
  readonly #columns: MemtableColumns;
  readonly #terms: MemtableTerms;
  /** The rows that are settled, and what is known of them. */
  #first = 0;
  #end = 0;
  #rows: 'none' | 'all' | 'ask' | ChunkRows = 'ask';

  constructor(memtable: Memtable, terms: MemtableTerms) {
    this.#columns = memtableColumns(memtable, terms.temporalKeys);
    this.#terms = terms;
  }

  isSettled(row: number): boolean {
    return row >= this.#first && row < this.#end;
  }

  /** Settles a row and some beside it. Others have their turn before columns are made. */
  async settle(row: number): Promise<void> {
    const { slice, terms } = this.#terms;
    for (;;) {
      if (slice.due()) await slice.giveWay();
      const chunk = this.#columns.chunkOf(row);
      if (chunk === 'building') continue;
      if (chunk === null) this.#know(this.#columns.rangeWithout(row), 'ask');
      else {
        const { firstRow: first, rowCount } = chunk;
        this.#know({ first, end: first + rowCount }, evaluateAtHand(chunk, terms));
      }
      return;
    }
  }

  #know(
    { first, end }: { readonly first: number; readonly end: number },
    rows: 'none' | 'all' | 'ask' | ChunkRows,
  ): void {
    this.#first = first;
    this.#end = end;
    this.#rows = rows;
  }

  /**
   * Answers one more than the highest row below `end` that may pass, where the row before `end` is settled; the first of its settled
   * neighbours where none of these does.
   */
  passingEnd(end: number): number {
    const rows = this.#rows;
    if (rows === 'none') return this.#first;
    if (rows === 'ask' || rows === 'all') return end;
    return this.#first + lastBit(rows.bits, { from: 0, end: end - this.#first }) + 1;
  }

  /** Whether so few of the settled rows may pass that their texts are judged sooner than indexed. */
  get passesFew(): boolean {
    const rows = this.#rows;
    if (rows === 'none') return true;
    return typeof rows === 'object' && rows.count <= (this.#end - this.#first) * fewShare;
  }

  /** Answers what columns say of a row that is settled. */
  verdict(row: number): Verdict {
    const rows = this.#rows;
    if (rows === 'none') return no;
    if (rows === 'ask') return ask;
    if (rows === 'all') return yes;
    const at = row - this.#first;
    if (!isSet(rows.bits, at)) return no;
    return rows.asks !== null && isSet(rows.asks, at) ? ask : yes;
  }
}
