import { foldedBytesMax, foldUtf8 } from '../../actors/text/fold.ts';
import type { TrigramQuery } from '../../actors/text/trigram-query.ts';

/** Trigram queries as people read them, and their meaning, spelled out in the plainest way. */
export function showQuery(query: TrigramQuery): string {
  switch (query.kind) {
    case 'all':
    case 'none':
      return query.kind.toUpperCase();
    case 'trigram':
      return showBytes([query.trigram >> 16, (query.trigram >> 8) & 0xff, query.trigram & 0xff]);
    case 'part':
      return `PART(${showBytes(query.bytes)})`;
    case 'and':
    case 'or':
      return `${query.kind.toUpperCase()}(${query.parts.map(showQuery).join(', ')})`;
  }
}

/** As text where the bytes are whole characters, else each byte that is none in hexadecimal. */
function showBytes(bytes: readonly number[]): string {
  const text = Buffer.from(bytes).toString();
  if (!text.includes('\ufffd')) return JSON.stringify(text);
  const shown = bytes.map((byte) =>
    byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).slice(1, -1) : `\\x${byte.toString(16)}`,
  );
  return `"${shown.join('')}"`;
}

/** The trigrams of a text, as an index has them: of its folded bytes, short texts padded with a byte that no text has. */
export function trigramsOfText(text: Uint8Array): ReadonlySet<number> {
  const folded = Buffer.alloc(foldedBytesMax(text.length));
  const length = foldUtf8(text, 0, text.length, folded, 0);
  const bytes = [...folded.subarray(0, length)];
  while (bytes.length < 3) bytes.push(0xff);
  const trigrams = new Set<number>();
  for (let i = 2; i < bytes.length; i++)
    trigrams.add(((bytes[i - 2] ?? 0) << 16) | ((bytes[i - 1] ?? 0) << 8) | (bytes[i] ?? 0));
  return trigrams;
}

export function fulfils(trigrams: ReadonlySet<number>, query: TrigramQuery): boolean {
  switch (query.kind) {
    case 'all':
      return true;
    case 'none':
      return false;
    case 'trigram':
      return trigrams.has(query.trigram);
    case 'part':
      return [...trigrams].some((trigram) => contains(trigram, query.bytes));
    case 'and':
      return query.parts.every((part) => fulfils(trigrams, part));
    case 'or':
      return query.parts.some((part) => fulfils(trigrams, part));
  }
}

function contains(trigram: number, bytes: readonly number[]): boolean {
  const own = [trigram >> 16, (trigram >> 8) & 0xff, trigram & 0xff];
  return own.some((_, at) => bytes.every((byte, i) => own[at + i] === byte));
}
