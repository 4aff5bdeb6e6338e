import { invalidField } from '../../protocol/errors.ts';
import type { VectorConfig } from '../../protocol/namespace.ts';
import { documentDims } from '../storage/document-batch.ts';
import type { LoadedBatch } from './namespace-state.ts';

/** Refuses vectors that the namespace can't hold: 422 naming the first. */
export function checkVectors(
  { buffer, documentOffsets, dims }: LoadedBatch,
  vector: VectorConfig | null,
): void {
  if (dims === 0 || dims === vector?.dims) return;
  const index = documentOffsets.findIndex((offset) => documentDims(buffer, offset) > 0);
  const field = `docs[${index}].vector`;
  if (vector === null)
    throw invalidField(field, 'this namespace has no vectors: make one with vector.dims, and write there');
  throw invalidField(field, `must have ${vector.dims} numbers, as the namespace's vectors: it has ${dims}`);
}
