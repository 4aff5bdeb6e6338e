/**
 * What the warm cache keeps under a name: a head that says what belongs to it, and the content, behind the head or in a file of
 * its own. LMDB has no checksums and hands out what a damaged page holds, so nothing is believed before name and bytes have
 * been held against the head and the content's checksum.
 *
 *   head     u32 magic | u32 length | u48 file number, 0 for inline | u16 zero | u64 xxh64 of the name | u48 key number | u16 zero
 *   content  u64 xxh64 of the bytes | the bytes
 *
 * The content is sealed with the key of that number (warm-keys.ts), its checksum too, which would tell a guess from the truth.
 * Of a file that was adopted as it was the key number is 0, and its checksum stands behind the head.
 */
import { xxh64, xxh64Text } from '../../src/base/hash.ts';

export const entryHeadBytes = 32;
export const checksumBytes = 8;
const headMagic = 0x3277_4254; // "TBw2"

export const diskPageBytes = 4096;
/** Name, index record, key and page heads of one entry, about. */
const entryOverheadBytes = 256;

interface EntryHead {
  /** How long the bytes are, without their checksum. */
  readonly length: number;
  /** 0 where the content follows the head. */
  readonly file: number;
  /** 0 where the file is not sealed. */
  readonly key: number;
}

/** Head and sealed content, one after the other. */
export function encodeEntry(name: string, head: EntryHead, sealed: readonly Uint8Array[]): Buffer {
  const value = Buffer.allocUnsafeSlow(entryHeadBytes + checksumBytes + head.length);
  writeHead(value, name, head);
  let at = entryHeadBytes;
  for (const part of sealed) {
    value.set(part, at);
    at += part.length;
  }
  return value;
}

interface AdoptedFile {
  readonly length: number;
  /** xxh64 of its bytes. */
  readonly checksum: bigint;
  readonly number: number;
}

/** The entry of a file that is there already, and stays readable for whoever maps it. */
export function encodeFileEntry(name: string, { length, checksum, number }: AdoptedFile): Buffer {
  const value = Buffer.allocUnsafeSlow(entryHeadBytes + checksumBytes);
  writeHead(value, name, { length, file: number, key: 0 });
  value.writeBigUInt64LE(checksum, entryHeadBytes);
  return value;
}

function writeHead(value: Buffer, name: string, { length, file, key }: EntryHead): void {
  value.writeUInt32LE(headMagic, 0);
  value.writeUInt32LE(length, 4);
  value.writeUIntLE(file, 8, 6);
  value.writeUInt16LE(0, 14);
  value.writeBigUInt64LE(xxh64Text(name), 16);
  value.writeUIntLE(key, 24, 6);
  value.writeUInt16LE(0, 30);
}

/** What is sealed: the checksum, and the bytes. */
export function contentParts(bytes: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const checksum = Buffer.allocUnsafe(checksumBytes);
  checksum.writeBigUInt64LE(xxh64(bytes));
  return [checksum, bytes];
}

/** The bytes of an opened content; undefined where they are not those that were sealed. */
export function bytesOfContent(content: Buffer, length: number): Buffer | undefined {
  if (content.length !== checksumBytes + length) return undefined;
  const bytes = content.subarray(checksumBytes);
  return content.readBigUInt64LE(0) === xxh64(bytes) ? bytes : undefined;
}

/** Whether these bytes begin like an entry; what it says of itself is not checked yet. */
export function isEntry(value: Uint8Array): boolean {
  return value.length >= entryHeadBytes && asBuffer(value).readUInt32LE(0) === headMagic;
}

/** Whether the entry was put under this name. */
export function isNamed(head: Buffer, name: string): boolean {
  return head.readBigUInt64LE(16) === xxh64Text(name);
}

/** Answers how long an entry's bytes are, from its head. */
export function lengthIn(head: Buffer): number {
  return head.readUInt32LE(4);
}

/** The number of its file; 0 where the content follows the head. */
export function fileIn(head: Buffer): number {
  return head.readUIntLE(8, 6);
}

/** The number of its key; 0 where it is not sealed. */
export function keyIn(head: Buffer): number {
  return head.readUIntLE(24, 6);
}

/** Bytes on disk of a value, about. */
export function chargeOf(length: number): number {
  return (
    Math.ceil((length + checksumBytes + entryHeadBytes) / diskPageBytes) * diskPageBytes + entryOverheadBytes
  );
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
