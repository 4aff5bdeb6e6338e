/** Registrations that nobody has let connect for a day are deleted: by their age in the listing, without being read. */
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';

export interface SweepComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether this server does it for all, now. */
  readonly isMine: () => boolean;
}

/** Long after a start, which has enough to do. */
const firstAfterMs = 10 * 60_000;

/** The answer stops it. */
export function keepSweepingClients(components: SweepComponents): () => void {
  return repeat(components.clock, firstAfterMs, async () => {
    try {
      if (components.isMine()) await sweepClients(components);
    } catch (error) {
      const fields = { error: describeError(error) };
      components.logger.error('unused registrations of OAuth clients were not deleted', fields);
    }
    return limits.clientSweepEveryMs;
  });
}

/** One round. What fails is found again by the next. */
export async function sweepClients({
  store,
  clock,
}: Pick<SweepComponents, 'store' | 'clock'>): Promise<void> {
  const beforeMs = clock.now() - limits.unusedClientMs;
  for await (const { key, modifiedAtMs } of listAll(store, paths.unusedClients))
    if (modifiedAtMs < beforeMs) await store.delete(key);
}
