import { columnsWriter } from '../columns/columns-writer.ts';
import type { RowIndexWriter } from '../storage/segment-writer.ts';
import { textIndexWriter } from '../text/text-index.ts';
import { vectorIndexWriter } from '../vector/vector-index-writer.ts';

/** What every segment has beside its rows, whether it is flushed or merged. */
export function rowIndexes(): RowIndexWriter[] {
  return [textIndexWriter(), columnsWriter(), vectorIndexWriter()];
}
