/** LZ4's block format, read strictly: every length is checked, and a block must make exactly what its page says. */
import { ParquetError } from './parquet-error.ts';

const minMatch = 4;
const frameHeadBytes = 8;

/** Unpacks one block (LZ4_RAW). */
export function unpackLz4Block(packed: Uint8Array, rawBytes: number): Uint8Array {
  const raw = Buffer.allocUnsafeSlow(rawBytes);
  const made = unpackBlock(packed, raw, 0, rawBytes);
  if (made !== rawBytes) throw damaged();
  return raw;
}

/** Unpacks what is called LZ4 alone: blocks behind their lengths as Hadoop writes them, or else one block. */
export function unpackLz4(packed: Uint8Array, rawBytes: number): Uint8Array {
  return unpackFrames(packed, rawBytes) ?? unpackLz4Block(packed, rawBytes);
}

/** Null where the bytes are no frames, each with two lengths that fit. */
function unpackFrames(packed: Uint8Array, rawBytes: number): Uint8Array | null {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const frames: { readonly start: number; readonly end: number; readonly made: number }[] = [];
  let made = 0;
  for (let at = 0; at < packed.length; ) {
    if (at + frameHeadBytes > packed.length) return null;
    const frameBytes = view.getUint32(at);
    const start = at + frameHeadBytes;
    const end = start + view.getUint32(at + 4);
    made += frameBytes;
    // A frame takes nine bytes at least, so that there are no more of them than the page has room for.
    if (end > packed.length || end === start || made > rawBytes) return null;
    frames.push({ start, end, made });
    at = end;
  }
  if (made !== rawBytes) return null;
  const raw = Buffer.allocUnsafeSlow(rawBytes);
  let from = 0;
  for (const frame of frames) {
    if (unpackBlock(packed.subarray(frame.start, frame.end), raw, from, frame.made) !== frame.made)
      throw damaged();
    from = frame.made;
  }
  return raw;
}

/** Unpacks a block to `raw` from `from` up to `end`, and answers where it ended. Hot. */
function unpackBlock(packed: Uint8Array, raw: Buffer, from: number, end: number): number {
  let at = 0;
  let to = from;
  /** The rest of a length whose first part is 15: bytes are added until one is less than 255. */
  const more = (): number => {
    for (let sum = 0; ; ) {
      const byte = packed[at++];
      if (byte === undefined || sum > end) throw damaged();
      sum += byte;
      if (byte < 255) return sum;
    }
  };
  while (at < packed.length) {
    const token = packed[at++] as number;
    const literals = token >> 4 === 15 ? 15 + more() : token >> 4;
    if (at + literals > packed.length || to + literals > end) throw damaged();
    raw.set(packed.subarray(at, at + literals), to);
    at += literals;
    to += literals;
    if (at === packed.length) return to;
    if (at + 2 > packed.length) throw damaged();
    const offset = (packed[at] as number) | ((packed[at + 1] as number) << 8);
    at += 2;
    const match = minMatch + ((token & 15) === 15 ? 15 + more() : token & 15);
    if (offset === 0 || offset > to - from || to + match > end) throw damaged();
    if (offset >= match) raw.copyWithin(to, to - offset, to - offset + match);
    else for (let i = 0; i < match; i++) raw[to + i] = raw[to + i - offset] as number;
    to += match;
  }
  return to;
}

function damaged(): ParquetError {
  return new ParquetError('a page that is packed with LZ4 is damaged');
}
