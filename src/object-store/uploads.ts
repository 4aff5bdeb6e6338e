/** What the stores of uploads share. */
import type { Upload, UploadPage } from './object-store.ts';

/** Bytes of the pieces in which the folder store writes an object. */
export const folderPieceBytes = 1024 * 1024;

/**
 * The bytes of a stream in pieces of exactly `partBytes`, the last one shorter; at least one piece, which may be empty. Whoever takes a piece may
 * keep it, unless `lends`: then it is good until the next one is asked for, and is not copied where one chunk has all of it.
 */
export async function* inParts(
  chunks: AsyncIterable<Uint8Array>,
  partBytes: number,
  { lends = false }: { readonly lends?: boolean } = {},
): AsyncGenerator<Uint8Array, void, void> {
  let part = new Uint8Array(0);
  let filled = 0;
  let parts = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const piece = chunk.subarray(taken, taken + partBytes - filled);
      taken += piece.length;
      if (lends && piece.length === partBytes) {
        yield piece;
        parts++;
        continue;
      }
      if (filled === 0) part = new Uint8Array(partBytes);
      part.set(piece, filled);
      filled += piece.length;
      if (filled < partBytes) continue;
      yield part;
      parts++;
      filled = 0;
    }
  }
  if (filled > 0 || parts === 0) yield part.slice(0, filled);
}

/** The page of a listing from everything that there is. */
export function pageOfUploads(
  all: readonly Upload[],
  wanted: { readonly prefix: string; readonly after: Upload | undefined; readonly limit: number },
): UploadPage {
  const { prefix, after, limit } = wanted;
  const found = all
    .filter((upload) => upload.key.startsWith(prefix) && (after === undefined || compare(upload, after) > 0))
    .sort(compare);
  return { uploads: found.slice(0, limit), more: found.length > limit };
}

function compare(a: Upload, b: Upload): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uploadId < b.uploadId ? -1 : Number(a.uploadId > b.uploadId);
}
