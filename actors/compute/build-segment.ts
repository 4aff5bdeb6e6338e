import { must } from '../../src/base/assert.ts';
import { putOnce } from '../../src/object-store/put-once.ts';
import { SegmentWriter } from '../storage/segment-writer.ts';
import type { BuildSegmentTask, BuiltSegment, ComputeComponents } from './lanes.ts';

/** Rows of a frozen memtable → one immutable segment in the store. */
export async function buildSegment(
  { store, clock }: ComputeComponents,
  task: BuildSegmentTask,
): Promise<BuiltSegment> {
  const chunks: Uint8Array[] = [];
  const writer = new SegmentWriter((chunk) => {
    chunks.push(chunk);
  });
  const buffers = task.buffers.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  for (let row = 0; row < task.offsets.length; row++) {
    const buffer = must(buffers[task.bufferOf[row] ?? -1], 'the row’s buffer');
    await writer.add(task.sequences[row] ?? 0, task.writtenAt[row] ?? 0, buffer, task.offsets[row] ?? 0);
  }
  const { toc, size } = await writer.finish();
  await putOnce(store, clock, task.key, chunks);
  return { toc, size };
}
