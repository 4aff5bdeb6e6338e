/**
 * When the sweep runs, over any number of restarts: one small object remembers when the last one began and how far it
 * looked, so that a server that is restarted every hour sweeps no more often than one that is not. Of several servers one sweeps.
 */
import { limits } from '../../protocol/limits.ts';
import { taskKey } from '../../protocol/placement.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { describeError } from '../../src/base/log.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { repeat } from '../../src/base/repeat.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import { sweepOrphans } from './sweep-orphans.ts';

const sweptSchema = z.strictObject({
  /** When the last sweep began, in milliseconds since 1970. */
  beganAtMs: z.number(),
  /** Everything modified up to here has been looked at; milliseconds since 1970. */
  untilMs: z.number(),
});
type Swept = Readonly<z.output<typeof sweptSchema>>;

const format = {
  magic: 'TBSW',
  versions: [formats.swept.version],
  check: storedCheck(sweptSchema),
} as const;
/**
 * After the start, so that recovery comes first: until it has flushed what it replays, the segment of an import may be
 * named by a record of the log alone. And after a sweep that failed.
 */
const firstAfterMs = 3_600_000;
const retryAfterMs = 600_000;
/** How far the store's clock, which says when an object was changed, may differ from this server's. */
const clockDifferenceMsMax = 3_600_000;

/** Sweeps now and then until the answer is called. */
export function keepSweeping(components: ActorComponents): () => void {
  return repeat(components.clock, firstAfterMs, async () => {
    try {
      // Whoever does it may change.
      if (!components.ownership.isOwn(taskKey('orphans'))) return retryAfterMs;
      return await sweepIfDue(components);
    } catch (error) {
      components.logger.error('orphans were not swept', { error: describeError(error) });
      return retryAfterMs;
    }
  });
}

/** Answers in how many milliseconds the next one is due. */
async function sweepIfDue(components: ActorComponents): Promise<number> {
  const { store, clock } = components;
  const found = await store.get(paths.swept);
  const last = found === null ? null : decodeSwept(found.bytes);
  const beganAtMs = clock.now();
  const dueInMs = last === null ? 0 : last.beganAtMs + limits.sweepEveryMs - beganAtMs;
  // A clock that was set back must not put the next sweep off for ever.
  if (dueInMs > 0 && dueInMs <= limits.sweepEveryMs) return dueInMs;
  const untilMs = beganAtMs - limits.orphanGraceMs;
  const changedAfterMs = (last?.beganAtMs ?? 0) - components.limits.deletedRowsKeptMs - clockDifferenceMsMax;
  const sweep = { afterMs: Math.min(last?.untilMs ?? 0, untilMs), untilMs, changedAfterMs };
  const namespaces = await sweepOrphans(components, sweep);
  // An empty server that idles stores nothing but its lease.
  if (namespaces === 0) return limits.sweepEveryMs;
  const bytes = [encodeSwept({ beganAtMs, untilMs })];
  // Refused: another process swept meanwhile, which is as good.
  if (found === null) await store.putIfAbsent(paths.swept, bytes);
  else await store.putIfMatch(paths.swept, bytes, found.etag);
  return limits.sweepEveryMs;
}

export const encodeSwept = (swept: Swept): Uint8Array => encodeRecord(format, swept);
export const decodeSwept = (bytes: Uint8Array): Swept => decodeRecord(bytes, paths.swept, format);
