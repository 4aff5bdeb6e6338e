import { limits } from '../../protocol/limits.ts';
import { must } from '../../src/base/assert.ts';
import type { ActorComponents } from '../components.ts';
import { embedTexts } from '../embed-texts.ts';
import {
  BatchBuilder,
  documentDims,
  documentIdBytes,
  documentMeta,
  documentText,
  documentVector,
} from '../storage/document-batch.ts';
import { type LoadedBatch, loadBatch, type NamespaceState } from './namespace-state.ts';

/**
 * The vectors that a write leaves to the namespace's model: of documents, and of patches, that have a text and no vector. The
 * batch is written anew with them, so that the log holds what was embedded and replaying it asks nobody.
 *
 * A text of white space says nothing to be found by, and gets none.
 */
export interface EmbeddedBatch {
  readonly batch: LoadedBatch;
  /** As the model counts them. */
  readonly tokens: number;
}

export async function embedBatch(
  components: ActorComponents,
  state: NamespaceState,
  batch: LoadedBatch,
  deadlineMs: number,
): Promise<EmbeddedBatch> {
  const { embed, vector, identity } = state;
  const places = embed === null || vector === null ? [] : placesToEmbed(batch);
  if (embed === null || vector === null || places.length === 0) return { batch, tokens: 0 };
  const { buffer, documentOffsets } = batch;
  const texts = places.map((at) => textOf(buffer, must(documentOffsets[at], 'a document')));
  const { dims } = vector;
  const { tenantId } = identity;
  const wanted = { tenantId, embed, dims, texts, purpose: 'document' as const, deadlineMs };
  const { vectors, tokens } = await embedTexts(components, wanted);
  return { batch: await withVectors(components, batch, { places, vectors, dims }), tokens };
}

/** Which of the batch's documents, in their order. */
function placesToEmbed({ buffer, documentOffsets }: LoadedBatch): number[] {
  const places: number[] = [];
  for (const [at, offset] of documentOffsets.entries()) {
    if (documentDims(buffer, offset) > 0) continue;
    const text = documentText(buffer, offset);
    if (text !== null && !isBlank(text)) places.push(at);
  }
  return places;
}

/** Hot: ends with the first byte that says something. */
function isBlank(text: Buffer): boolean {
  for (const byte of text) if (byte > 0x20) return false;
  return true;
}

/** As much as models read; a character that is cut in two at the end is left out. */
function textOf(buffer: Buffer, offset: number): string {
  const text = must(documentText(buffer, offset), 'a text');
  if (text.length <= limits.embeddedTextBytesMax) return text.toString();
  let end = limits.embeddedTextBytesMax;
  while (end > 0 && ((text[end] as number) & 0xc0) === 0x80) end--;
  return text.toString('utf8', 0, end);
}

interface NewVectors {
  readonly places: readonly number[];
  readonly vectors: Float32Array;
  readonly dims: number;
}

async function withVectors(
  { clock }: ActorComponents,
  { buffer, documentOffsets, deletes }: LoadedBatch,
  { places, vectors, dims }: NewVectors,
): Promise<LoadedBatch> {
  const builder = new BatchBuilder({ bytesExpected: buffer.byteLength + vectors.byteLength });
  let next = 0;
  let sliceBegan = clock.monotonic();
  for (const [at, offset] of documentOffsets.entries()) {
    if (places[next] === at) {
      const vector = vectors.subarray(next * dims, (next + 1) * dims);
      next++;
      builder.addDocument({ ...partsOf(buffer, offset), vector });
    } else {
      builder.addDocument({ ...partsOf(buffer, offset), vector: documentVector(buffer, offset) });
    }
    if (clock.monotonic() - sliceBegan < limits.timeSliceMs) continue;
    await clock.yieldTurn();
    sliceBegan = clock.monotonic();
  }
  for (const id of deletes) builder.addDelete(id);
  return loadBatch(builder.finish());
}

function partsOf(buffer: Buffer, offset: number) {
  return {
    id: documentIdBytes(buffer, offset),
    text: documentText(buffer, offset),
    meta: documentMeta(buffer, offset),
  };
}
