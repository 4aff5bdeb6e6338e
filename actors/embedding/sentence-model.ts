import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { readVocabulary } from './model-weights.ts';
import { plainSentence } from './plain-sentence.ts';
import { addPiece, bringToLengthOne } from './sum-vectors.ts';
import { piecesOf, planBatches } from './token-pieces.ts';
import { UnigramTokenizer } from './unigram-tokenizer.ts';
import { vectorDims } from './use-lite-graph.ts';
import { UseLiteSession } from './use-lite-session.ts';

export interface Embeddings {
  /** 512 numbers a text, in the order of the texts. */
  readonly vectors: Float32Array;
  /** Those that the model has read. */
  readonly tokens: number;
}

/** ApiError `embedding_failed` where the model cannot run on this platform. */
export async function openSentenceModel(openSession = () => UseLiteSession.open()): Promise<SentenceModel> {
  try {
    const tokenizer = new UnigramTokenizer(await readVocabulary());
    return new SentenceModel(tokenizer, await openSession());
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}`;
    throw new ApiError(
      'embedding_failed',
      `the built-in embedding model does not run on this server (onnxruntime on ${platform}): choose another provider, or send vectors`,
      { cause },
    );
  }
}

/**
 * The model that is built in: English texts to vectors, which are near where the texts mean the like.
 *
 * - Letters' case, white space and a point at the end say nothing (`plain-sentence.ts`), nor does what all texts have in
 *   common (`sum-vectors.ts`).
 * - A text of more than 128 tokens is read in pieces of 128. Its vector is their mean, each weighed by its tokens, brought
 *   to length 1 again. What is behind the first 8,192 tokens is not read.
 * - A text without a word has a vector of zeros: it is equally far from everything. What the model itself makes of nothing
 *   is a direction like any other, and would be found before texts that are merely off the subject.
 * - The same text has the same vector, alone or among others, to about 1e-6: batches differ in how sums are grouped.
 *
 * A call computes on the calling thread, some 16 ms for each 128 tokens, and gives way between batches. Callers bound what
 * they give: the texts of one call wait in memory as tokens, 16 KB a text at most.
 */
export class SentenceModel {
  readonly #tokenizer: UnigramTokenizer;
  readonly #session: UseLiteSession;

  constructor(tokenizer: UnigramTokenizer, session: UseLiteSession) {
    this.#tokenizer = tokenizer;
    this.#session = session;
  }

  async embed(texts: readonly string[]): Promise<Embeddings> {
    const ids = texts.map((text) => this.#tokenizer.encode(plainSentence(text), limits.embeddedTokensMax));
    const vectors = new Float32Array(texts.length * vectorDims);
    for (const batch of planBatches(piecesOf(ids))) {
      const made = await this.#session.run(batch.map((piece) => piece.tokenIds));
      for (const [at, piece] of batch.entries()) addPiece(vectors, piece, rowOf(made, at));
    }
    for (let text = 0; text < texts.length; text++) bringToLengthOne(rowOf(vectors, text));
    return { vectors, tokens: ids.reduce((sum, each) => sum + each.length, 0) };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

function rowOf(vectors: Float32Array, at: number): Float32Array {
  return vectors.subarray(at * vectorDims, (at + 1) * vectorDims);
}
