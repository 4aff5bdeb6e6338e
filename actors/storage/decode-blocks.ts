import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import { keptShared, sawSharedBriefly } from '../../src/base/garbage.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { threadTimes } from '../../src/base/thread-cpu.ts';
import { DocumentBlock } from './document-block.ts';
import { BlockOwner, type BlockPlace, blockKinds, decodeBlock } from './segment-format.ts';

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
  /** The blocks' raw forms in the order of the places, in shared memory; null where the bytes are not the block. */
  readonly raws: readonly (Uint8Array | null)[];
  /** CPU time of the thread, in milliseconds. */
  readonly cpuMs: number;
}

/** Has another thread decode blocks. Rejects where too many tasks wait, the thread dies, or it takes too long. */
export type DecodeElsewhere = (task: DecodeTask) => Promise<DecodedBlocks>;

/** How many times the wait for a late piece nobody else is asked. */
const pauseFactor = 3;

/**
 * Waits for another thread only as long as it is soon: where a piece is late, because cores are busy or a thread is only starting, it is decoded by whoever
 * asked, and nobody else is asked for a while. `charge` is told of the time that the other thread took, in milliseconds, late or not.
 */
export function whileSoon(
  clock: Clock,
  decode: DecodeElsewhere,
  charge: (cpuMs: number) => void,
): DecodeElsewhere {
  const waitMs = limits.decodedElsewhereMsMax;
  let pausesUntil = Number.NEGATIVE_INFINITY;
  return async (task) => {
    if (clock.monotonic() < pausesUntil) throw new DecodedTooLate();
    const decoding = decode(task);
    decoding.then(
      ({ cpuMs }) => charge(cpuMs),
      () => {},
    );
    if (await settledWithin(clock, decoding, waitMs)) return decoding;
    pausesUntil = clock.monotonic() + waitMs * pauseFactor;
    throw new DecodedTooLate();
  };
}

class DecodedTooLate extends Error {
  override name = 'DecodedTooLate';
}

/** Decodes blocks for another thread, which need not check again what was checked here: the rows of documents too. */
export function decodeBlocks({ objectKey, stored, offset, places }: DecodeTask): DecodedBlocks {
  const began = threadTimes();
  const owner = new BlockOwner(objectKey);
  const raws = places.map((place) => {
    const start = place.offset - offset;
    return rawOf(stored.subarray(start, start + place.length), place, owner);
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
