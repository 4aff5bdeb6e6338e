import { DataError } from '../../src/base/assert.ts';
import type { Block, ObjectBlocks } from '../storage/block-fetch.ts';
import { type ColumnValues, readColumn } from './column-block.ts';
import type { DirectoryColumn } from './column-directory.ts';
import { ValueIndex } from './value-index.ts';

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

/** Looks at a column after which its index is made: what is asked once is judged in a tenth of the time that an index takes. */
const asksBeforeIndex = 2;

/** The index of a column's block by its values, where it is worth while; null where the column is looked at entry by entry. */
export function storedIndex(block: Block, values: ColumnValues, blocks: ObjectBlocks): ValueIndex | null {
  if (block.derived instanceof ValueIndex) return block.derived;
  if (++block.asked < asksBeforeIndex || blocks.cached(block.offset) !== block) return null;
  const index = ValueIndex.of(values);
  if (index !== null) blocks.addDerived(block, index);
  return index;
}
