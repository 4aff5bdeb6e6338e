import { ApiError } from '../../../protocol/errors.ts';
import { SqlError } from '../../sql/sql-error.ts';

/**
 * Runs a step about a pattern; a pattern that is refused there is wrong with the statement, at the place where it stands. A refusal for want of
 * room stays what it is: the same statement may be sent again.
 */
export function blamed<T>(at: number, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid')
      throw new SqlError(at, error.fields?.q ?? error.message, error);
    throw error;
  }
}

export function rethrow(error: unknown): never {
  throw error;
}
