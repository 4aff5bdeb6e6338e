import { DataError } from '../../src/base/assert.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { MissingObjectError } from './block-fetch.ts';

/**
 * Why stored data could not be had: the store did not answer, what it has is damaged, or the object is gone. None of
 * them says anything about what is in memory.
 */
export type ReadFailure = StoreError | DataError | MissingObjectError;

export function isReadFailure(error: unknown): error is ReadFailure {
  return error instanceof StoreError || error instanceof DataError || error instanceof MissingObjectError;
}
