import { must } from '../../src/base/assert.ts';
import { streamOnce } from '../../src/object-store/put-once.ts';
import { SegmentWriter } from '../storage/segment-writer.ts';
import type { BuildSegmentTask, BuiltSegment, ComputeComponents } from './lanes.ts';
import { rowIndexes } from './row-indexes.ts';

/** Rows of a frozen memtable → one immutable segment in the store. */
export function buildSegment(
  { store, clock }: ComputeComponents,
  task: BuildSegmentTask,
): Promise<BuiltSegment> {
  const buffers = task.buffers.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return streamOnce(store, clock, task.key, async (sink) => {
    const writer = new SegmentWriter(task.key, sink, {
      rowsExpected: task.offsets.length,
      indexes: rowIndexes(task.temporalKeys),
    });
    for (let row = 0; row < task.offsets.length; row++) {
      const buffer = must(buffers[task.bufferOf[row] ?? -1], 'the row’s buffer');
      const sent = writer.add(
        task.sequences[row] ?? 0,
        task.writtenAt[row] ?? 0,
        buffer,
        task.offsets[row] ?? 0,
      );
      if (sent !== undefined) await sent;
    }
    return writer.finish();
  });
}
