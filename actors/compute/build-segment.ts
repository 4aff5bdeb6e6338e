import { must } from '../../src/base/assert.ts';
import type { BuildSegmentTask, BuiltSegment, ComputeComponents } from './lanes.ts';
import { streamSegment } from './stream-segment.ts';

/** Rows of a frozen memtable → one immutable segment in the store. */
export function buildSegment(components: ComputeComponents, task: BuildSegmentTask): Promise<BuiltSegment> {
  const buffers = task.buffers.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const { key, temporalKeys, offsets } = task;
  return streamSegment(components, { key, temporalKeys, rowsExpected: offsets.length }, async (writer) => {
    for (let row = 0; row < offsets.length; row++) {
      const buffer = must(buffers[task.bufferOf[row] ?? -1], 'the row’s buffer');
      const sent = writer.add(task.sequences[row] ?? 0, task.writtenAt[row] ?? 0, buffer, offsets[row] ?? 0);
      if (sent !== undefined) await sent;
    }
  });
}
