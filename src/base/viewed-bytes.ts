/** Bytes, and the same as a view: words are read and written by it without a call of native code. */
export interface ViewedBytes {
  readonly bytes: Buffer;
  readonly view: DataView;
}

export function viewed(bytes: Buffer): ViewedBytes {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
}
