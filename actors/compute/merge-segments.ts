import { putOnce } from '../../src/object-store/put-once.ts';
import { BlockCache, BlockFetcher, emptyReadReport } from '../storage/block-fetch.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import { SegmentWriter } from '../storage/segment-writer.ts';
import { isDeleted, tombstonesFromWire } from '../storage/tombstones.ts';
import type { BuiltSegment, ComputeComponents, MergeSegmentsTask } from './lanes.ts';

/** Blocks that a merge holds at once: it reads front to back and comes back to none. */
const cacheBytes = 16 * 1024 * 1024;

/**
 * Neighbouring segments, oldest first → one, without the rows that are tombstones in the task. Null where nothing lives.
 * Rows keep their order, so the n-th living row of the inputs is the n-th row of the result.
 */
export async function mergeSegments(
  { store, clock }: ComputeComponents,
  task: MergeSegmentsTask,
): Promise<BuiltSegment | null> {
  const chunks: Uint8Array[] = [];
  const writer = new SegmentWriter((chunk) => {
    chunks.push(chunk);
  });
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  for (const input of task.inputs) {
    const tombstones = tombstonesFromWire(input.tombstones);
    const reader = new SegmentReader(input.key, input.toc, fetcher);
    const { count } = await reader.blockIndex(emptyReadReport());
    for (let index = 0; index < count; index++) {
      const block = await reader.readBlock(index, emptyReadReport());
      for (let i = 0; i < block.rowCount; i++) {
        if (isDeleted(tombstones, block.firstRow + i)) continue;
        await writer.add(
          block.sequences[i] ?? 0,
          block.writtenAt[i] ?? 0,
          block.buffer,
          block.entryOffset(i),
        );
      }
    }
    reader.close();
  }
  if (writer.rowCount === 0) return null;
  const { toc, size } = await writer.finish();
  await putOnce(store, clock, task.key, chunks);
  return { toc, size };
}
