/**
 * How often a question finds the text that answers it in other words, among many others: the rate at which the text is
 * among the first places by the cosine of their vectors.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { ParaphrasePair } from './paraphrase-pairs.ts';

/** One vector a text, each of length 1, one behind the other. */
export type Embed = (texts: readonly string[]) => Promise<Float32Array>;

export interface ParaphraseRates {
  /** The pairs whose text came first; the next are those whose text was among the first five. */
  readonly topOne: number;
  readonly topFive: number;
  /** 1 is the best. In the order of the pairs. */
  readonly places: readonly number[];
}

export async function paraphraseRates(
  pairs: readonly ParaphrasePair[],
  others: readonly string[],
  embed: Embed,
): Promise<ParaphraseRates> {
  const queries = await embed(pairs.map(({ query }) => query));
  const texts = await embed([...pairs.map(({ text }) => text), ...others]);
  const dims = queries.length / pairs.length;
  const places = pairs.map((_, at) => placeOf(at, queries.subarray(at * dims, (at + 1) * dims), texts));
  const rateWithin = (first: number) => places.filter((place) => place <= first).length / pairs.length;
  return { topOne: rateWithin(1), topFive: rateWithin(5), places };
}

/** Where the text at `wanted` comes, of all. */
function placeOf(wanted: number, query: Float32Array, texts: Float32Array): number {
  const score = (at: number) => {
    let dot = 0;
    for (let i = 0; i < query.length; i++)
      dot += (query[i] as number) * (texts[at * query.length + i] as number);
    return dot;
  };
  const own = score(wanted);
  let place = 1;
  for (let at = 0; at < texts.length / query.length; at++) if (score(at) > own) place++;
  return place;
}

/**
 * Descriptions of Debian's packages, as people wrote them: a line each. The same ones wherever the list of packages is the
 * same; in an order that has nothing to do with their names. Throws where there is no list: `apt-get update` gets one.
 */
export function packageDescriptions(count: number): string[] {
  const { stdout } = spawnSync('apt-cache', ['dumpavail'], { encoding: 'utf8', maxBuffer: 1 << 30 });
  const lines = (stdout ?? '').matchAll(/^Description: (.+)$/gm);
  const found = inOrderOfDigests([...lines].map(([, line = '']) => line));
  if (found.length < count) throw new Error('no list of Debian packages here: apt-get update');
  return found.slice(0, count);
}

/** Each text once, in an order that has nothing to do with what they say. */
export function inOrderOfDigests(texts: readonly string[]): string[] {
  const digests = new Map(texts.map((text) => [text, createHash('sha256').update(text).digest('hex')]));
  return [...digests].toSorted(([, a], [, b]) => (a < b ? -1 : 1)).map(([text]) => text);
}
