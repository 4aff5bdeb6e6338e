/** What a file is, by its first bytes, where it is none of lines of text. */
const signatures: readonly (readonly [string, string])[] = [
  ['\x1f\x8b', 'it is packed by gzip: send it with Content-Encoding: gzip'],
  ['\x28\xb5\x2f\xfd', 'it is packed by zstd: send it with Content-Encoding: zstd'],
  ['BZh', 'it is packed by bzip2: send it unpacked'],
  ['\xfd7zXZ\x00', 'it is packed by xz: send it unpacked'],
  ['PK\x03\x04', 'it is a zip archive or a spreadsheet: send a file of it as CSV'],
  ['PAR1', 'it is a Parquet file: send it with format=parquet'],
  ['\xff\xfe', 'it is UTF-16: save it as UTF-8'],
  ['\xfe\xff', 'it is UTF-16: save it as UTF-8'],
];

/** What is wrong with a file that begins with these bytes and is no UTF-8; null where that does not tell. */
export function problemOfBytes(first: Buffer): string | null {
  const start = first.toString('latin1', 0, 8);
  const found = signatures.find(([signature]) => start.startsWith(signature));
  return found?.[1] ?? null;
}
