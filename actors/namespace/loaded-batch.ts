import { toShared } from '../../src/base/garbage.ts';
import { documentDims, documentId, readBatch } from '../storage/document-batch.ts';

/** A write request's documents and deletes, in bytes that all threads may see. */
export interface LoadedBatch {
  readonly buffer: Buffer;
  /** Where each document entry starts in the buffer. */
  readonly documentOffsets: Uint32Array;
  readonly deletes: readonly string[];
  /** The ids of the documents, in their order: made once, for everything that asks by id. */
  readonly ids: readonly string[];
  /** How many numbers each vector of the batch has, the same for all; 0 where it has no vectors. */
  readonly dims: number;
}

/** Reads the frame of a batch and checks it; moves it to shared memory where it is not there yet. */
export function loadBatch(bytes: Uint8Array): LoadedBatch {
  const buffer = toShared(bytes);
  const { documentOffsets, deletes } = readBatch(buffer);
  let ids: readonly string[] | null = null;
  return {
    buffer,
    documentOffsets,
    deletes,
    get ids() {
      ids ??= Array.from(documentOffsets, (offset) => documentId(buffer, offset));
      return ids;
    },
    get dims() {
      for (const offset of documentOffsets) {
        const dims = documentDims(buffer, offset);
        if (dims > 0) return dims;
      }
      return 0;
    },
  };
}
