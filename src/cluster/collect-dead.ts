/**
 * What processes leave behind when they end: the objects of their logs, and their leases. Now and then everything is
 * listed, and only then is the view read: whatever was listed was in the view before it had an object, so what the view
 * does not name any more is nobody's. Of several servers one does it.
 */
import { limits } from '../../protocol/limits.ts';
import type { LogControl } from '../../protocol/worker-tasks.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readView } from './view.ts';

export interface CollectComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly log: Pick<LogControl, 'listLogs' | 'collectLogs'>;
  /** Whether this server does it for all, now; of its own log it does it in any case. */
  readonly isMine: () => boolean;
}

/** Soon after the start, when the predecessor's records have mostly been taken over, and then every hour. */
const soonMs = 30_000;

/** The answer stops it. */
export function keepCollectingDead(components: CollectComponents): () => void {
  return repeat(components.clock, soonMs, async () => {
    try {
      if (!(await collectDead(components))) return soonMs;
    } catch (error) {
      components.logger.error('ended logs were not collected', { error: describeError(error) });
    }
    return limits.logCollectionEveryMs;
  });
}

/** One round. What fails is found again by the next. False where a log is not done yet that this process has replayed. */
export async function collectDead(components: Omit<CollectComponents, 'logger'>): Promise<boolean> {
  const { store, clock, log } = components;
  const isMine = components.isMine();
  const leases = isMine ? await listLeases(store) : [];
  await log.listLogs(isMine ? 'all' : 'own');
  const view = await readView(store);
  const members = view.members.map((member) => member.logId);
  const removed = view.removed.map(({ logId }) => logId);
  const isAllDone = await log.collectLogs({ members, removed });
  for (const logId of leases) if (!members.includes(logId)) await store.delete(paths.lease(logId));
  if (isMine) await collectProbes(store, clock.now() - limits.orphanGraceMs);
  return isAllDone;
}

/** A process that was killed while it probed the store has left its objects. */
async function collectProbes(store: ObjectStore, beforeMs: number): Promise<void> {
  for await (const { key, modifiedAtMs } of listAll(store, paths.probes))
    if (modifiedAtMs < beforeMs) await store.delete(key);
}

async function listLeases(store: ObjectStore): Promise<string[]> {
  const prefix = paths.lease('');
  const logIds: string[] = [];
  for await (const { key } of listAll(store, prefix)) logIds.push(key.slice(prefix.length));
  return logIds;
}
