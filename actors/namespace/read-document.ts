import { formatMicros, type QueryReport, rawMetaOf, reportJson } from '../search/answers.ts';
import type { ReadReport } from '../storage/block-fetch.ts';
import { documentId, documentText } from '../storage/document-batch.ts';
import type { DocumentPlace as SegmentPlace } from '../storage/segment-reader.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { NamespaceState } from './namespace-state.ts';

/** Where a live document lies at this moment. */
export interface DocumentPlace {
  readonly buffer: Buffer;
  readonly offset: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
}

/** Without a promise where memory has the answer: null there is none, 'cold' only a read of a segment can tell. */
export function findWarm(state: NamespaceState, id: string): DocumentPlace | null | 'cold' {
  for (const memtable of state.memtablesNewestFirst()) {
    const row = memtable.find(id);
    if (row < 0) continue;
    return {
      buffer: memtable.bufferOf(row),
      offset: memtable.offsetOf(row),
      writtenAt: memtable.writtenAtOf(row),
    };
  }
  for (let i = state.segments.length - 1; i >= 0; i--) {
    const segment = state.segments[i];
    if (segment === undefined) continue;
    const found = segment.reader.findCached(id);
    if (found === 'miss') return 'cold';
    if (found !== null && !isDeleted(segment.tombstones, found.row)) return inBlock(found);
  }
  return null;
}

export async function findDocument(
  state: NamespaceState,
  id: string,
  report: ReadReport,
): Promise<DocumentPlace | null> {
  const warm = findWarm(state, id);
  if (warm !== 'cold') return warm;
  for (const { reader, tombstones } of [...state.segments].reverse()) {
    const found = await reader.findRow(id, report);
    if (found !== null && !isDeleted(tombstones, found.row)) return inBlock(found);
  }
  return null;
}

function inBlock({ block, index }: SegmentPlace): DocumentPlace {
  return { buffer: block.buffer, offset: block.entryOffset(index), writtenAt: block.writtenAt[index] ?? 0 };
}

/** The answer of a single read. Meta goes out as it came in. */
export function documentJson(place: DocumentPlace, report: QueryReport): string {
  const { buffer, offset } = place;
  const text = documentText(buffer, offset);
  const textField = text === null ? '' : `"text":${JSON.stringify(text.toString('utf8'))},`;
  return (
    `{"id":${JSON.stringify(documentId(buffer, offset))},${textField}"meta":${rawMetaOf(buffer, offset)},` +
    `"written_at":"${formatMicros(place.writtenAt)}",${reportJson(report)}}`
  );
}
