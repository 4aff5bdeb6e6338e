/**
 * What a provider answered, checked number by number before it becomes vectors: a wrong one would be stored, and found by
 * nobody for ever.
 */
export type ProviderVectors = readonly (readonly number[])[];

/**
 * Vectors of texts that come in several answers, in the order of the request. A text that was in no call keeps a vector of
 * zeros, which is near to nothing.
 */
export class EmbeddedVectors {
  readonly #texts: number;
  readonly #scaled: boolean;
  #dims: number | null;
  #values: Float32Array;

  /** `dims` null: the first answer says. `scaled`: each vector is brought to the length of 1. */
  constructor(options: { readonly texts: number; readonly dims: number | null; readonly scaled: boolean }) {
    this.#texts = options.texts;
    this.#scaled = options.scaled;
    this.#dims = options.dims;
    this.#values = new Float32Array(options.texts * (options.dims ?? 0));
  }

  get dims(): number {
    return this.#dims ?? 0;
  }

  /** The vectors of all texts, one after the other. */
  get values(): Float32Array {
    return this.#values;
  }

  /** Takes an answer's vectors, or says what is wrong with them (as the end of "answered with"). */
  take(embeddings: ProviderVectors, places: readonly number[]): string | null {
    const dims = this.#dims ?? embeddings[0]?.length ?? 0;
    const problem = embeddingsProblem(embeddings, { texts: places.length, dims });
    if (problem !== null) return problem;
    if (this.#dims === null) this.#values = new Float32Array(this.#texts * dims);
    this.#dims = dims;
    for (const [i, place] of places.entries()) {
      const vector = this.#values.subarray(place * dims, (place + 1) * dims);
      vector.set(embeddings[i] ?? []);
      if (this.#scaled) scale(vector);
    }
    return null;
  }
}

export function embeddingsProblem(
  embeddings: ProviderVectors,
  { texts, dims }: { readonly texts: number; readonly dims: number },
): string | null {
  if (embeddings.length !== texts) return `${embeddings.length} vectors for ${texts} texts`;
  for (const vector of embeddings) {
    if (vector.length === 0) return 'an empty vector';
    if (vector.length !== dims) return `vectors of ${vector.length} numbers where ${dims} are needed`;
    for (const number of vector) {
      // Also of a double beyond float32, which would be stored as infinity.
      if (!Number.isFinite(Math.fround(number))) return 'a number that is none, or too large';
    }
  }
  return null;
}

/**
 * OpenAI's and Mistral's vectors carry the place of their text, and nothing promises that they come in its order. Null
 * where the places are not each of the texts' once.
 */
export function inOrder(embeddings: ProviderVectors, body: unknown): ProviderVectors | null {
  const data = (body as { readonly data?: unknown } | null | undefined)?.data;
  if (!Array.isArray(data) || data.length !== embeddings.length) return embeddings;
  const places = data.map((item: { readonly index?: unknown } | null) => item?.index);
  // Proxies leave them out.
  if (!places.every((place) => typeof place === 'number')) return embeddings;
  const byPlace = new Map(embeddings.map((embedding, i) => [places[i], embedding]));
  const ordered = embeddings.map((_, i) => byPlace.get(i));
  return ordered.every((embedding) => embedding !== undefined) ? ordered : null;
}

function scale(vector: Float32Array): void {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (length === 0) return;
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] as number) / length;
}
