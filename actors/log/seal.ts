import { limits } from '../../protocol/limits.ts';
import { assert } from '../../src/base/assert.ts';
import { type Random, randomHex } from '../../src/base/random.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';
import { readFloor } from '../../src/stored/log-floor.ts';
import { decodeLogObject, encodeLogObject } from '../../src/stored/log-object.ts';
import { listLogs } from './collect-log.ts';

/**
 * Ends a log for ever: a seal object in the slot after its last group, by create-if-absent.
 *
 * 1. The end is found by trying. A LIST is only a hint where to begin; the conditional PUT decides.
 * 2. A slot that holds a group is behind the end: on to the next. One that holds a seal: done, that is the end.
 * 3. Only then is the floor read again: a seal in a slot at or under the floor lies where collection has already
 *    been, a delayed PUT could still land above it; seal again above the floor.
 *
 * Seals are never deleted, so a paused writer of this log meets one whenever it wakes up.
 * Answers the sequence of the seal that holds.
 */
export async function sealLog(
  store: ObjectStore,
  random: Random,
  sealing: { readonly logId: string; readonly placement: number },
): Promise<number> {
  // The last listed slot itself may hold a seal: an earlier sealer that did not get to change the view.
  let from = Math.max((await readFloor(store, sealing.logId)) + 1, await lastListed(store, sealing.logId));
  for (let tries = 0; tries < limits.sealProbeMax; tries++) {
    const sealSeq = await sealFrom(store, random, { ...sealing, from });
    const floor = await readFloor(store, sealing.logId);
    if (sealSeq > floor) return sealSeq;
    from = floor + 1;
  }
  throw new Error(`the end of log ${sealing.logId} was not found in ${limits.sealProbeMax} tries`);
}

async function sealFrom(
  store: ObjectStore,
  random: Random,
  sealing: { readonly logId: string; readonly placement: number; readonly from: number },
): Promise<number> {
  const { logId, placement, from } = sealing;
  for (let slot = from; slot < from + limits.sealProbeMax; slot++) {
    const key = paths.logObject(logId, slot);
    const batchId = randomHex(random, 16);
    const seal = encodeLogObject({ logId, slot, kind: 'seal', placement, previousChecksum: 0n, batchId }, []);
    const put = await store.putIfAbsent(key, [seal.bytes]);
    if (put.kind === 'stored') return slot;
    const kind = await readIntact(store, key, ({ bytes }) => decodeLogObject(bytes, key).kind);
    if (kind === 'seal') return slot;
  }
  throw new Error(`the end of log ${logId} was not found in ${limits.sealProbeMax} slots`);
}

/** The highest listed slot, or 0. May be behind the truth, never ahead of it. */
async function lastListed(store: ObjectStore, logId: string): Promise<number> {
  const listed = (await listLogs(store, paths.logFolder(logId))).get(logId);
  let last = 0;
  for (const { slot } of listed?.slots ?? []) last = Math.max(last, slot);
  assert(Number.isSafeInteger(last), () => `log ${logId} has a slot beyond safe integers`);
  return last;
}
