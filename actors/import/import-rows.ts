import type { FileHandle } from 'node:fs/promises';
import type { FileRanges } from './file-ranges.ts';
import { quoted, wrongFile, wrongParameter } from './import-error.ts';
import type { ImportQuestion } from './import-request.ts';

/** What a thread reads of a file. */
export interface ImportRequest extends Omit<ImportQuestion, 'format'> {
  readonly file: FileHandle;
  /** How long the file is, in bytes. */
  readonly size: number;
  /** How long the namespace's vectors are; null where it is new. */
  readonly dims: number | null;
  /** The ranges of the file, of which all threads take theirs that read it. */
  readonly ranges: FileRanges;
  /** Whether this thread only helps: another one reads whatever this one does not. */
  readonly helps: boolean;
  /** Whether the kinds of columns are inferred from all rows, and not from the first ones. */
  readonly looksAtAll: boolean;
  /** Rows of a range of a text file; default: those of a chunk of columns. */
  readonly rangeRows?: number;
  /** Whether rows are made by the loops that are the kernels' twins; default: only those of short files. */
  readonly rowByRow?: boolean;
}

/** What is known of all rows of a file. */
export interface ImportedRows {
  readonly rowCount: number;
  /** Columns of dates or times, and columns whose strings are neither, whatever they look like. */
  readonly temporalKeys: readonly string[];
  readonly textKeys: readonly string[];
  /** Rows whose meta leaves out some of the columns that are their text. */
  readonly textOnly: number;
  /** Numbers of each vector; 0 without any. */
  readonly dims: number;
}

/** A name in the query of an import, and which of its parameters has it. */
export interface AskedName {
  readonly parameter: 'vector' | 'columns' | 'skip';
  readonly name: string;
}

/** What a thread knows of the rows that it has read. */
export interface ReadRows extends ImportedRows {
  /** Names of the query that none of the rows has. */
  readonly unseen: readonly AskedName[];
}

/** What all threads together know of a file that they have read. Throws ApiError 422 where it has no rows, or none has a column of the query. */
export function joinRows(all: readonly ReadRows[]): ImportedRows {
  const read = all.filter(({ rowCount }) => rowCount > 0);
  const [first] = read;
  if (first === undefined) throw wrongFile('it has no rows');
  for (const { parameter, name } of first.unseen)
    if (read.every(({ unseen }) => unseen.some((other) => other.name === name)))
      throw wrongParameter(
        parameter,
        `there is no column ${quoted(name)}, for no row has it: correct the name or leave it out`,
      );
  const sum = (of: (rows: ReadRows) => number) => read.reduce((total, rows) => total + of(rows), 0);
  const { temporalKeys, textKeys, dims } = first;
  return {
    rowCount: sum((rows) => rows.rowCount),
    textOnly: sum((rows) => rows.textOnly),
    temporalKeys,
    textKeys,
    dims,
  };
}
