import { createDecipheriv } from 'node:crypto';
import { basename, dirname, join, relative } from 'node:path';
import { decompressExactly } from '../../actors/storage/compress.ts';
import { filesBelow, readIfThere } from './living-folder.ts';

/**
 * Where a text can be read from the files of a folder, by somebody who knows all formats: as it is, in whatever zstd frame
 * there is at whatever place, and in whatever value of a warm cache has a key, those in free pages and removed ones among
 * them. A search for the bytes alone proves nothing, because blocks are compressed and cached values are sealed.
 *
 * Answers a line a find, of several texts together: unpacking takes far longer than looking. It knows nothing of what the
 * product believes to be in use: it looks for magic numbers.
 */
export function findText(folder: string, ...texts: readonly string[]): string[] {
  const needles = texts.map((text) => Buffer.from(text));
  const found: string[] = [];
  for (const path of filesBelow(folder)) {
    const bytes = readIfThere(path);
    if (bytes === null) continue;
    const place = relative(folder, path);
    for (const how of findIn(bytes, needles)) found.push(`${place}: ${how}`);
    if (basename(path) !== 'data.mdb') continue;
    for (const how of findInCache(join(dirname(path), '..'), bytes, needles)) found.push(`${place}: ${how}`);
  }
  return found;
}

/** Whether the text can be read from these bytes, as it is or in a zstd frame. */
export function hasText(bytes: Uint8Array, text: string): boolean {
  return (
    findIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), [Buffer.from(text)]).length > 0
  );
}

function findIn(bytes: Buffer, needles: readonly Buffer[]): string[] {
  const found: string[] = [];
  const isIn = (place: Buffer) => (needle: Buffer) => place.includes(needle);
  for (const needle of needles.filter(isIn(bytes))) found.push(`at byte ${bytes.indexOf(needle)}`);
  for (const { at, raw } of framesIn(bytes))
    if (needles.some(isIn(raw))) found.push(`in a zstd frame at byte ${at}`);
  return found;
}

const frameMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const rawBytesMax = 32 * 1024 * 1024;

function* framesIn(bytes: Buffer): Generator<{ readonly at: number; readonly raw: Buffer }> {
  for (let at = bytes.indexOf(frameMagic); at >= 0; at = bytes.indexOf(frameMagic, at + 1)) {
    const end = endOfFrame(bytes, at);
    const raw = end === null ? null : decompressed(bytes.subarray(at, end));
    if (raw !== null) yield { at, raw };
  }
}

/** By the headers of its blocks (RFC 8878, 3.1.1); null where they lead out of the bytes. */
function endOfFrame(bytes: Buffer, start: number): number | null {
  const descriptor = bytes[start + 4] ?? 0;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const checksumBytes = (descriptor & 4) !== 0 ? 4 : 0;
  let at = start + 5 + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes;
  for (;;) {
    if (at + 3 > bytes.length) return null;
    const header = bytes.readUIntLE(at, 3);
    const isRepeated = ((header >> 1) & 3) === 1;
    at += 3 + (isRepeated ? 1 : header >> 3);
    if ((header & 1) !== 0) return at + checksumBytes <= bytes.length ? at + checksumBytes : null;
  }
}

/** The door to zstd wants to know how many bytes come out, and says how many did. */
function decompressed(frame: Buffer): Buffer | null {
  const attempt = (length: number): Buffer | number => {
    try {
      return decompressExactly(frame, length);
    } catch (error) {
      return Number(/^([0-9]+) raw bytes/.exec(String((error as Error).message))?.[1] ?? -1);
    }
  };
  const first = attempt(rawBytesOf(frame) ?? rawBytesMax);
  if (typeof first !== 'number') return first;
  const second = first < 0 ? first : attempt(first);
  return typeof second === 'number' ? null : second;
}

/** What the frame's header promises, where it does. */
function rawBytesOf(frame: Buffer): number | null {
  const descriptor = frame[4] ?? 0;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const at = 5 + (isSingleSegment ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  const width = descriptor >> 6;
  if (at + 8 > frame.length || (width === 0 && !isSingleSegment)) return null;
  if (width === 0) return frame.readUInt8(at);
  if (width === 1) return frame.readUInt16LE(at) + 256;
  return Math.min(rawBytesMax, width === 2 ? frame.readUInt32LE(at) : frame.readUIntLE(at, 6));
}

/** The magic of actors/storage/warm-entry.ts and warm-keys.ts, spelt again so that a change there is noticed here. */
const entryMagic = Buffer.from('TBw2');
const keyBytes = 16;

/** Every entry that the file ever had and that still can be opened. */
function findInCache(folder: string, environment: Buffer, needles: readonly Buffer[]): string[] {
  const keys = readIfThere(join(folder, 'keys')) ?? Buffer.alloc(0);
  const found: string[] = [];
  for (let at = environment.indexOf(entryMagic); at >= 0; at = environment.indexOf(entryMagic, at + 1)) {
    if (at + 32 > environment.length) break;
    const [length, file, keyNumber] = [
      environment.readUInt32LE(at + 4),
      environment.readUIntLE(at + 8, 6),
      environment.readUIntLE(at + 24, 6),
    ];
    const key = keys.subarray((keyNumber - 1) * keyBytes, keyNumber * keyBytes);
    if (keyNumber === 0 || key.length < keyBytes || key.every((byte) => byte === 0)) continue;
    const sealed =
      file === 0
        ? environment.subarray(at + 32, at + 40 + length)
        : readIfThere(join(folder, 'files', String(file)));
    if (sealed === null) continue;
    const opened = createDecipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(sealed);
    for (const how of findIn(opened, needles)) found.push(`in the entry at byte ${at}, ${how}`);
  }
  return found;
}
