import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { CannotJoin } from './join.ts';

/**
 * Throws CannotJoin where this server's clock differs from the store's by more than servers may: an object is stored, and the listing says when
 * that was. Ages of objects decide what is deleted, and times of writes what is newest, so those who share a store have to agree on the time
 * of day.
 */
export async function refuseSkewedClock({
  store,
  clock,
  random,
}: {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}): Promise<void> {
  const key = `${paths.probe(randomHex(random, 8))}/clock`;
  const beforeMs = clock.now();
  let storedMs: number | undefined;
  try {
    await store.putIfAbsent(key, [new Uint8Array([1])]);
    const { objects } = await store.list(key, { limit: 1 });
    storedMs = objects[0]?.modifiedAtMs;
  } finally {
    // A killed process leaves it as it leaves other probes, which are collected.
    await store.delete(key).catch(() => undefined);
  }
  if (storedMs === undefined) return;
  const aheadMs = Math.max(0, beforeMs - storedMs);
  const behindMs = Math.max(0, storedMs - clock.now());
  const skewMs = Math.max(aheadMs, behindMs);
  if (skewMs <= limits.clockSkewMsMax) return;
  throw new CannotJoin(
    `the clock of this server is ${Math.round(skewMs / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the object store's, and may differ by ` +
      `${limits.clockSkewMsMax / 1_000} s: set it (NTP), and start the server again`,
  );
}
