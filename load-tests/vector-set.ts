import { DistanceFrom } from '../actors/vector/distance.ts';
import { Nearest, type Ranked } from '../actors/vector/nearest.ts';
import { Chance } from '../test/simulation/chance.ts';

/**
 * Vectors with what a load test knows of them: which are there, and which are truly the nearest. Numbers of documents are
 * indexes of `rows`; a document that is replaced takes another row.
 */
export interface VectorRows {
  readonly dims: number;
  /** Those of the first row, of the second one, and so on. */
  readonly values: Float32Array;
}

/** As embeddings are: in clusters of very different sizes. The same for the same seed. */
export function clusteredVectors(
  count: number,
  dims: number,
  seed: number,
  clusters = Math.max(10, Math.round(count / 100)),
): VectorRows {
  const centres = new Chance(seed, 1);
  const members = new Chance(seed, 2);
  const middle = Float32Array.from({ length: clusters * dims }, () => normal(centres));
  const values = new Float32Array(count * dims);
  for (let row = 0; row < count; row++) {
    // Most are in a few of them.
    const cluster = Math.floor(clusters * members.fraction() ** 2);
    for (let i = 0; i < dims; i++)
      values[row * dims + i] = (middle[cluster * dims + i] as number) + spread * normal(members);
  }
  return { dims, values };
}

/** The distance of a member from its cluster's middle, whose numbers are normal too. */
const spread = 0.7;

function normal(chance: Chance): number {
  const length = Math.sqrt(-2 * Math.log(1 - chance.fraction()));
  return length * Math.cos(2 * Math.PI * chance.fraction());
}

export function rowOf({ values, dims }: VectorRows, row: number): Float32Array {
  return values.subarray(row * dims, (row + 1) * dims);
}

/** Filters that keep about so much of the documents, by their number; as `meta` has them. */
export const shares = [
  { name: '50 %', key: 'half', of: 2 },
  { name: '10 %', key: 'tenth', of: 10 },
  { name: '1 %', key: 'hundredth', of: 100 },
  { name: '0.1 %', key: 'thousandth', of: 1_000 },
] as const;

/** Spread by chance and not in turn, so that neighbours in time differ. */
export function metaOf(document: number): Record<string, number> {
  const mixed = Math.imul(document ^ 0x5bd1e995, 0x27d4eb2d) >>> 8;
  return Object.fromEntries(shares.map(({ key, of }) => [key, mixed % of]));
}

export function idOf(document: number): string {
  return `document-${document}`;
}

export function documentOf(id: string): number {
  return Number(id.slice('document-'.length));
}

/** One request's documents; `rows`: which vector each has. */
export function vectorBody(
  vectors: VectorRows,
  documents: readonly { readonly document: number; readonly row: number }[],
  textOf: (document: number) => string,
): Buffer {
  const docs = documents.map(({ document, row }) => {
    const { buffer, byteOffset, byteLength } = rowOf(vectors, row);
    return {
      id: idOf(document),
      text: textOf(document),
      meta: metaOf(document),
      vector_b64: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
    };
  });
  return Buffer.from(JSON.stringify({ docs }));
}

/** Which documents there are, and the row of each: -1 for one that is deleted. */
export type LiveRows = Int32Array;

export type Near = Ranked & { readonly document: number };

/** The true ones, the nearest first, of each of several selections of the documents: all vectors are looked at once. */
export function trueNeighbours(
  vectors: VectorRows,
  live: LiveRows,
  query: Float32Array,
  wanted: { readonly count: number; readonly selections: readonly ((document: number) => boolean)[] },
): readonly (readonly Near[])[] {
  const from = new DistanceFrom(query, 'cosine');
  const nearest = wanted.selections.map((keeps) => ({ keeps, found: new Nearest<Near>(wanted.count) }));
  for (let document = 0; document < live.length; document++) {
    const row = live[document] as number;
    if (row < 0) continue;
    const candidate = { distance: from.to(vectors.values, row * vectors.dims), sequence: row };
    for (const { keeps, found } of nearest)
      if (found.wants(candidate) && keeps(document)) found.add({ ...candidate, document });
  }
  return nearest.map(({ found }) => found.sorted());
}
