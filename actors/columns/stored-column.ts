import { DataError } from '../../src/base/assert.ts';
import type { Block } from '../storage/block-fetch.ts';
import { type ColumnValues, readColumn } from './column-block.ts';
import type { DirectoryColumn } from './column-directory.ts';

/** What a column's block holds, decoded once for as long as the block is in memory. Throws DataError where the directory says otherwise. */
export function storedColumn(
  block: Block,
  { counts }: DirectoryColumn,
  { objectKey: name, rowCount }: { readonly objectKey: string; readonly rowCount: number },
): ColumnValues {
  // Nothing else is made of a column's block.
  const values =
    (block.parsed as ColumnValues | null) ?? readColumn(block.raw, { name, offset: block.offset });
  block.parsed = values;
  if (values.rowCount !== rowCount || values.counts.some((count, kind) => count !== counts[kind]))
    throw new DataError(name, block.offset, 'a column of other rows');
  return values;
}
