import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import { keptShared, sawSharedBriefly } from '../../src/base/garbage.ts';
import { threadTimes } from '../../src/base/thread-cpu.ts';
import { DocumentBlock } from './document-block.ts';
import { BlockOwner, type BlockPlace, blockKinds, decodeBlock, rawLengthIn } from './segment-format.ts';

/** Stored blocks of one object that a thread of the lane `scan` is to decode: a few milliseconds of work. */
export interface DecodeTask {
  readonly task: 'decode-blocks';
  readonly objectKey: string;
  /** The object's bytes from `offset` on. */
  readonly stored: Uint8Array;
  readonly offset: number;
  /** Where the blocks lie in the object. */
  readonly places: readonly BlockPlace[];
}

export interface DecodedBlocks {
  /** The blocks' raw forms in the order of the places, in shared memory; null where the bytes are not the block, or all would be too large together. */
  readonly raws: readonly (Uint8Array | null)[];
  /** CPU time of the thread, in milliseconds. */
  readonly cpuMs: number;
}

/** Has another thread decode blocks. Rejects where too many tasks wait, or the thread dies. */
export type DecodeElsewhere = (task: DecodeTask) => Promise<DecodedBlocks>;

/** Decodes blocks for another thread, which need not check again what was checked here: the rows of documents too. */
export function decodeBlocks({ objectKey, stored, offset, places }: DecodeTask): DecodedBlocks {
  const began = threadTimes();
  const owner = new BlockOwner(objectKey);
  let bytes = 0;
  const raws = places.map((place) => {
    const start = place.offset - offset;
    const block = stored.subarray(start, start + place.length);
    if (bytes + rawLengthIn(block) > limits.decodedElsewhereBytesMax) return null;
    const raw = rawOf(block, place, owner);
    bytes += raw?.length ?? 0;
    return raw;
  });
  return { raws, cpuMs: threadTimes().cpuMs - began.cpuMs };
}

function rawOf(stored: Uint8Array, { kind, offset }: BlockPlace, owner: BlockOwner): Uint8Array | null {
  try {
    const raw = decodeBlock(stored, kind, owner, offset);
    // It is the other thread's at once.
    keptShared(raw.length);
    sawSharedBriefly(raw.length);
    if (kind === blockKinds.documents) new DocumentBlock(raw, owner.objectKey, offset);
    return raw;
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return null;
  }
}
