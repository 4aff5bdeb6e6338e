import type { BlockPlace } from './segment-format.ts';

/** Where blocks of an object may be nearer than the object store: with another thread, among its fresh objects or on its part of the local disk. */
export interface NearBlocks {
  /**
   * Answers the stored bytes of blocks of the object, in the order of `places`: null for those that are not there, or not in time. What
   * comes may be damaged. Never rejects.
   */
  read(objectKey: string, places: readonly BlockPlace[]): Promise<readonly (Uint8Array | null)[]>;
}

/** Which blocks are wanted of another thread. */
export interface WantedBlocks {
  readonly objectKey: string;
  readonly offsets: readonly number[];
  /** How many bytes each of them has, as stored. */
  readonly lengths: readonly number[];
}
