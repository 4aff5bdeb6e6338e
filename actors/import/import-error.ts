import { ApiError } from '../../protocol/errors.ts';

/** What is wrong with a file that is imported: nothing of it becomes visible. */
export function wrongFile(problem: string): ApiError {
  return new ApiError('invalid', `nothing was imported: ${problem}`, { fields: { file: problem } });
}

/** `row`: 1 is the first row with values. */
export function wrongRow(row: number, problem: string): ApiError {
  return wrongFile(`row ${row}: ${problem}`);
}

export function wrongValue(row: number, column: string, problem: string): ApiError {
  return wrongFile(`row ${row}, column ${quoted(column)}: ${problem}`);
}

export type ColumnParameter = 'id' | 'text' | 'vector' | 'columns' | 'skip';

export function wrongParameter(name: ColumnParameter | 'schema' | 'format', problem: string): ApiError {
  return new ApiError('invalid', `${name}: ${problem}`, { fields: { [name]: problem } });
}

/** Quotes what somebody wrote for an error sentence: short and printable. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** More than an import may have: 413. */
export function tooMuch(problem: string): ApiError {
  return new ApiError('too_large', `nothing was imported: ${problem}`, { fields: { file: problem } });
}

/** A value is not of the kind that was inferred from the first rows for its column: the file has to be read anew, with a look at all values before. */
export class OfAnotherKind extends Error {
  override name = 'OfAnotherKind';
}
