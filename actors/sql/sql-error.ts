import { ApiError } from '../../protocol/errors.ts';

/**
 * What is wrong with a statement, and where: `at` counts UTF-16 units of it, and is null where no place of it is to blame. Becomes an
 * ApiError where the statement is known.
 */
export class SqlError extends Error {
  override name = 'SqlError';
  readonly at: number | null;

  constructor(at: number | null, message: string, cause?: unknown) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.at = at;
  }
}

/** Runs a step over a statement; an `SqlError` becomes a 422 that names line and column, both from 1. */
export function locating<T>(sql: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof SqlError) throw located(sql, error);
    throw error;
  }
}

/** Makes the 422 for what is wrong with a statement. */
export function located(sql: string, { at, message }: SqlError): ApiError {
  const problem = at === null ? message : `${placeOf(sql, at)}: ${message}`;
  return new ApiError('invalid', `sql: ${problem}`, { fields: { sql: problem } });
}

function placeOf(sql: string, at: number): string {
  const before = sql.slice(0, at);
  const line = before.split('\n').length;
  const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1;
  return `line ${line}, column ${column}`;
}
