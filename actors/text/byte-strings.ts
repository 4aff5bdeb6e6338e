import { all, allOf, anyOf, evenlySpaced } from './combine-queries.ts';
import { encodeUtf8, foldCodePoint } from './fold.ts';
import type { TrigramQuery } from './trigram-query.ts';

/** Folded bytes, one a character of the string (U+0000 to U+00FF): sets and concatenations come with the language. */
export type ByteString = string;
export type ByteStrings = ReadonlySet<ByteString>;

/**
 * Trigrams of one string that a plan asks for. A literal may have thousands, each a posting list to be read, and a few
 * dozen leave hardly a document that does not match; they are taken at even distances, because a text that has the one
 * half of a long literal and not the other is then found out too.
 */
const trigramsOfStringMax = 32;
/** Alternatives of one or two bytes: each is a walk through the dictionary, and a handful of them is in every text. */
const shortStringsMax = 8;

const bytes = new Uint8Array(4);

/** Folded and in UTF-8. */
export function byteStringOf(codePoints: readonly number[]): ByteString {
  return codePoints.map(byteStringOfOne).join('');
}

function byteStringOfOne(codePoint: number): ByteString {
  return String.fromCharCode(...bytes.subarray(0, encodeUtf8(foldCodePoint(codePoint), bytes, 0)));
}

export function crossProduct(left: ByteStrings, right: ByteStrings): ByteStrings {
  const products = new Set<ByteString>();
  for (const a of left) for (const b of right) products.add(a + b);
  return products;
}

export function union(left: ByteStrings, right: ByteStrings): ByteStrings {
  return new Set([...left, ...right]);
}

/** The length of the shortest string; 0 for an empty set, since nothing is known. */
export function shortestOf(strings: ByteStrings): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (const string of strings) shortest = Math.min(shortest, string.length);
  return strings.size === 0 ? 0 : shortest;
}

/** The condition that a text contains one of these strings, by trigrams only: `all` where one of them has none. */
export function containsAny(strings: ByteStrings): TrigramQuery {
  if (shortestOf(strings) < 3) return all;
  return anyOf([...strings].map(trigramsOf));
}

/** As containsAny, with strings of one and two bytes as parts of trigrams, where they are few. */
export function containsAnyOrParts(strings: ByteStrings): TrigramQuery {
  const short = [...strings].filter((string) => string.length < 3);
  if (shortestOf(strings) === 0 || short.length > shortStringsMax) return all;
  const parts = short.map(
    (string): TrigramQuery => ({ kind: 'part', bytes: [...Buffer.from(string, 'latin1')] }),
  );
  const long = [...strings].filter((string) => string.length >= 3);
  return anyOf([...long.map(trigramsOf), ...parts]);
}

function trigramsOf(string: ByteString): TrigramQuery {
  if (string.length === 3) return trigramAt(string, 0);
  const starts = Array.from({ length: string.length - 2 }, (_, at) => at);
  return allOf(evenlySpaced(starts, trigramsOfStringMax).map((at) => trigramAt(string, at)));
}

function trigramAt(string: ByteString, at: number): TrigramQuery {
  const trigram =
    (string.charCodeAt(at) << 16) | (string.charCodeAt(at + 1) << 8) | string.charCodeAt(at + 2);
  return { kind: 'trigram', trigram };
}
