/**
 * Bytes that several threads see at once: written once, then only read. The actor keeps them in its memtable, the log
 * thread puts them into a group, a build thread makes a segment of them, and nobody copies.
 */
export function toShared(bytes: Uint8Array): Buffer {
  if (bytes.buffer instanceof SharedArrayBuffer) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  const shared = Buffer.from(new SharedArrayBuffer(bytes.byteLength));
  shared.set(bytes);
  return shared;
}
