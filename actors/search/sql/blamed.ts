import { ApiError } from '../../../protocol/errors.ts';
import { SqlError } from '../../sql/sql-error.ts';

/** Runs a step about a pattern; what is refused there is wrong with the statement, at the place where the pattern stands. */
export function blamed<T>(at: number, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof ApiError) throw new SqlError(at, error.fields?.q ?? error.message, error);
    throw error;
  }
}

export function rethrow(error: unknown): never {
  throw error;
}
