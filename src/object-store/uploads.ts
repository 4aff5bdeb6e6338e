/** What the stores of uploads share. */
import type { Upload, UploadPage } from './object-store.ts';

/** The bytes of a stream in pieces of exactly `partBytes`, the last one shorter; at least one piece, which may be empty. */
export async function* inParts(
  chunks: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  let part = new Uint8Array(partBytes);
  let filled = 0;
  let parts = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const piece = chunk.subarray(taken, taken + partBytes - filled);
      part.set(piece, filled);
      taken += piece.length;
      filled += piece.length;
      if (filled < partBytes) continue;
      yield part;
      parts++;
      part = new Uint8Array(partBytes);
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
