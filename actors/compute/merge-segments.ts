import { BlockCache, BlockFetcher, emptyReadTally } from '../storage/block-fetch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { SegmentWriter } from '../storage/segment-writer.ts';
import { isDeleted, type Tombstones, tombstonesFromWire } from '../storage/tombstones.ts';
import type { BuiltSegment, ComputeComponents, MergeSegmentsTask } from './lanes.ts';
import { streamSegment } from './stream-segment.ts';

/** Bytes of decoded blocks that are kept for the indexes of one input: documents go past it, since a merge comes back to none. */
const cacheBytes = 4 * 1024 * 1024;

interface MergeInput {
  readonly reader: SegmentReader;
  readonly tombstones: Tombstones;
}

/**
 * Neighbouring segments, oldest first → one, without the rows that are tombstones in the task. Null where nothing lives.
 * Rows keep their order, so the n-th living row of the inputs is the n-th row of the result.
 *
 * Memory: what waits on its way in and out, some 20 MB beside the store's own, and 24 bytes a row of the result.
 */
export async function mergeSegments(
  components: ComputeComponents,
  task: MergeSegmentsTask,
): Promise<BuiltSegment | null> {
  const { store } = components;
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const inputs = task.inputs.map(({ key, toc, tombstones }) => ({
    reader: new SegmentReader(key, toc, fetcher),
    tombstones: tombstonesFromWire(tombstones),
  }));
  const rowsExpected = inputs.reduce((sum, input) => sum + livingRows(input), 0);
  if (rowsExpected === 0) return null;
  const { key, temporalKeys } = task;
  return streamSegment(components, { key, temporalKeys, rowsExpected }, async (writer) => {
    for (const input of inputs) await copyInput(input, writer);
  });
}

function livingRows({ reader, tombstones }: MergeInput): number {
  return reader.rowCount - tombstones.count;
}

async function copyInput(input: MergeInput, writer: SegmentWriter): Promise<void> {
  const { reader, tombstones } = input;
  if (livingRows(input) === 0) return;
  for await (const block of reader.blocksAscending(emptyReadTally())) {
    await copyLiving(block, tombstones, writer);
  }
  reader.close();
}

/** Hot: awaits only where the writer has sent something that it must wait for. */
async function copyLiving(
  block: DocumentBlock,
  tombstones: Tombstones,
  writer: SegmentWriter,
): Promise<void> {
  for (let i = 0; i < block.rowCount; i++) {
    if (tombstones.count > 0 && isDeleted(tombstones, block.firstRow + i)) continue;
    const sequence = block.sequences[i] ?? 0;
    const sent = writer.add(sequence, block.writtenAt[i] ?? 0, block.buffer, block.entryOffset(i));
    if (sent !== undefined) await sent;
  }
}
