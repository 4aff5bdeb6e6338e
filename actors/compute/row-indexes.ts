import { columnsWriter } from '../columns/columns-writer.ts';
import type { RowIndexWriter } from '../storage/segment-writer.ts';
import { textIndexWriter } from '../text/text-index.ts';
import { vectorIndexWriter } from '../vector/vector-index-writer.ts';

/** What every segment has beside its rows, whether it is flushed or merged. `temporalKeys`: keys that hold dates or times. */
export function rowIndexes(temporalKeys: readonly string[] = []): RowIndexWriter[] {
  return [textIndexWriter(), columnsWriter({ temporalKeys }), vectorIndexWriter()];
}
