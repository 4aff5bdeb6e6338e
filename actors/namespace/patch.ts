import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Share } from '../../src/base/share.ts';
import { chargeTurn } from '../../src/base/turns.ts';
import { emptyReadTally } from '../storage/block-fetch.ts';
import {
  BatchBuilder,
  batchHeadBytes,
  type DocumentParts,
  documentMeta,
  documentText,
  documentVector,
  encodedDocumentLength,
} from '../storage/document-batch.ts';
import { mergeMeta } from '../storage/meta.ts';
import { type ParsedPatch, readPatches } from '../storage/parse-write.ts';
import { type LoadedBatch, loadBatch } from './loaded-batch.ts';
import type { NamespaceState } from './namespace-state.ts';
import { findDocument } from './read-document.ts';
import type { WritePipeline } from './write-pipeline.ts';

interface Current {
  readonly text: Uint8Array | null;
  readonly meta: Buffer | null;
  readonly vector: Float32Array | null;
}

/**
 * Turns patches into the whole documents that they make, against the committed state plus every write submitted before:
 * call in turn. The record holds whole documents, so that replaying it needs nothing else. Gives way to other requests of
 * the thread after each slice.
 *
 * @throws ApiError 404 for an id that is not there; 413 where the documents are larger together than a write's body may be:
 * a patch of a few bytes makes a document of megabytes, so all of them are added up before the first one is copied.
 */
export async function mergePatches(
  state: NamespaceState,
  pipeline: WritePipeline,
  patches: LoadedBatch,
  clock: Clock,
  share: Share,
): Promise<LoadedBatch> {
  const slice = new WriteSlice(clock, share);
  const merged = new Map<string, Current>();
  const documents: DocumentParts[] = [];
  let bytes = 0;
  let bytesExpected = batchHeadBytes;
  await pipeline.indexOverlay(() => slice.giveWayWhenDue());
  for (const [index, patch] of readPatches(patches.buffer).entries()) {
    // The same id twice in one request: the second builds on the first.
    const current = merged.get(patch.id) ?? (await currentDocument(state, pipeline, patch.id));
    if (current === null) throw unknownDocument(patch.id, index);
    const next = apply(current, patch, index);
    bytes += bytesOf(next);
    if (bytes > limits.writeBodyBytesMax) throw tooMuchMerged(index);
    merged.set(patch.id, next);
    const document = { id: patch.id, ...next };
    documents.push(document);
    bytesExpected += encodedDocumentLength(document);
    await slice.giveWayWhenDue();
  }
  // The buffer is made as long as the batch becomes: one that grows copies what is in it, megabytes in one turn.
  const builder = new BatchBuilder({ bytesExpected });
  for (const document of documents) {
    builder.addDocument(document);
    await slice.giveWayWhenDue();
  }
  return loadBatch(builder.finish());
}

/** Counts what a write uses of its thread before it is submitted, and gives way after each slice. */
class WriteSlice {
  readonly #clock: Clock;
  readonly #share: Share;
  #began: number;

  constructor(clock: Clock, share: Share) {
    this.#clock = clock;
    this.#share = share;
    this.#began = clock.monotonic();
  }

  async giveWayWhenDue(): Promise<void> {
    const spentMs = this.#clock.monotonic() - this.#began;
    if (spentMs < limits.timeSliceMs) return;
    chargeTurn(this.#share, spentMs);
    await this.#clock.yieldTurn(this.#share);
    this.#began = this.#clock.monotonic();
  }
}

async function currentDocument(
  state: NamespaceState,
  pipeline: WritePipeline,
  id: string,
): Promise<Current | null> {
  const pending = pipeline.overlaid(id);
  if (pending === null) return null;
  const place = pending ?? (await findDocument(state, id, emptyReadTally()));
  if (place === null) return null;
  const { buffer, offset } = place;
  return {
    text: documentText(buffer, offset),
    meta: documentMeta(buffer, offset),
    vector: documentVector(buffer, offset),
  };
}

function apply(current: Current, patch: ParsedPatch, index: number): Current {
  return {
    text: patch.text ?? current.text,
    meta:
      patch.metaPatch === null
        ? current.meta
        : mergeMeta(current.meta, patch.metaPatch, `docs[${index}].meta`),
    vector: patch.vector ?? current.vector,
  };
}

function bytesOf({ text, meta, vector }: Current): number {
  return (text?.byteLength ?? 0) + (meta?.byteLength ?? 0) + (vector?.byteLength ?? 0);
}

function tooMuchMerged(index: number): ApiError {
  const most = Math.floor(limits.writeBodyBytesMax / 1e6);
  return new ApiError(
    'too_large',
    `the documents that docs[0] to docs[${index}] make, with the texts that stay, are over ${most} MB together; nothing was written: send fewer patches in one request`,
  );
}

function unknownDocument(id: string, index: number): ApiError {
  const shown = JSON.stringify(id.slice(0, 100));
  return new ApiError('not_found', `there is no document with the id ${shown}; nothing was written`, {
    fields: { [`docs[${index}].id`]: 'no such document' },
  });
}
