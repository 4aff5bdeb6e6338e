/**
 * What a query had used when it was refused. A query that ran out of time has used that time, and one for a document that is not there
 * has looked for it: both are metered. The meter travels with the error that ends the query, whatever kind of error that is.
 */
import { ApiError } from '../../protocol/errors.ts';
import { type Meter, noMeter } from '../../protocol/messages.ts';

const used = Symbol('what the query had used');

interface MeteredError extends Error {
  [used]?: Meter;
}

/** A look that took no time that a clock shows was a look all the same. */
const cpuMsMin = 0.001;

/** What a query has read from the object store: calls and bytes. */
export type StoreReads = Pick<Meter, 'storeGets' | 'storeBytes'>;

const noReads: StoreReads = { storeGets: 0, storeBytes: 0 };

/** Whether a request was wrong before it had anything read: then it was no query, and nothing is metered. */
function wasNoQuery(error: Error, { storeGets }: StoreReads): boolean {
  return error instanceof ApiError && error.code === 'invalid' && storeGets === 0;
}

/** Runs the work of a query, and notes with the error that ends it what it has used by then. */
export async function spending<T>(
  { slice, tally }: { readonly slice: { readonly cpuMs: number }; readonly tally: StoreReads },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && !wasNoQuery(error, tally)) noteSpent(error, slice.cpuMs, tally);
    throw error;
  }
}

/** Notes with an error what its query has used, and answers the error. What was noted before is replaced. */
export function noteSpent<E extends Error>(
  error: E,
  cpuMs: number,
  { storeGets, storeBytes }: StoreReads = noReads,
): E {
  const metered: MeteredError = error;
  metered[used] = { ...noMeter, cpuMs: Math.max(cpuMs, cpuMsMin), storeGets, storeBytes };
  return error;
}

/** Answers what was noted with an error; nothing where nothing was. */
export function spentBefore(error: unknown): Meter {
  return error instanceof Error ? ((error as MeteredError)[used] ?? noMeter) : noMeter;
}
