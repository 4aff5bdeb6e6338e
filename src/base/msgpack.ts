/**
 * The door to MessagePack. Plain maps and arrays only (no shared record structures), so that any reader of the
 * format can read what we store.
 */
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/** The value's bytes in an array of their own (it may be transferred to another thread). */
export function packMessage(value: unknown): Uint8Array<ArrayBuffer> {
  return new Uint8Array(packr.pack(value));
}

/** Byte fields of the result are views on `bytes`: copy what must outlive it. */
export function unpackMessage(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}
