import { ApiError } from '../../../protocol/errors.ts';
import { isReadFailure } from '../../storage/read-failure.ts';
import type { QueryContext } from '../query.ts';
import { isOutOfTime } from '../scan.ts';

/**
 * Waits for reads within the time of the query, and for what is done with them. Throws `query_timeout` where that is over and the
 * store answers; whoever called the query says what else failed.
 */
export async function reading<T>(context: QueryContext, read: () => Promise<T>): Promise<T> {
  try {
    return await context.slice.waitFor(read());
  } catch (error) {
    if (isReadFailure(error) && isOutOfTime(error)) throw tooLate();
    throw error;
  }
}

/** Gives way where the slice is over. Throws `query_timeout` where the time of the query is. */
export async function takeTurn({ slice }: QueryContext): Promise<void> {
  if (!slice.due()) return;
  await slice.giveWay();
  if (slice.timedOut) throw tooLate();
}

export function tooLate(): ApiError {
  return new ApiError('query_timeout', 'the query ran past the time limit of your plan: narrow it');
}
