import type { Filter } from '../../protocol/filter.ts';
import { openColumns } from '../columns/columns-section.ts';
import { columnTerms } from '../columns/filter-terms.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import { type ChunkState, FilterRows, isSet } from './filter-rows.ts';
import type { QueryContext } from './query.ts';

/** Which rows of a segment are looked at: the live ones, or those of them that may pass a filter as far as its columns tell. */
export interface SelectedRows {
  /** How many rows there are: at most so many, and about. */
  readonly count: number;
  has(row: number): boolean;
  /** All of them, ascending. */
  list(): number[];
}

/** Reads the columns that the filter asks for. Throws what reading throws. */
export async function selectRows(
  { slice, tally }: QueryContext,
  segment: OpenSegment,
  filter: Filter | null,
): Promise<SelectedRows> {
  const { reader, tombstones } = segment;
  const live = reader.rowCount - tombstones.count;
  const isLive = tombstones.count === 0 ? () => true : (row: number) => !isDeleted(tombstones, row);
  const terms = columnTerms(filter ?? { terms: [] });
  if (terms.length === 0) {
    const list = () => Array.from({ length: reader.rowCount }, (_, row) => row).filter(isLive);
    return { count: live, has: isLive, list };
  }
  const columns = await slice.waitFor(openColumns(reader, tally));
  const rows = new FilterRows(reader, columns, { terms, slice }, tally);
  const chunkCount = rows.chunkOfRow(reader.rowCount - 1) + 1;
  const states = await rows.settleAll(chunkCount);
  const firstRows = states.map((_, chunk) => rows.firstRowOf(chunk));
  const passing = states.reduce((sum, state, chunk) => {
    const end = firstRows[chunk + 1] ?? reader.rowCount;
    return sum + rowsIn(state, end - (firstRows[chunk] as number));
  }, 0);
  return {
    count: Math.min(live, passing),
    has(row) {
      const chunk = rows.chunkOfRow(row);
      const state = states[chunk] as ChunkState;
      if (state === 'none') return false;
      return (state === 'all' || isSet(state, row - (firstRows[chunk] as number))) && isLive(row);
    },
    list() {
      const found: number[] = [];
      for (const [chunk, state] of states.entries()) {
        const first = firstRows[chunk] as number;
        const end = firstRows[chunk + 1] ?? reader.rowCount;
        for (const row of rowsOf(state, first, end)) if (isLive(row)) found.push(row);
      }
      return found;
    },
  };
}

/** Hot: a word of 32 rows at a time. */
function rowsOf(state: ChunkState, first: number, end: number): number[] {
  const rows: number[] = [];
  if (state === 'all') for (let row = first; row < end; row++) rows.push(row);
  if (state === 'all' || state === 'none') return rows;
  for (const [at, word] of state.entries()) {
    for (let left = word; left !== 0; left &= left - 1)
      rows.push(first + at * 32 + 31 - Math.clz32(left & -left));
  }
  return rows;
}

function rowsIn(state: ChunkState, rowCount: number): number {
  if (state === 'none') return 0;
  if (state === 'all') return rowCount;
  let count = 0;
  for (let word of state) for (; word !== 0; word &= word - 1) count++;
  return count;
}
