import { ApiError } from '../../protocol/errors.ts';
import { type Meter, noMeter } from '../../protocol/messages.ts';

/**
 * What a query had used when it was refused: a query past its time has had its time, and one for a document that is not
 * there has looked for it. Errors have no room for it, so it lies beside them.
 */
const cpuMsMin = 0.001;
const meters = new WeakMap<object, Meter>();

/** What a query has read from the object store: calls and bytes. */
export type StoreReads = Pick<Meter, 'storeGets' | 'storeBytes'>;

const noReads: StoreReads = { storeGets: 0, storeBytes: 0 };

/** A query whose words are wrong was none, unless it had something read. What the work alone could tell is noted where it is told. */
function wasNoQuery(error: Error, { storeGets }: StoreReads): boolean {
  return error instanceof ApiError && error.code === 'invalid' && storeGets === 0;
}

/** Runs the work of a query; what it has used by then is remembered with the error that ends it. */
export async function spending<T>(
  { slice, report }: { readonly slice: { readonly cpuMs: number }; readonly report: StoreReads },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && !wasNoQuery(error, report)) noteSpent(error, slice.cpuMs, report);
    throw error;
  }
}

/** Answers the error. A look that took no time that a clock shows was a look all the same. */
export function noteSpent<E extends Error>(
  error: E,
  cpuMs: number,
  { storeGets, storeBytes }: StoreReads = noReads,
): E {
  meters.set(error, { ...noMeter, cpuMs: Math.max(cpuMs, cpuMsMin), storeGets, storeBytes });
  return error;
}

export function spentBefore(error: unknown): Meter {
  return error instanceof Error ? (meters.get(error) ?? noMeter) : noMeter;
}
