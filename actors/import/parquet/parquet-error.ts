/** A Parquet file that can't be imported: its message is told to whoever sent it. */
export class ParquetError extends Error {
  override name = 'ParquetError';
}

/** Said of a file in which something is not where or what the file says: a library's own words would mean nothing to its sender. */
export const unreadable =
  'the file is damaged, or written in a way that is not known here: write it anew, with another tool';

/** Runs work that a damaged file can make fail anywhere. Throws ParquetError and nothing else. */
export function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asParquetError(error);
  }
}

export function asParquetError(error: unknown): ParquetError {
  return error instanceof ParquetError ? error : new ParquetError(unreadable, { cause: error });
}

export function tooFewValues(): ParquetError {
  return new ParquetError('a page has fewer values than it says');
}
