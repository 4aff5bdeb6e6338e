/**
 * One file of the folder store: a header of 32 bytes, then the object's bytes as they are.
 *
 *     0  magic "TBO2"
 *     4  "once", or "more" once the object was updated: its version folder says then what is current
 *     8  size of the object in bytes, unsigned 64 bits, little-endian
 *    16  nonce, 8 random bytes: no two files share one
 *    24  xxh64 of size and nonce, little-endian
 *
 * The two words of offset 4 are far apart: a damaged one must not make an old version of an object its current one.
 * Once a later version is current and on the disk, the file ends after its header: what was replaced is not kept.
 * The object's own bytes are checked by whoever knows their format.
 */
import fs from 'node:fs';
import { promisify } from 'node:util';
import { DataError } from '../base/assert.ts';
import { xxh64 } from '../base/hash.ts';
import { fileStat, missing, openFile, readFile, releaseFile, unless, writeNewFile } from './fs-calls.ts';
import { cutRange, totalBytes } from './keys.ts';
import type { ByteRange } from './object-store.ts';

const headerBytes = 32;
const stateOffset = 4;
const checkedOffset = 8;
const checksumOffset = 24;
const magic = Buffer.from('TBO2');
const stateWords = { once: Buffer.from('once'), updated: Buffer.from('more') } as const;

/** Objects up to this size cost one read; larger ones a second. */
const firstReadBytes = 16 * 1024;
/** A range up to this length is read beside the header; of a longer one the object's size is looked at first. */
const besideHeaderBytesMax = 4 * 1024 * 1024;

/** Well above any file, well below what a file offset can be. */
const fileBytesMax = 2 ** 48;

const writeAt = promisify(fs.write);
const syncData = promisify(fs.fdatasync);
const statOpened = promisify(fs.fstat);
const truncateOpened = promisify(fs.ftruncate);

export interface ObjectFile {
  /** 16 hexadecimal digits. */
  readonly nonce: string;
  readonly updated: boolean;
  /** The whole object's size in bytes. */
  readonly size: number;
}

/** `bytes` is null where the object was updated and this file keeps its header alone. */
export type ObjectFileWithBytes = ObjectFile & { readonly bytes: Uint8Array | null };

export async function writeObjectFile(
  path: string,
  nonce: string,
  parts: readonly Uint8Array[],
): Promise<void> {
  await writeNewFile(path, [headerOf(nonce, totalBytes(parts)), ...parts]);
}

/** What stands before an object's bytes while they are still coming: no header, so that the file is no object. */
export function placeOfHeader(): Uint8Array {
  return Buffer.alloc(headerBytes);
}

/** Makes an object of a file that `placeOfHeader` and `size` bytes were written to. */
export async function writeHeader(file: number, nonce: string, size: number): Promise<void> {
  const header = headerOf(nonce, size);
  await writeAt(file, header, 0, header.length, 0);
}

function headerOf(nonce: string, size: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  magic.copy(header);
  stateWords.once.copy(header, stateOffset);
  header.writeBigUInt64LE(BigInt(size), 8);
  header.write(nonce, 16, 'hex');
  header.writeBigUInt64LE(xxh64(header.subarray(checkedOffset, checksumOffset)), checksumOffset);
  return header;
}

/** Null where no file is. */
export async function readObjectFile(path: string, range?: ByteRange): Promise<ObjectFileWithBytes | null> {
  return withFile(path, 'r', (file) =>
    range === undefined ? readWhole(path, file) : readRange(path, file, range),
  );
}

export interface FileAbout {
  /** Bytes of the object. */
  readonly size: number;
  readonly modifiedAtMs: number;
}

/** What the folder knows of a file, without opening it; null where no file is. */
export async function aboutFile(path: string): Promise<FileAbout | null> {
  const stat = await unless(fileStat(path), missing, null);
  return stat === null ? null : { size: stat.size - headerBytes, modifiedAtMs: Math.floor(stat.mtimeMs) };
}

/** Null where no file is. */
export async function readObjectHeader(path: string): Promise<ObjectFile | null> {
  return withFile(path, 'r', async (file) => parseHeader(path, await readAt(file, 0, headerBytes)));
}

/**
 * Marks the file as updated, on the disk too, if it carries the nonce. It is the opened file that is marked: another
 * one that takes its name meanwhile is not touched. False where the file is gone or another.
 */
export async function markUpdated(path: string, nonce: string): Promise<boolean> {
  const marked = await withFile(path, 'r+', async (file) => {
    const header = parseHeader(path, await readAt(file, 0, headerBytes));
    if (header.nonce !== nonce) return false;
    if (!header.updated) await writeAt(file, stateWords.updated, 0, stateWords.updated.length, stateOffset);
    // Also where another writer has set the mark: it may not have come to its sync.
    await syncData(file);
    return true;
  });
  return marked ?? false;
}

/**
 * Removes the bytes behind the header of an updated object's first version, if the file carries the nonce: the opened
 * file is cut, never another one that takes its name meanwhile. The caller has seen a later version on the disk.
 */
export async function removeFirstBytes(path: string, nonce: string): Promise<void> {
  await withFile(path, 'r+', async (file) => {
    const header = parseHeader(path, await readAt(file, 0, headerBytes));
    if (header.nonce !== nonce || !header.updated) return;
    if ((await statOpened(file)).size > headerBytes) await truncateOpened(file, headerBytes);
  });
}

async function withFile<T>(
  path: string,
  flags: string,
  use: (file: number) => Promise<T>,
): Promise<T | null> {
  const file = await unless(openFile(path, flags), [...missing, 'EISDIR'], null);
  if (file === null) return null;
  try {
    // A folder has no bytes to read and is no object.
    return await unless(use(file), ['EISDIR'], null);
  } finally {
    releaseFile(file);
  }
}

async function readWhole(path: string, file: number): Promise<ObjectFileWithBytes> {
  const first = await readAt(file, 0, firstReadBytes);
  const header = parseHeader(path, first);
  // Its own memory, of its own size: the caller may keep it for long, or hand it to another thread.
  const bytes = new Uint8Array(header.size);
  const begun = first.subarray(headerBytes, headerBytes + header.size);
  bytes.set(begun);
  const end = await fill(file, bytes, begun.length, 0);
  if (end === bytes.length) return { ...header, bytes };
  return withoutBytes(path, file, headerBytes + end);
}

/** The header of a file that ends early: either the object was updated, even after the read began, or it is damaged. */
async function withoutBytes(path: string, file: number, end: number): Promise<ObjectFileWithBytes> {
  const header = parseHeader(path, await readAt(file, 0, headerBytes));
  if (!header.updated) throw new DataError(path, end, 'the file ends early');
  return { ...header, bytes: null };
}

async function readRange(path: string, file: number, range: ByteRange): Promise<ObjectFileWithBytes> {
  const guessed = 'offset' in range && range.length <= besideHeaderBytesMax && range.offset <= fileBytesMax;
  const [head, beside] = await Promise.all([
    readAt(file, 0, headerBytes),
    guessed ? readAt(file, headerBytes + range.offset, range.length) : null,
  ]);
  const header = parseHeader(path, head);
  const { offset, length } = cutRange(range, header.size);
  if (beside?.length === length)
    return { ...header, bytes: length === beside.buffer.byteLength ? beside : beside.slice() };
  const bytes = new Uint8Array(length);
  const end = await fill(file, bytes, 0, offset);
  if (end === length) return { ...header, bytes };
  return withoutBytes(path, file, headerBytes + offset + end);
}

/**
 * Reads what `bytes` still lacks from its place `begun` on; its first byte is the object's byte `offset`. Answers up to
 * which place it is filled: fewer than all where the file ends early.
 */
async function fill(file: number, bytes: Uint8Array, begun: number, offset: number): Promise<number> {
  let done = begun;
  while (done < bytes.length) {
    const { bytesRead } = await readFile(file, bytes, done, bytes.length - done, headerBytes + offset + done);
    if (bytesRead === 0) return done;
    done += bytesRead;
  }
  return done;
}

/** Up to `length` bytes from `position` in one call; fewer at the end of the file. */
async function readAt(file: number, position: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(length);
  const { bytesRead } = await readFile(file, buffer, 0, length, position);
  return bytesRead === length ? buffer : buffer.subarray(0, bytesRead);
}

function parseHeader(path: string, first: Uint8Array): ObjectFile {
  const header = Buffer.from(first.buffer, first.byteOffset, Math.min(first.length, headerBytes));
  if (header.length < headerBytes || !header.subarray(0, 4).equals(magic))
    throw new DataError(path, 0, 'no header of an object file');
  if (header.readBigUInt64LE(checksumOffset) !== xxh64(header.subarray(checkedOffset, checksumOffset)))
    throw new DataError(path, checksumOffset, 'the checksum of the header does not match');
  const state = header.subarray(stateOffset, checkedOffset);
  const updated = state.equals(stateWords.updated);
  if (!updated && !state.equals(stateWords.once))
    throw new DataError(path, stateOffset, 'neither updated nor not');
  return { nonce: header.toString('hex', 16, 24), updated, size: Number(header.readBigUInt64LE(8)) };
}
