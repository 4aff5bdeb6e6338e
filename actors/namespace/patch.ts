import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { emptyReadReport } from '../storage/block-fetch.ts';
import { BatchBuilder, documentMeta, documentText, documentVector } from '../storage/document-batch.ts';
import { mergeMeta } from '../storage/meta.ts';
import { type DocumentPatch, readPatches } from '../storage/parse-write.ts';
import { type LoadedBatch, loadBatch, type NamespaceState } from './namespace-state.ts';
import { findDocument } from './read-document.ts';
import type { WritePipeline } from './write-pipeline.ts';

/**
 * Patches → whole documents, against the committed state plus every write submitted before: call in turn. The record
 * holds whole documents, so that replaying it needs nothing else.
 */
interface Current {
  readonly text: Uint8Array | null;
  readonly meta: Buffer | null;
  readonly vector: Float32Array | null;
}

export async function mergePatches(
  state: NamespaceState,
  pipeline: WritePipeline,
  patches: LoadedBatch,
  clock: Clock,
): Promise<LoadedBatch> {
  const builder = new BatchBuilder({ bytesExpected: patches.buffer.byteLength * 2 });
  const merged = new Map<string, Current>();
  let sliceBegan = clock.monotonic();
  for (const [index, patch] of readPatches(patches.buffer).entries()) {
    // The same id twice in one request: the second builds on the first.
    const current = merged.get(patch.id) ?? (await currentDocument(state, pipeline, patch.id));
    if (current === null) throw unknownDocument(patch.id, index);
    const next = apply(current, patch, index);
    merged.set(patch.id, next);
    builder.addDocument({ id: patch.id, ...next });
    if (clock.monotonic() - sliceBegan < limits.timeSliceMs) continue;
    await clock.yieldTurn();
    sliceBegan = clock.monotonic();
  }
  return loadBatch(builder.finish());
}

async function currentDocument(
  state: NamespaceState,
  pipeline: WritePipeline,
  id: string,
): Promise<Current | null> {
  const pending = pipeline.overlaid(id);
  if (pending === null) return null;
  const place = pending ?? (await findDocument(state, id, emptyReadReport()));
  if (place === null) return null;
  const { buffer, offset } = place;
  return {
    text: documentText(buffer, offset),
    meta: documentMeta(buffer, offset),
    vector: documentVector(buffer, offset),
  };
}

function apply(current: Current, patch: DocumentPatch, index: number): Current {
  return {
    text: patch.text ?? current.text,
    meta:
      patch.metaPatch === null
        ? current.meta
        : mergeMeta(current.meta, patch.metaPatch, `docs[${index}].meta`),
    vector: patch.vector ?? current.vector,
  };
}

function unknownDocument(id: string, index: number): ApiError {
  const shown = JSON.stringify(id.slice(0, 100));
  return new ApiError('not_found', `there is no document with the id ${shown}; nothing was written`, {
    fields: { [`docs[${index}].id`]: 'no such document' },
  });
}
