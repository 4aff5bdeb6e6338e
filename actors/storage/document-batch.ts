/**
 * The one encoding of a document, shared by log records, manifests' tails and segment blocks. Little-endian.
 *
 * A document entry: u32 entryLength (of the whole entry), u16 idLength, u16 dims (0 = no vector), u32 textLength
 * (0xffffffff = no text), u32 metaLength (0 = no meta); then id, text, meta (UTF-8; meta is the JSON text as it came
 * in), vector (float32 × dims).
 *
 * A write batch: u32 magic, u16 format, u16 flags (0), u32 documentCount, u32 deleteCount, u32 documentsBytes; then
 * the document entries, then the ids to delete as u16 length and bytes.
 *
 * Batches lie in SharedArrayBuffers, so that the actor, the log thread and compute threads read one copy. Whoever
 * finished a batch never writes to it again.
 *
 * The readers of single entries trust their offset: it comes from `readBatch`, which has checked every entry, or from
 * a structure with its own checksum.
 */
import { assert, DataError } from '../../src/base/assert.ts';
import { sharedBuffer } from '../../src/base/garbage.ts';

export const documentHeadBytes = 16;
export const batchHeadBytes = 20;
export const noText = 0xffffffff;

const batchMagic = 0x42574254; // "TBWB"
const batchFormat = 1;
/** Room of a builder that was told nothing. */
const builderBytesDefault = 4096;

export interface DocumentParts {
  readonly id: string | Uint8Array;
  readonly text: Uint8Array | null;
  /** The raw JSON text of an object. */
  readonly meta: Uint8Array | null;
  readonly vector: Float32Array | null;
}

export interface WriteBatch {
  readonly documentCount: number;
  /** Where each document entry starts in the buffer. */
  readonly documentOffsets: Uint32Array;
  readonly deletes: readonly string[];
  /** Length of the batch; the buffer may go on after it. */
  readonly bytes: number;
}

/** Bytes of the entry, its head included. */
export function documentEntryLength(buffer: Buffer, offset: number): number {
  return buffer.readUInt32LE(offset);
}

export function documentId(buffer: Buffer, offset: number): string {
  const start = offset + documentHeadBytes;
  return buffer.toString('utf8', start, start + buffer.readUInt16LE(offset + 4));
}

/** A view of the id. */
export function documentIdBytes(buffer: Buffer, offset: number): Buffer {
  const start = offset + documentHeadBytes;
  return buffer.subarray(start, start + buffer.readUInt16LE(offset + 4));
}

/** Bytes of the text; 0 where there is none. */
export function documentTextLength(buffer: Buffer, offset: number): number {
  const length = buffer.readUInt32LE(offset + 8);
  return length === noText ? 0 : length;
}

/** Answers where the text begins in the buffer. */
export function documentTextStart(buffer: Buffer, offset: number): number {
  return offset + documentHeadBytes + buffer.readUInt16LE(offset + 4);
}

/** A view of the text, or null. */
export function documentText(buffer: Buffer, offset: number): Buffer | null {
  const length = buffer.readUInt32LE(offset + 8);
  if (length === noText) return null;
  const start = documentTextStart(buffer, offset);
  return buffer.subarray(start, start + length);
}

const noBytes = Buffer.alloc(0);

/** A view of the text, of no bytes where there is none. */
export function documentTextBytes(buffer: Buffer, offset: number): Buffer {
  return documentText(buffer, offset) ?? noBytes;
}

/** Bytes of the meta's JSON text; 0 where there is none. */
export function documentMetaLength(buffer: Buffer, offset: number): number {
  return buffer.readUInt32LE(offset + 12);
}

/** Answers where the meta's JSON text begins in the buffer. */
export function documentMetaStart(buffer: Buffer, offset: number): number {
  return documentTextStart(buffer, offset) + documentTextLength(buffer, offset);
}

/** A view of the meta's JSON text, or null. */
export function documentMeta(buffer: Buffer, offset: number): Buffer | null {
  const length = documentMetaLength(buffer, offset);
  if (length === 0) return null;
  const start = documentMetaStart(buffer, offset);
  return buffer.subarray(start, start + length);
}

/** Numbers of the vector; 0 where there is none. */
export function documentDims(buffer: Buffer, offset: number): number {
  return buffer.readUInt16LE(offset + 6);
}

/** Answers where the vector's bytes begin in the buffer. */
export function documentVectorStart(buffer: Buffer, offset: number): number {
  return offset + buffer.readUInt32LE(offset) - documentDims(buffer, offset) * 4;
}

/** A view of the vector's numbers as bytes, at any address; of no bytes where there is none. */
export function documentVectorBytes(buffer: Buffer, offset: number): Buffer {
  return buffer.subarray(documentVectorStart(buffer, offset), offset + buffer.readUInt32LE(offset));
}

/** A copy of the vector, or null: entries are not aligned, so it can't be a view. */
export function documentVector(buffer: Buffer, offset: number): Float32Array | null {
  const dims = documentDims(buffer, offset);
  if (dims === 0) return null;
  const vector = new Float32Array(dims);
  new Uint8Array(vector.buffer).set(documentVectorBytes(buffer, offset));
  return vector;
}

/**
 * Reads the frame of a batch at the start of the buffer and checks every length in it.
 *
 * @throws DataError where a length or the head contradicts the bytes.
 */
export function readBatch(buffer: Buffer): WriteBatch {
  if (buffer.length < batchHeadBytes) throw damaged(0, 'shorter than its head');
  if (buffer.readUInt32LE(0) !== batchMagic) throw damaged(0, 'not a write batch');
  if (buffer.readUInt16LE(4) !== batchFormat) throw damaged(4, `unknown format ${buffer.readUInt16LE(4)}`);
  if (buffer.readUInt16LE(6) !== 0) throw damaged(6, `unknown flags ${buffer.readUInt16LE(6)}`);
  const documentsEnd = batchHeadBytes + buffer.readUInt32LE(16);
  if (documentsEnd > buffer.length) throw damaged(16, 'the documents go past the end');
  const documentOffsets = readDocumentOffsets(buffer, buffer.readUInt32LE(8), documentsEnd);
  const { deletes, end } = readDeletes(buffer, buffer.readUInt32LE(12), documentsEnd);
  return { documentCount: documentOffsets.length, documentOffsets, deletes, bytes: end };
}

function readDocumentOffsets(buffer: Buffer, count: number, end: number): Uint32Array {
  // Asked before the array is made: a damaged count must not cost gigabytes.
  if (count * documentHeadBytes > end) throw damaged(8, `${count} documents do not fit`);
  const offsets = new Uint32Array(count);
  let offset = batchHeadBytes;
  for (let i = 0; i < count; i++) {
    offsets[i] = offset;
    offset += checkedEntryLength(buffer, offset, end);
  }
  if (offset !== end) throw damaged(offset, 'the documents end early');
  return offsets;
}

function checkedEntryLength(buffer: Buffer, offset: number, end: number): number {
  if (offset + documentHeadBytes > end) throw damaged(offset, 'a document goes past the end');
  const length = buffer.readUInt32LE(offset);
  const idLength = buffer.readUInt16LE(offset + 4);
  const parts =
    idLength +
    documentTextLength(buffer, offset) +
    buffer.readUInt32LE(offset + 12) +
    buffer.readUInt16LE(offset + 6) * 4;
  if (length !== documentHeadBytes + parts) throw damaged(offset, "a document's lengths disagree");
  if (idLength === 0) throw damaged(offset, 'a document without an id');
  if (offset + length > end) throw damaged(offset, 'a document goes past the end');
  return length;
}

function readDeletes(buffer: Buffer, count: number, start: number): { deletes: string[]; end: number } {
  const deletes: string[] = [];
  let offset = start;
  for (let i = 0; i < count; i++) {
    if (offset + 2 > buffer.length) throw damaged(offset, 'an id goes past the end');
    const end = offset + 2 + buffer.readUInt16LE(offset);
    if (end > buffer.length) throw damaged(offset, 'an id goes past the end');
    if (end === offset + 2) throw damaged(offset, 'an empty id');
    deletes.push(buffer.toString('utf8', offset + 2, end));
    offset = end;
  }
  return { deletes, end: offset };
}

function damaged(offset: number, reason: string): DataError {
  return new DataError('a write batch', offset, reason);
}

/** Writes the head of a batch. Lengths in bytes. */
export function writeBatchHead(
  buffer: Buffer,
  head: { readonly documentCount: number; readonly deleteCount: number; readonly documentsBytes: number },
): void {
  buffer.writeUInt32LE(batchMagic, 0);
  buffer.writeUInt16LE(batchFormat, 4);
  buffer.writeUInt16LE(0, 6);
  buffer.writeUInt32LE(head.documentCount, 8);
  buffer.writeUInt32LE(head.deleteCount, 12);
  buffer.writeUInt32LE(head.documentsBytes, 16);
}

/** What `encodeDocument` will write, in bytes. */
export function encodedDocumentLength(parts: DocumentParts): number {
  const idLength = typeof parts.id === 'string' ? Buffer.byteLength(parts.id) : parts.id.length;
  const partsLength = (parts.text?.length ?? 0) + (parts.meta?.length ?? 0) + (parts.vector?.byteLength ?? 0);
  return documentHeadBytes + idLength + partsLength;
}

/** Writes one entry at `offset` and returns its length. The caller has made room for it. */
export function encodeDocument(parts: DocumentParts, target: Buffer, offset: number): number {
  const length = encodedDocumentLength(parts);
  assert(
    offset + length <= target.length,
    () => `${length} bytes of a document at ${offset} of ${target.length}`,
  );
  const id = typeof parts.id === 'string' ? Buffer.from(parts.id) : parts.id;
  target.writeUInt32LE(length, offset);
  target.writeUInt16LE(id.length, offset + 4);
  target.writeUInt16LE(parts.vector?.length ?? 0, offset + 6);
  target.writeUInt32LE(parts.text === null ? noText : parts.text.length, offset + 8);
  target.writeUInt32LE(parts.meta?.length ?? 0, offset + 12);
  let at = offset + documentHeadBytes;
  target.set(id, at);
  at += id.length;
  if (parts.text !== null) target.set(parts.text, at);
  at += parts.text?.length ?? 0;
  if (parts.meta !== null) target.set(parts.meta, at);
  at += parts.meta?.length ?? 0;
  if (parts.vector !== null) {
    const { buffer, byteOffset, byteLength } = parts.vector;
    target.set(new Uint8Array(buffer, byteOffset, byteLength), at);
  }
  return length;
}

export interface BatchBuilderOptions {
  /** A guess of the finished batch's size; the builder grows past it. */
  readonly bytesExpected?: number;
}

/** Makes a batch document by document, in shared memory. Used once: `finish` gives the batch away. */
export class BatchBuilder {
  #buffer: Buffer;
  #position = batchHeadBytes;
  #documentCount = 0;
  readonly #deletes: string[] = [];

  constructor(options: BatchBuilderOptions = {}) {
    const bytes = Math.max(options.bytesExpected ?? builderBytesDefault, batchHeadBytes);
    this.#buffer = sharedBuffer(bytes);
  }

  addDocument(parts: DocumentParts): void {
    this.#makeRoom(encodedDocumentLength(parts));
    this.#position += encodeDocument(parts, this.#buffer, this.#position);
    this.#documentCount++;
  }

  /** Copies an entry of another batch as it is. */
  addEntry(source: Buffer, offset: number): void {
    const length = documentEntryLength(source, offset);
    this.#makeRoom(length);
    source.copy(this.#buffer, this.#position, offset, offset + length);
    this.#position += length;
    this.#documentCount++;
  }

  addDelete(id: string): void {
    this.#deletes.push(id);
  }

  /** The batch, exactly as long as what was added. */
  finish(): Buffer {
    const documentsBytes = this.#position - batchHeadBytes;
    for (const id of this.#deletes) {
      const length = Buffer.byteLength(id);
      this.#makeRoom(2 + length);
      this.#buffer.writeUInt16LE(length, this.#position);
      this.#buffer.write(id, this.#position + 2, 'utf8');
      this.#position += 2 + length;
    }
    const deleteCount = this.#deletes.length;
    writeBatchHead(this.#buffer, { documentCount: this.#documentCount, deleteCount, documentsBytes });
    return fitted(this.#buffer, this.#position);
  }

  #makeRoom(bytes: number): void {
    this.#buffer = withRoom(this.#buffer, this.#position, bytes);
  }
}

/** The buffer, or a larger shared one with the same first `used` bytes, with room for `bytes` more. */
export function withRoom(buffer: Buffer, used: number, bytes: number): Buffer {
  if (used + bytes <= buffer.length) return buffer;
  const grown = sharedBuffer(Math.max(used + bytes, buffer.length * 2));
  buffer.copy(grown, 0, 0, used);
  return grown;
}

/** The used part: as a view where little is wasted, else copied to memory of its size. */
export function fitted(buffer: Buffer, used: number): Buffer {
  if (buffer.buffer instanceof SharedArrayBuffer && buffer.length - used <= used >> 3) {
    return buffer.subarray(0, used);
  }
  const exact = sharedBuffer(used);
  buffer.copy(exact, 0, 0, used);
  return exact;
}
