import { xxh64, xxh64Text } from '../../src/base/hash.ts';

/**
 * What the warm cache keeps under a name: a head that says what belongs to it, and the bytes, behind the head or in a
 * file of their own. LMDB has no checksums and hands out what a damaged page holds, so nothing is believed before name
 * and bytes have been held against the head.
 *
 *   u32 magic | u32 length | u48 file number, 0 for inline | u16 zero | u64 xxh64 of the name | u64 xxh64 of the bytes
 */
export const entryHeadBytes = 32;
const headMagic = 0x7277_4254; // "TBwr"

export const diskPageBytes = 4096;
/** Name, index record and page heads of one entry, about. */
const entryOverheadBytes = 256;

export function encodeEntry(name: string, bytes: Uint8Array, file: number): Buffer {
  const value = Buffer.allocUnsafeSlow(entryHeadBytes + bytes.length);
  writeHead(value, name, { length: bytes.length, checksum: xxh64(bytes), number: file });
  value.set(bytes, entryHeadBytes);
  return value;
}

interface EntryFile {
  readonly length: number;
  /** xxh64 of its bytes. */
  readonly checksum: bigint;
  readonly number: number;
}

/** The entry of a file that is there already. */
export function encodeFileEntry(name: string, file: EntryFile): Buffer {
  const value = Buffer.allocUnsafeSlow(entryHeadBytes);
  writeHead(value, name, file);
  return value;
}

function writeHead(value: Buffer, name: string, { length, checksum, number }: EntryFile): void {
  value.writeUInt32LE(headMagic, 0);
  value.writeUInt32LE(length, 4);
  value.writeUIntLE(number, 8, 6);
  value.writeUInt16LE(0, 14);
  value.writeBigUInt64LE(xxh64Text(name), 16);
  value.writeBigUInt64LE(checksum, 24);
}

/** Whether these bytes begin like an entry; what it says of itself is not checked yet. */
export function isEntry(value: Uint8Array): boolean {
  return value.length >= entryHeadBytes && asBuffer(value).readUInt32LE(0) === headMagic;
}

/** Whether the entry was put under this name. */
export function isNamed(head: Buffer, name: string): boolean {
  return head.readBigUInt64LE(16) === xxh64Text(name);
}

/** Whether these are the bytes that the entry promises. */
export function isContentOf(head: Buffer, bytes: Uint8Array): boolean {
  return bytes.length === lengthIn(head) && head.readBigUInt64LE(24) === xxh64(bytes);
}

export function lengthIn(head: Buffer): number {
  return head.readUInt32LE(4);
}

/** The number of its file; 0 where the bytes follow the head. */
export function fileIn(head: Buffer): number {
  return head.readUIntLE(8, 6);
}

/** Bytes on disk of a value, about. */
export function chargeOf(length: number): number {
  return Math.ceil((length + entryHeadBytes) / diskPageBytes) * diskPageBytes + entryOverheadBytes;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
