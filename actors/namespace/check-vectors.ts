import { invalidField } from '../../protocol/errors.ts';
import type { VectorConfig } from '../../protocol/namespace.ts';
import { documentDims } from '../storage/document-batch.ts';
import type { PreparedWrite } from './prepare-write.ts';

/** Refuses vectors that the namespace can't hold: 422 naming the first by the field that it came in. */
export function checkVectors(
  { batch, vectorField }: Pick<PreparedWrite, 'batch' | 'vectorField'>,
  vector: VectorConfig | null,
): void {
  const { buffer, documentOffsets, dims } = batch;
  if (dims === 0 || dims === vector?.dims) return;
  const index = documentOffsets.findIndex((offset) => documentDims(buffer, offset) > 0);
  const field = `docs[${index}].${vectorField ?? 'vector'}`;
  if (vector === null)
    throw invalidField(field, 'this namespace has no vectors: make one with vector.dims, and write there');
  throw invalidField(field, `must have ${vector.dims} numbers, as the namespace's vectors: it has ${dims}`);
}
