/** The section `columns` of a segment: its documents' metas by key, written beside the rows and opened once. */
import { DataError } from '../../src/base/assert.ts';
import { OpenedOnce } from '../../src/base/single-flight.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import { ColumnDirectory, decodeColumnsRoot } from './column-directory.ts';

export const columnsSection = 'columns';

/** `none` where no row of the segment has any key. */
export type SegmentColumns = ColumnDirectory | 'none';

/** They go with their segment's reader. */
const directories = new OpenedOnce<SegmentReader, SegmentColumns>();

/** The directory as far as it was opened before. */
export function columnsAtHand(reader: SegmentReader): SegmentColumns | null {
  return directories.atHand(reader);
}

/** One GET the first time, which may run beside other first reads. */
export function openColumns(reader: SegmentReader, tally: ReadTally): Promise<SegmentColumns> {
  return directories.open(reader, () => open(reader, tally));
}

async function open(reader: SegmentReader, tally: ReadTally): Promise<SegmentColumns> {
  const { root } = reader.section(columnsSection);
  if (root === null) throw new DataError(reader.objectKey, 0, 'columns without a root');
  const { directory, rowCount } = decodeColumnsRoot(root, reader.objectKey);
  if (rowCount !== reader.rowCount) throw new DataError(reader.objectKey, 0, 'columns of other rows');
  return directory === null ? 'none' : read(reader, directory, tally);
}

async function read(
  reader: SegmentReader,
  place: Parameters<SegmentReader['blocks']['fetchOne']>[0],
  tally: ReadTally,
): Promise<ColumnDirectory> {
  const { raw } = await reader.blocks.fetchOne(place, tally);
  return new ColumnDirectory(raw, reader.rowCount, { name: reader.objectKey, offset: place.offset });
}
