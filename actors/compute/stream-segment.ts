import { limits } from '../../protocol/limits.ts';
import { toShared } from '../../src/base/garbage.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { SegmentWriter } from '../storage/segment-writer.ts';
import type { BuiltSegment, ComputeComponents } from './lanes.ts';
import { rowIndexes } from './row-indexes.ts';

/** Makes a segment while it is stored. `addRows` adds the rows, `rowsExpected` of them; it is called once a try. */
export function streamSegment(
  { store, clock }: ComputeComponents,
  {
    key,
    temporalKeys,
    rowsExpected,
  }: {
    readonly key: string;
    readonly temporalKeys?: readonly string[] | undefined;
    readonly rowsExpected: number;
  },
  addRows: (writer: SegmentWriter) => Promise<void>,
): Promise<BuiltSegment> {
  return streamOnce(store, clock, key, async (sink) => {
    const small = new SmallObject(sink);
    const writer = new SegmentWriter(key, small.sink, { rowsExpected, indexes: rowIndexes(temporalKeys) });
    await addRows(writer);
    const { size, toc } = await writer.finish();
    return { size, toc, stored: small.bytes() };
  });
}

/** Passes an object's bytes on, and keeps them while they are few. */
class SmallObject {
  readonly sink: ByteSink;
  #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(to: ByteSink) {
    this.sink = (chunk) => {
      this.#length += chunk.length;
      if (this.#length <= limits.freshObjectBytesMax) this.#chunks.push(chunk);
      else this.#chunks = [];
      return to(chunk);
    };
  }

  /** All bytes, in shared memory; null where they were more than a fresh object may have. */
  bytes(): Buffer | null {
    return this.#length > limits.freshObjectBytesMax ? null : toShared(Buffer.concat(this.#chunks));
  }
}
