/** What an open namespace holds in memory, for the thread's budget. Pure. */
import type { Manifest } from '../storage/manifest.ts';
import type { Committed } from '../storage/manifest-store.ts';
import { sectionOf } from '../storage/segment-format.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { tombstoneBytes } from '../storage/tombstones.ts';
import { openGraphBytesPerVector } from '../vector/hnsw.ts';
import type { NamespaceState } from './namespace-state.ts';

/** An open actor without a document: its objects, closures and map entries. Measured by `test/bench/open-actors.bench.ts`. */
export const openNamespaceBytes = 6_000;
/** A decoded record beside the bytes it was decoded from. */
const manifestOverheadShare = 2;
/** A segment's reader and its table of contents as objects. */
const segmentOverheadBytes = 2_500;
/** A block's columns in the reader's index. */
const blockIndexEntryBytes = 28;
/**
 * Bytes that the text index keeps in memory for each byte of documents: 16 for a page of some 150 KB of text, 1.2 for a row
 * group of 4 KB.
 */
const textIndexShare = 1 / 2_048;
/** A block's place as an object, for each byte of the stored directory, which is compressed. */
const vectorIndexShare = 8;

/** The manifest as it was committed last, and the tombstones of this moment. */
export function manifestBytes(
  { committed, sharedTailBytes }: { committed: Committed<Manifest> | null; sharedTailBytes: number },
  segments: NamespaceState['segments'],
): number {
  let bytes = 0;
  if (committed !== null) {
    const tailBytes = committed.value.tail?.entries.byteLength ?? 0;
    bytes = tailBytes - sharedTailBytes + (committed.size - tailBytes) * manifestOverheadShare;
  }
  for (const { tombstones } of segments) bytes += tombstoneBytes(tombstones);
  return bytes;
}

/** As if every reader had loaded its indexes: a query that walks the segment loads them, and they stay. Graphs' files are mapped,
 * which is the disk's cache and not counted. */
export function readerBytes(segments: readonly OpenSegment[]): number {
  let bytes = 0;
  for (const { reader, graphs } of segments) {
    const blocks = sectionOf(reader.toc, 'blocks')?.entryCount ?? 0;
    bytes += segmentOverheadBytes + blocks * blockIndexEntryBytes + reader.toc.docsRawBytes * textIndexShare;
    bytes += (sectionOf(reader.toc, 'vectors')?.length ?? 0) * vectorIndexShare;
    for (const { count } of graphs ?? []) bytes += count * openGraphBytesPerVector;
  }
  return bytes;
}
