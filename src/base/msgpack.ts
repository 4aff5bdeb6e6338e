/**
 * The door to MessagePack. Plain maps and arrays only (no shared record structures), so that any reader of the
 * format can read what we store.
 */
import { Packr, RESERVE_START_SPACE } from 'msgpackr';

const format = { useRecords: false, mapsAsObjects: true } as const;
const packr = new Packr(format);
const copying = new Packr({ ...format, copyBuffers: true });

/** The value's bytes in an array of their own (it may be transferred to another thread). */
export function packMessage(value: unknown): Uint8Array<ArrayBuffer> {
  return new Uint8Array(packr.pack(value));
}

/** Byte fields of the result are views on `bytes`: copy what must outlive it. */
export function unpackMessage(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}

/**
 * Free bytes and behind them the value's, on memory that holds other values as well: it is copied soon, and not moved to another
 * thread. An array of its own costs more than encoding a short value.
 */
export function packBehind(freeBytes: number, value: unknown): Buffer {
  return packr.pack(value, RESERVE_START_SPACE | freeBytes);
}

/** As `unpackMessage`, but byte fields of the result are copies: `bytes` may be used again. */
export function unpackCopy(bytes: Uint8Array): unknown {
  return copying.unpack(bytes);
}
