/**
 * The trigram index of a segment. Its pages are blocks of the segment (segment-format.ts), so each has a checksum and is
 * bound to its place.
 *
 * - *Spans*: consecutive row groups whose index was built in one piece of memory; a segment of up to some hundred MB of
 *   text has one. A span's pages follow each other; they may stand between blocks of documents.
 * - The sparse index, one block: varints. Span count; for each span: its groups, its page count, its place in the object
 *   (u32 low, then high part), and for each page: its first trigram less the one before, its stored bytes, its entries.
 * - Row groups, one block (row-groups.ts).
 * - The root, which the table of contents carries: places of the two, and how many groups and rows there are.
 */
import { DataError } from '../../src/base/assert.ts';
import { type BlockPlace, blockHeaderBytes, blockKinds } from '../storage/segment-format.ts';
import { ageBound } from './postings.ts';
import { trigramBound } from './trigram-page.ts';
import { readVarint, varintEnd, writeVarint } from './varint.ts';

export interface IndexSpan {
  /** The first row group of the span, by its number in the segment. */
  readonly firstGroup: number;
  readonly groupCount: number;
  /** The first trigram of each page, ascending. */
  readonly firstTrigrams: Uint32Array;
  /** Where each page begins, from the start of the object, at its block header; the last number is where the last page ends. */
  readonly offsets: Float64Array;
  readonly entryCounts: Uint32Array;
}

export interface IndexRoot {
  readonly sparse: BlockPlace;
  readonly rowGroups: BlockPlace;
  readonly groupCount: number;
  readonly rowCount: number;
}

/** What the writer knows of a page. */
export interface WrittenPage {
  readonly firstTrigram: number;
  readonly entryCount: number;
  readonly offset: number;
  readonly length: number;
}

export interface WrittenSpan {
  readonly groupCount: number;
  readonly pages: readonly WrittenPage[];
}

const half = 2 ** 32;
/** A span is at most five numbers, a page three, and no varint is longer than five bytes. */
const spanBytesMax = 25;
const pageBytesMax = 15;
/** A page takes at least three bytes here, a span five. */
const pageBytesMin = 3;

export function encodeSparse(spans: readonly WrittenSpan[]): Uint8Array {
  const room = spans.reduce((sum, span) => sum + spanBytesMax + span.pages.length * pageBytesMax, 5);
  const bytes = new Uint8Array(room);
  let at = writeVarint(bytes, 0, spans.length);
  for (const { groupCount, pages } of spans) {
    const offset = pages[0]?.offset ?? 0;
    at = writeVarint(bytes, at, groupCount);
    at = writeVarint(bytes, at, pages.length);
    at = writeVarint(bytes, at, offset % half);
    at = writeVarint(bytes, at, Math.floor(offset / half));
    let previous = 0;
    for (const page of pages) {
      at = writeVarint(bytes, at, page.firstTrigram - previous);
      at = writeVarint(bytes, at, page.length);
      at = writeVarint(bytes, at, page.entryCount);
      previous = page.firstTrigram;
    }
  }
  return bytes.slice(0, at);
}

/** Oldest first. `place` is where the bytes lie. Throws `DataError` for anything but whole spans of that many groups. */
export function decodeSparse(
  bytes: Uint8Array,
  groupCount: number,
  place: { readonly name: string; readonly offset: number },
): IndexSpan[] {
  const damaged = (reason: string) => new DataError(place.name, place.offset, `trigram index: ${reason}`);
  let at = 0;
  const read = (): number => {
    if (at >= bytes.length) throw damaged('it is cut short');
    const value = readVarint(bytes, at);
    at = varintEnd;
    return value;
  };
  const spans: IndexSpan[] = [];
  let firstGroup = 0;
  for (let left = read(); left > 0; left--) {
    const groups = read();
    const pageCount = read();
    if (groups === 0 || groups > ageBound) throw damaged(`a span of ${groups} groups`);
    // Nothing is allocated for a count that the bytes can't hold.
    if (pageCount * pageBytesMin > bytes.length - at) throw damaged('more pages than bytes');
    const firstTrigrams = new Uint32Array(pageCount);
    const entryCounts = new Uint32Array(pageCount);
    const offsets = new Float64Array(pageCount + 1);
    let offset = read() + read() * half;
    let trigram = 0;
    for (let page = 0; page < pageCount; page++) {
      trigram += read();
      if (trigram >= trigramBound) throw damaged('a trigram of more than three bytes');
      firstTrigrams[page] = trigram;
      offsets[page] = offset;
      const length = read();
      if (length <= blockHeaderBytes) throw damaged('a page without bytes');
      offset += length;
      entryCounts[page] = read();
    }
    offsets[pageCount] = offset;
    // The sparse index stands after all pages.
    if (offset > place.offset) throw damaged('pages where none can be');
    spans.push({ firstGroup, groupCount: groups, firstTrigrams, offsets, entryCounts });
    firstGroup += groups;
  }
  if (at !== bytes.length || firstGroup !== groupCount) throw damaged('it ends elsewhere');
  return spans;
}

/** As protocol/version.ts tells its history. */
export const trigramIndexVersion = 2;

/** u48 offset and u32 length of the sparse index, the same of the row groups, u32 groups, u32 rows, u32 version. */
const rootBytes = 32;

export function encodeIndexRoot(root: IndexRoot): Uint8Array {
  const bytes = Buffer.alloc(rootBytes);
  bytes.writeUIntLE(root.sparse.offset, 0, 6);
  bytes.writeUInt32LE(root.sparse.length, 6);
  bytes.writeUIntLE(root.rowGroups.offset, 10, 6);
  bytes.writeUInt32LE(root.rowGroups.length, 16);
  bytes.writeUInt32LE(root.groupCount, 20);
  bytes.writeUInt32LE(root.rowCount, 24);
  bytes.writeUInt32LE(trigramIndexVersion, 28);
  return bytes;
}

export function decodeIndexRoot(bytes: Uint8Array, objectKey: string): IndexRoot {
  if (bytes.length !== rootBytes) throw new DataError(objectKey, 0, 'no root of a trigram index');
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.readUInt32LE(28);
  if (version !== trigramIndexVersion)
    throw new DataError(objectKey, 0, `trigram index format ${version} is not known`);
  return {
    sparse: { offset: view.readUIntLE(0, 6), length: view.readUInt32LE(6), kind: blockKinds.trigramSparse },
    rowGroups: { offset: view.readUIntLE(10, 6), length: view.readUInt32LE(16), kind: blockKinds.rowGroups },
    groupCount: view.readUInt32LE(20),
    rowCount: view.readUInt32LE(24),
  };
}
