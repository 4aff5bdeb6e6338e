const MiB = 1024 * 1024;

/** The bounds of files that are imported: part of `limits`, with the same rules. */
export const importLimits = {
  /** Service: bytes of a file that is imported, and its rows. */
  importBodyBytesMax: 2_000_000_000,
  importRowsMax: 1_000_000,
  /** Bytes of all documents that an import makes: a file of some megabytes may name one long text in each of its rows. */
  importDocumentsBytesMax: 16_000_000_000,
  /**
   * How many bytes of a packed import may come of each byte that has come, beyond a slack: a table of repeated rows hardly shrinks to less
   * than a thousandth, and what does is made to fill a disk.
   */
  importUnpackedMost: 1_000,
  importUnpackedSlackBytes: MiB,
  /** Columns of a file that is imported: a chunk has columns for fewer keys than that. */
  importColumnsMax: 1_024,
  /** Bytes of one row of a file: a text of 2 MB whose bytes are escaped, four each. A longer row has a quote that is never closed, or the file has no rows. A reader holds two. */
  importRowBytesMax: 8 * MiB,
  /** Files that are received or imported at once on a server, shared by owner: each has 8 MB that wait for the disk. */
  importsAtOnceMax: 32,
  /** Bytes of the disk that received files take together: two of the largest, and as many small ones. */
  receivedBytesMax: 8_000_000_000,
  /** Bytes of the disk that received files leave free for everything else. */
  diskFreeBytesMin: 1_000_000_000,
  /** How many times smaller than its file a segment can be, indexes included: a file that is larger than so many times what is left of a quota can't fit. */
  importPackedMost: 20,
  /**
   * No import begins above this sequence. Each leaves a gap of 2^33, so a namespace takes some 500,000 of them; as many sequences are
   * left above it for writes, within the 2^53 that are exact.
   */
  importSequenceMax: 2 ** 52,
  /** How long an import may take once its file was received: 2 GB at 10 MB a second, and the imports before it. */
  importDeadlineMs: 900_000,
  /** Bytes of a Parquet file that are checked before anything is decoded: its footer, one page unpacked, and all pages unpacked. */
  parquetFooterBytesMax: 4 * MiB,
  parquetPageBytesMax: 64 * MiB,
  parquetRawBytesMax: 8_000_000_000,
  /** Files that are imported at once: each takes two threads and, with a third that helps one of them, some 400 MB; an owner has one of them. */
  importsRunningMax: 2,
  /** Bytes of a file from which on a second thread helps to read it: shorter ones are read before that thread has begun. */
  importHelpedBytesMin: 8 * MiB,
} as const;
