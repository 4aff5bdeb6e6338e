/**
 * The bytes of a segment object, format only. All integers are little-endian.
 *
 *   sections, each a run of blocks | table of contents (a record) | footer, 32 bytes
 *
 * Block: u32 magic | u32 stored length | u32 raw length | u8 codec | u8 kind | u16 zero | u64 xxh64 of the stored bytes |
 * stored bytes. Every header field is checked: by its own constant, by the checksum, or because the lengths must agree.
 * The checksum is seeded with the object's key and the block's offset, so that an intact block verifies nowhere else.
 *
 * Sections since version 2:
 * - `docs`: blocks of documents in row order, rows ascending by sequence. Raw form: u32 row count | u32 first row |
 *   f64 sequence per row | f64 written at per row (microseconds since 1970) | u32 entry offset per row, from the start
 *   of the raw form | entries as document-batch.ts encodes them, without gaps.
 * - `blocks`: the index of the document blocks, pages of `blockEntry`: u32 first row | u32 row count | f64 first
 *   sequence | u48 object offset | u32 block length.
 * - `filter`: pages of `filterEntry`, the blocks of a filter of the ids (id-filter.ts).
 * - `ids`: pages of `idEntry` sorted by the first 64 bits of the id's digest (id-digest.ts), then row: the digest, big-endian
 *   | u32 row | u48 object offset and u32 length of the row's document block.
 * - `text`, since version 4: the trigram index of the documents' texts (trigram-index-writer.ts), since version 6 with parts
 *   of large texts. A large segment has further blocks of it among its documents'.
 * - `columns`, since version 5: the documents' metas by key (actors/columns). As with `text`, most of its blocks may stand
 *   among the documents'.
 * - `vectors`, since version 7: the documents' vectors (actors/vector). Its blocks stand among the documents'.
 *
 * Pages are uncompressed blocks of equal size (the last one may be shorter), so that page n's place is arithmetic.
 */
import { storedBytes, storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { DataError } from '../../src/base/assert.ts';
import { xxh64, xxh64Text } from '../../src/base/hash.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import {
  blockRawBytesMax,
  type CompressedBlock,
  codecs,
  compressBlock,
  decompressBlock,
} from './compress.ts';

export const segmentFormatVersion = formats.segment.version;

export const blockHeaderBytes = 24;
export const segmentFooterBytes = 32;
const blockMagic = 0x6b6c_4254; // "TBlk"
const footerMagic = 0x6765_5354; // "TSeg"

/** Part of the disk format: never reused for another meaning. Later sections take the next numbers. */
export const blockKinds = {
  documents: 1,
  blockIndex: 2,
  ids: 3,
  filter: 4,
  trigrams: 5,
  trigramSparse: 6,
  rowGroups: 7,
  column: 8,
  columnDirectory: 9,
  vectors: 10,
  vectorDirectory: 11,
} as const;

/** Chosen so that a page with its header, and the warm cache's own, is one 4 KB page of LMDB. */
export const idEntry = { bytes: 30, perPage: 133, digest: 0, row: 16, offset: 20, length: 26 } as const;
/** Pages of 32 KB: a filter is asked for many ids at a time, and its pages stay where they were read once. */
export const filterEntry = { bytes: 64, perPage: 512 } as const;
export const blockEntry = {
  bytes: 26,
  perPage: 154,
  firstRow: 0,
  rowCount: 4,
  firstSequence: 8,
  offset: 16,
  length: 22,
} as const;

const segmentSectionSchema = z.strictObject({
  name: z.string(),
  /** Bytes from the start of the object. */
  offset: z.int(),
  length: z.int(),
  /** Fixed-width entries, or blocks where the section has no entries. */
  entryCount: z.int(),
  /** Bytes of a whole page, block header included; 0 where the section's blocks differ in size. */
  pageBytes: z.int(),
  /** What the section's reader needs before its first read, such as a sparse dictionary. Small: manifests carry it. */
  root: storedBytes.nullable(),
});
export type SegmentSection = Readonly<z.output<typeof segmentSectionSchema>>;

/** The table of contents of a segment. The namespace's manifest carries it too, so that a cold read needs no round for it: about 200 bytes. */
export const segmentTocSchema = z.strictObject({
  formatVersion: z.int(),
  rowCount: z.int(),
  /** Sequences of the first and the last row. */
  minSequence: z.int(),
  maxSequence: z.int(),
  /** Bytes of the document blocks before compression. */
  docsRawBytes: z.int(),
  sections: z.array(segmentSectionSchema).readonly(),
});
export type SegmentToc = Readonly<z.output<typeof segmentTocSchema>>;

const tocFormat = {
  magic: 'TBST',
  versions: [segmentFormatVersion],
  check: storedCheck(segmentTocSchema.extend({ formatVersion: z.literal(segmentFormatVersion) })),
} as const;

export interface BlockHeader {
  readonly storedLength: number;
  readonly rawLength: number;
  readonly codec: number;
}

/** The one object, and its bytes, that blocks belong to. */
export class BlockOwner {
  readonly objectKey: string;
  readonly #seed: bigint;

  constructor(objectKey: string) {
    this.objectKey = objectKey;
    this.#seed = xxh64Text(objectKey);
  }

  /** Answers the checksum of the stored bytes of the block at `offset`. */
  checksum(stored: Uint8Array, offset: number): bigint {
    return xxh64(stored, this.#seed + BigInt(offset));
  }
}

/** The bytes of a block as they are stored, without the header that says where. */
export interface PackedBlock extends CompressedBlock {
  /** Bytes before they were packed. */
  readonly rawLength: number;
}

/** Where a block will be stored: it reads at no other place. */
export interface SealedPlace {
  readonly owner: BlockOwner;
  readonly offset: number;
}

/** Packs a block, into memory of this thread that the next call writes to. Throws RangeError where it is larger than any block may be. */
export function packBlock(raw: Uint8Array): PackedBlock {
  if (raw.length > blockRawBytesMax) throw new RangeError(`a block of ${raw.length} bytes`);
  return { ...compressBlock(raw), rawLength: raw.length };
}

/**
 * A whole block of `kind`: header and stored bytes, for the place where it will be stored. `compress: false` for pages,
 * whose size must be known beforehand.
 */
export function encodeBlock(
  kind: number,
  raw: Uint8Array,
  { compress, ...place }: SealedPlace & { readonly compress: boolean },
): Buffer {
  if (compress) return sealBlock(kind, packBlock(raw), place);
  if (raw.length > blockRawBytesMax) throw new RangeError(`a block of ${raw.length} bytes`);
  return sealBlock(kind, { codec: codecs.none, bytes: raw, rawLength: raw.length }, place);
}

/** A whole block of bytes that were packed before. */
export function sealBlock(kind: number, packed: PackedBlock, place: SealedPlace): Buffer {
  const block = Buffer.allocUnsafeSlow(blockHeaderBytes + packed.bytes.length);
  block.set(packed.bytes, blockHeaderBytes);
  writeHeader(block, kind, packed, place);
  return block;
}

/** A whole block in the memory of its packed bytes, whose header is written to the `blockHeaderBytes` bytes in front of them. */
export function sealInPlace(kind: number, packed: PackedBlock, place: SealedPlace): Buffer {
  const { buffer, byteOffset, length } = packed.bytes;
  const block = Buffer.from(buffer, byteOffset - blockHeaderBytes, blockHeaderBytes + length);
  writeHeader(block, kind, packed, place);
  return block;
}

function writeHeader(
  block: Buffer,
  kind: number,
  { codec, bytes, rawLength }: PackedBlock,
  { owner, offset }: SealedPlace,
): void {
  block.writeUInt32LE(blockMagic, 0);
  block.writeUInt32LE(bytes.length, 4);
  block.writeUInt32LE(rawLength, 8);
  block.writeUInt8(codec, 12);
  block.writeUInt8(kind, 13);
  block.writeUInt16LE(0, 14);
  block.writeBigUInt64LE(owner.checksum(bytes, offset), 16);
}

/**
 * The raw bytes of the block that fills `bytes`, as a buffer of its own. Throws a `DataError` that names it for anything
 * but the intact block of `kind` of that object and offset.
 */
export function decodeBlock(bytes: Uint8Array, kind: number, owner: BlockOwner, offset: number): Buffer {
  const header = checkBlockHeader(bytes, kind, owner, offset);
  const stored = bytes.subarray(blockHeaderBytes);
  try {
    return decompressBlock(header.codec, stored, header.rawLength);
  } catch (cause) {
    throw Object.assign(new DataError(owner.objectKey, offset, 'a block does not decompress'), { cause });
  }
}

/** Answers how long the raw form is that a block says to have, unchecked; 0 where the bytes are too few to say. */
export function rawLengthIn(bytes: Uint8Array): number {
  return bytes.length < blockHeaderBytes ? 0 : viewOf(bytes).readUInt32LE(8);
}

function checkBlockHeader(bytes: Uint8Array, kind: number, owner: BlockOwner, offset: number): BlockHeader {
  const damaged = (reason: string) => new DataError(owner.objectKey, offset, reason);
  if (bytes.length < blockHeaderBytes) throw damaged('shorter than a block header');
  const header = viewOf(bytes);
  if (header.readUInt32LE(0) !== blockMagic) throw damaged('not a block');
  const storedLength = header.readUInt32LE(4);
  if (storedLength !== bytes.length - blockHeaderBytes) throw damaged('a block of another length');
  if (header.readUInt8(13) !== kind || header.readUInt16LE(14) !== 0)
    throw damaged('a block of another kind');
  if (header.readBigUInt64LE(16) !== owner.checksum(bytes.subarray(blockHeaderBytes), offset)) {
    throw damaged('the checksum is not that of these bytes at this place');
  }
  return { storedLength, rawLength: header.readUInt32LE(8), codec: header.readUInt8(12) };
}

/** Table of contents and footer: the last bytes of a segment whose sections end at `tocOffset`. */
export function encodeTail(toc: SegmentToc, tocOffset: number, objectKey: string): Buffer {
  const record = encodeRecord(tocFormat, toc, objectKey);
  const footer = Buffer.alloc(segmentFooterBytes);
  footer.writeUInt32LE(footerMagic, 0);
  footer.writeUInt32LE(segmentFormatVersion, 4);
  footer.writeUIntLE(tocOffset, 8, 6);
  footer.writeUInt32LE(record.length, 16);
  footer.writeBigUInt64LE(xxh64(footer.subarray(0, 24)), 24);
  return Buffer.concat([record, footer]);
}

/** Answers where the table of contents lies, from the last `footerBytes` bytes of an object of `size` bytes. */
export function decodeFooter(
  footer: Uint8Array,
  place: string,
  size: number,
): { offset: number; length: number } {
  const at = size - segmentFooterBytes;
  const view = viewOf(footer);
  if (view.length !== segmentFooterBytes || view.readUInt32LE(0) !== footerMagic) {
    throw new DataError(place, at, 'no segment footer');
  }
  if (view.readBigUInt64LE(24) !== xxh64(view.subarray(0, 24))) {
    throw new DataError(place, at, 'the checksum of the footer does not match');
  }
  const version = view.readUInt32LE(4);
  if (version !== segmentFormatVersion)
    throw new DataError(place, at, `segment format ${version} is not known`);
  const offset = view.readUIntLE(8, 6);
  const length = view.readUInt32LE(16);
  if (offset + length !== at)
    throw new DataError(place, at, 'the table of contents does not end at the footer');
  return { offset, length };
}

export function decodeToc(record: Uint8Array, place: string): SegmentToc {
  return decodeRecord(record, place, tocFormat);
}

/** The section of that name, or null: a segment written before the section existed has none. */
export function sectionOf(toc: SegmentToc, name: string): SegmentSection | null {
  return toc.sections.find((section) => section.name === name) ?? null;
}

/** Bytes of a whole page of fixed-width entries. */
export function pageBytesOf(entry: { readonly bytes: number; readonly perPage: number }): number {
  return blockHeaderBytes + entry.bytes * entry.perPage;
}

export interface BlockPlace {
  /** From the start of the object, at the block's header. */
  readonly offset: number;
  /** Header included. */
  readonly length: number;
  readonly kind: number;
}

/** Answers where page `page` of a section of fixed-width entries lies. */
export function pagePlace(
  section: SegmentSection,
  entry: { readonly bytes: number; readonly perPage: number },
  page: number,
  kind: number,
): BlockPlace {
  const start = page * section.pageBytes;
  const entries = Math.min(entry.perPage, section.entryCount - page * entry.perPage);
  return { offset: section.offset + start, length: blockHeaderBytes + entries * entry.bytes, kind };
}

export function pageCount(section: SegmentSection, entry: { readonly perPage: number }): number {
  return Math.ceil(section.entryCount / entry.perPage);
}

/** A Buffer over the same bytes. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
