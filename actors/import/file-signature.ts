/** What a file that is not lines of text is, by its first bytes, and what to do about it. */
const signatures: readonly (readonly [string, string])[] = [
  ['\x1f\x8b', 'the file is packed with gzip: send it with Content-Encoding: gzip'],
  ['\x28\xb5\x2f\xfd', 'the file is packed with zstd: send it with Content-Encoding: zstd'],
  ['BZh', 'the file is packed with bzip2: send it unpacked'],
  ['\xfd7zXZ\x00', 'the file is packed with xz: send it unpacked'],
  ['PK\x03\x04', 'the file is a zip archive or a spreadsheet: send one table of it as CSV'],
  ['PAR1', 'the file is a Parquet file: send it with format=parquet'],
  ['\xff\xfe', 'the file is UTF-16: save it as UTF-8'],
  ['\xfe\xff', 'the file is UTF-16: save it as UTF-8'],
];

/** Says what is wrong with a file that begins with these bytes and is not UTF-8; null where they don't tell. */
export function problemOfBytes(first: Buffer): string | null {
  const start = first.toString('latin1', 0, 8);
  const found = signatures.find(([signature]) => start.startsWith(signature));
  return found?.[1] ?? null;
}
