import { limits } from '../../protocol/limits.ts';
import type { Owners } from '../../protocol/placement.ts';
import type { Clock } from '../../src/base/clock.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import { isOwn } from '../../src/base/owners.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { sideBySide } from '../../src/base/side-by-side.ts';
import type { LogClient } from '../log/log-client.ts';
import type { LogTarget } from '../log/unflushed.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import { type Evictable, hold, type OpenActors, placementKeyOfSlot } from './open-actors.ts';

/** What is looked at of one kind of actor. */
type Kind = Pick<OpenActors<Evictable>, 'get' | 'slots'>;

export interface FlushMovingComponents {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly log: Pick<LogClient, 'heard' | 'movedAway'>;
  /** Tells the log how far the target's manifest has it. */
  readonly lookUp: (target: LogTarget) => Promise<void>;
}

/**
 * Flushes open actors that would move to other servers with these owners, so that whoever takes them over replays next to nothing; and looks which
 * targets that moved away earlier were flushed by their owners since, because one that was not is reason to read the log again from there. They go on
 * serving: what is written during one pass is flushed by the next. Resolves after the passes, or when `withinMs` are over; what is
 * not flushed by then is replayed from the log. Kinds are flushed one after the other: what namespaces report is flushed with their
 * tenants.
 */
export async function flushMoving(
  { clock, logger, log, lookUp }: FlushMovingComponents,
  kinds: readonly Kind[],
  { owners, withinMs }: { readonly owners: Owners; readonly withinMs: number },
): Promise<void> {
  const isMoving = (key: string) => !isOwn(owners, placementKeyOfSlot(key));
  const untilMs = clock.monotonic() + withinMs;
  const isOver = () => clock.monotonic() >= untilMs;
  const flushOne = async (actors: Kind, key: string) => {
    const slot = actors.get(key);
    if (slot === undefined || isOver()) return;
    const held = await hold(slot, clock);
    try {
      if (!held.actor.closed && !held.actor.isFlushed) await held.actor.flush();
    } finally {
      held.release();
    }
  };
  const flushAll = async () => {
    for (let pass = 0; pass < limits.movingFlushPasses; pass++)
      for (const actors of kinds) {
        const keys = [...actors.slots()]
          .filter(([key, { actor }]) => actor !== null && !actor.isFlushed && isMoving(key))
          .map(([key]) => key);
        await sideBySide(keys, limits.movingFlushesAtOnce, (key) =>
          flushOne(actors, key).catch((error: unknown) => {
            // It has closed, or the store is away: then it is replayed.
            if (!(error instanceof ActorClosed))
              logger.info('data was not flushed before it moves', { error: describeError(error) });
          }),
        );
      }
  };
  // What is not known to be flushed is replayed.
  const notLookedAt = (error: unknown) =>
    logger.info('data that moved away was not looked at', { error: describeError(error) });
  const lookMs = Math.min(withinMs, limits.movedLookUpsMsMax);
  const lookUntilMs = clock.monotonic() + lookMs;
  const lookUpOne = async (target: LogTarget) => {
    if (clock.monotonic() < lookUntilMs) await lookUp(target).catch(notLookedAt);
  };
  const lookUpAll = async () => sideBySide(await log.movedAway(), limits.movingFlushesAtOnce, lookUpOne);
  const prepare = async () => {
    // A look may wait for a tenant's owner that has just died.
    await Promise.all([flushAll(), settledWithin(clock, lookUpAll().catch(notLookedAt), lookMs)]);
    // The barrier says what is flushed, as far as the log has heard by then.
    await log.heard();
  };
  await settledWithin(clock, prepare(), withinMs);
}
