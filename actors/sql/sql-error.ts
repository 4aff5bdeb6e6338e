import { ApiError } from '../../protocol/errors.ts';

/** What is wrong with a statement, and where: `at` counts its UTF-16 units. Becomes an ApiError where the statement is known. */
export class SqlError extends Error {
  override name = 'SqlError';
  readonly at: number;

  constructor(at: number, message: string, cause?: unknown) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.at = at;
  }
}

/** Runs a step over a statement; what it finds wrong becomes 422 with line and column, both from 1. */
export function locating<T>(sql: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof SqlError) throw located(sql, error);
    throw error;
  }
}

export function located(sql: string, { at, message }: SqlError): ApiError {
  const before = sql.slice(0, at);
  const line = before.split('\n').length;
  const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1;
  const problem = `line ${line}, column ${column}: ${message}`;
  return new ApiError('invalid', `sql: ${problem}`, { fields: { sql: problem } });
}
