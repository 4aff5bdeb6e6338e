import { assert, must } from '../../src/base/assert.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { SegmentWriter } from '../storage/segment-writer.ts';
import type { BuildSegmentTask, BuiltSegment } from './lanes.ts';

/** Rows of a frozen memtable → one immutable segment in the store. */
export async function buildSegment(store: ObjectStore, task: BuildSegmentTask): Promise<BuiltSegment> {
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
  const put = await store.putIfAbsent(task.key, chunks);
  // The name is random and used once: somebody else's object under it would be damage.
  assert(put.kind === 'stored', () => `${task.key} exists already`);
  return { toc, size };
}
