import { figuresJson, formatMicros, type QueryFigures, vectorField } from '../search/answers.ts';
import type { DiskTally, ReadTally } from '../storage/block-fetch.ts';
import { documentId, documentMeta, documentText, documentVector } from '../storage/document-batch.ts';
import { type WantedIds, wantIdForNow, wantIds } from '../storage/hash-order.ts';
import type { DocumentPlace as SegmentPlace } from '../storage/segment-reader.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { NamespaceState } from './namespace-state.ts';

/** The place of a live document at this moment. */
export interface LiveDocument {
  readonly buffer: Buffer;
  readonly offset: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
}

/** Without a promise where memory or the local disk has the answer: null there is none, 'cold' only a read of a segment can tell. */
export function findWarm(state: NamespaceState, id: string, tally: DiskTally): LiveDocument | null | 'cold' {
  for (const memtable of state.memtablesNewestFirst()) {
    const row = memtable.find(id);
    if (row < 0) continue;
    return {
      buffer: memtable.bufferOf(row),
      offset: memtable.offsetOf(row),
      writtenAt: memtable.writtenAtOf(row),
    };
  }
  return state.segments.length === 0 ? null : findWarmInSegments(state, wantIdForNow(id), tally);
}

function findWarmInSegments(
  state: NamespaceState,
  wanted: WantedIds,
  tally: DiskTally,
): LiveDocument | null | 'cold' {
  for (let i = state.segments.length - 1; i >= 0; i--) {
    const segment = state.segments[i];
    if (segment === undefined) continue;
    const found = segment.reader.findCached(wanted, 0, tally);
    if (found === 'miss') return 'cold';
    if (found === null || isDeleted(segment.tombstones, found.row)) continue;
    const place = segment.reader.placeCached(found, tally);
    return place === 'miss' ? 'cold' : inBlock(place);
  }
  return null;
}

/**
 * All segments are asked at once: a cold read waits for two rounds, however many there are. The newest one that has the
 * document answers; one that can't be read matters only where no newer one has it.
 */
export async function findDocument(
  state: NamespaceState,
  id: string,
  tally: ReadTally,
): Promise<LiveDocument | null> {
  const warm = findWarm(state, id, tally);
  if (warm !== 'cold') return warm;
  const wanted = wantIds([id]);
  const asked = [...state.segments].reverse();
  const answers = await Promise.allSettled(asked.map(({ reader }) => reader.findRow(wanted, 0, tally)));
  for (const [i, { reader, tombstones }] of asked.entries()) {
    const answer = answers[i];
    if (answer?.status === 'rejected') throw answer.reason;
    const place = answer?.value ?? null;
    if (place !== null && !isDeleted(tombstones, place.row))
      return inBlock(await reader.readPlace(place, tally));
  }
  return null;
}

function inBlock({ block, index }: SegmentPlace): LiveDocument {
  return { buffer: block.buffer, offset: block.entryOffset(index), writtenAt: block.writtenAt[index] ?? 0 };
}

/** The answer of a single read, as bytes. Meta goes out as it came in. */
export function documentBytes(place: LiveDocument, figures: QueryFigures): Buffer {
  const { buffer, offset } = place;
  const text = documentText(buffer, offset);
  const vector = vectorField(documentVector(buffer, offset));
  const tail = `${vector},"written_at":"${formatMicros(place.writtenAt)}",${figuresJson(figures)}}`;
  const meta = documentMeta(buffer, offset) ?? noMeta;
  if (text === null || !isPlain(text))
    return Buffer.from(`${escapedHead(place, text)}${meta.toString()}${tail}`);
  const head = `{"id":${JSON.stringify(documentId(buffer, offset))},"text":"`;
  const headBytes = Buffer.byteLength(head);
  const answer = Buffer.allocUnsafe(headBytes + text.length + middle.length + meta.length + tail.length);
  let at = answer.write(head, 0);
  at += text.copy(answer, at);
  at += middle.copy(answer, at);
  at += meta.copy(answer, at);
  answer.write(tail, at, 'latin1');
  return answer;
}

const noMeta = Buffer.from('{}');
const middle = Buffer.from('","meta":');

function escapedHead({ buffer, offset }: LiveDocument, text: Buffer | null): string {
  const textJson = JSON.stringify(text?.toString() ?? '');
  return `{"id":${JSON.stringify(documentId(buffer, offset))},"text":${textJson},"meta":`;
}

/** Longer texts are escaped by V8, which is faster then. */
const plainBytesMax = 4_096;

/**
 * Hot: whether JSON writes the text as it is. Most short texts are so, and then their bytes are copied, which costs a
 * third of decoding, escaping and encoding them again.
 */
function isPlain(text: Buffer): boolean {
  if (text.length > plainBytesMax) return false;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] as number;
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return false;
  }
  return true;
}
