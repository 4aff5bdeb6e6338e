import type { Memtable } from '../storage/memtable.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { Ranked } from '../vector/nearest.ts';
import type { VectorIndexReader } from '../vector/vector-index-reader.ts';
import type { SelectedRows } from './selected-rows.ts';

/** A live row by its distance, and where it lies: in a memtable or in a segment. */
export type NearRow = Ranked & { readonly row: number } & (
    | { readonly memtable: Memtable; readonly segment: null }
    | { readonly memtable: null; readonly segment: OpenSegment }
  );

/** A segment that is searched: its vectors, and the rows that are looked at. */
export interface SearchedSegment {
  readonly segment: OpenSegment;
  readonly index: VectorIndexReader;
  readonly selected: SelectedRows;
}
