import { ApiError } from '../../protocol/errors.ts';
import { placementKey } from '../../protocol/placement.ts';
import { describeError } from '../../src/base/log.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { LogTarget } from '../log/unflushed.ts';

/** The pause between two rounds; the first failure is mostly another thread that is still starting. */
const againMsMin = 250;
const againMsMax = 30_000;

export interface Recovery {
  readonly components: Pick<ActorComponents, 'clock' | 'logger' | 'ownership'>;
  /** Brings what the log has of a target into its manifest. */
  readonly recover: (target: LogTarget) => Promise<void>;
  /** How long the first round waits, in milliseconds. */
  readonly afterMs: number;
  /** Whether this process begins nothing more. */
  readonly isOver: () => boolean;
  /** Resolves when it begins nothing more: nobody waits for the next round then. */
  readonly over: Promise<void>;
}

/** Recovers targets again and again until all are flushed: each one that is not keeps its log alive. */
export async function recoverTargets(recovery: Recovery, targets: readonly LogTarget[]): Promise<void> {
  const { components, isOver, over } = recovery;
  const { clock, ownership } = components;
  let left = targets;
  if (recovery.afterMs > 0) await Promise.race([clock.sleep(recovery.afterMs), over]);
  for (let delayMs = againMsMin; ; delayMs = Math.min(delayMs * 2, againMsMax)) {
    const failed: LogTarget[] = [];
    for (const target of left) {
      if (isOver() || !ownership.isReady(keyOfTarget(target))) continue;
      if (!(await recoverOne(recovery, target))) failed.push(target);
    }
    if (failed.length === 0 || isOver()) return;
    left = failed;
    await Promise.race([clock.sleep(delayMs), over]);
  }
}

/** The name by which a target is placed. */
export function keyOfTarget({ tenantId, namespace }: LogTarget): string {
  return placementKey(tenantId, namespace);
}

/** False where it has to be tried again. */
async function recoverOne(
  { components: { logger, ownership }, recover }: Recovery,
  target: LogTarget,
): Promise<boolean> {
  try {
    await recover(target);
    return true;
  } catch (error) {
    // Whoever owns it now recovers it.
    if (!ownership.isOwn(keyOfTarget(target))) return true;
    const { tenantId, namespaceId } = target;
    const fields = { tenantId, namespaceId, error: describeError(error) };
    const sentence = 'a target was not recovered yet; its log is kept';
    // A thread or server that stops, or is not there yet, says so.
    if (error instanceof ApiError && error.code === 'unavailable') logger.info(sentence, fields);
    else logger.error(sentence, fields);
    return false;
  }
}
