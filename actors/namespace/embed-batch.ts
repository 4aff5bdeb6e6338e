import { limits } from '../../protocol/limits.ts';
import type { ActorComponents } from '../actor/components.ts';
import {
  BatchBuilder,
  documentDims,
  documentIdBytes,
  documentMeta,
  documentText,
  documentVector,
} from '../storage/document-batch.ts';
import { embedTexts } from './embed-texts.ts';
import { type LoadedBatch, loadBatch } from './loaded-batch.ts';
import type { NamespaceState } from './namespace-state.ts';

export interface EmbeddedBatch {
  readonly batch: LoadedBatch;
  /** How many tokens the texts have, as the model counts them. */
  readonly tokens: number;
}

/**
 * The vectors that a write leaves to the namespace's model: of documents, and of patches, that have a text and no vector. The
 * batch is written anew with them, so that the log holds what was embedded and replaying it asks nobody.
 *
 * A text of white space says nothing to be found by, and gets none.
 */
export async function embedBatch(
  components: ActorComponents,
  state: NamespaceState,
  batch: LoadedBatch,
  deadlineMs: number,
): Promise<EmbeddedBatch> {
  const { embed, vector, identity } = state;
  if (embed === null || vector === null) return { batch, tokens: 0 };
  const { places, texts } = textsToEmbed(batch);
  if (places.length === 0) return { batch, tokens: 0 };
  const { dims } = vector;
  const { tenantId } = identity;
  const wanted = { tenantId, embed, dims, texts, purpose: 'document' as const, deadlineMs };
  const { vectors, tokens } = await embedTexts(components, wanted);
  return { batch: await withVectors(components, batch, { places, vectors, dims }), tokens };
}

/** Which of the batch's documents, in their order, and the beginnings of their texts. */
function textsToEmbed({ buffer, documentOffsets }: LoadedBatch) {
  const places: number[] = [];
  const texts: string[] = [];
  for (const [at, offset] of documentOffsets.entries()) {
    if (documentDims(buffer, offset) > 0) continue;
    const text = documentText(buffer, offset);
    const beginning = text === null ? '' : beginningOf(text);
    if (beginning === '') continue;
    places.push(at);
    texts.push(beginning);
  }
  return { places, texts };
}

/**
 * As much as models read, from the first character that says something; a character that is cut in two at the end is left
 * out. Empty where there is none: models answer white space of any script with no vector.
 */
function beginningOf(text: Buffer): string {
  let start = 0;
  while (start < text.length && (text[start] as number) <= 0x20) start++;
  let end = Math.min(start + limits.embeddedTextBytesMax, text.length);
  while (end > start && end < text.length && ((text[end] as number) & 0xc0) === 0x80) end--;
  return text.toString('utf8', start, end).trim();
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
