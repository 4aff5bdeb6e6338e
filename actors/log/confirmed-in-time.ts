import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';

/**
 * What became of a record, unless the log does not know for so long that the client is told `write_unknown`. The record
 * itself goes on, and so must everything that follows from its being durable: chain that to `work`, not to the answer.
 */
export async function confirmedInTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  let cancel = () => {};
  const tooLong = new Promise<never>((_, reject) => {
    cancel = clock.after(limits.writeUnknownAfterMs, () => reject(unknown()));
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    cancel();
  }
}

function unknown(): ApiError {
  const sentence = 'object storage did not confirm the write in time: it may or may not be applied';
  return new ApiError('write_unknown', sentence, { retryAfter: 1 });
}
