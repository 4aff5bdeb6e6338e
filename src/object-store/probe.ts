import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { randomHex } from '../base/random.ts';
import { type ObjectStore, type PutResult, StoreError } from './object-store.ts';
import { paths } from './paths.ts';

/** Enough that a store which checks first and writes later is caught at once. */
const racers = 32;
/** A store that throttles a fifth of all requests lets one of five tries through; with the pauses half a minute. */
const triesMax = 24;
const pauseMs = 100;

/**
 * Checks that a store keeps the promises that no acknowledged write is lost without: several S3-compatible stores
 * ignore the conditions of a PUT, or check them without holding the door, and say nothing. Removes what it made.
 *
 * Throws an `Error` that names the promise which the store does not keep, in words for the operator.
 */
export async function probeObjectStore(store: ObjectStore, clock: Clock, random: Random): Promise<void> {
  try {
    for (let tries = 1; !(await probeOnce(store, random, tries === triesMax)); tries++)
      await clock.sleep(pauseMs * tries);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const reason = error.cause instanceof Error ? error.cause.message : error.message;
    throw new Error(
      `the object store cannot be used: ${error.operation} of a probe object failed: ${reason}`,
      {
        cause: error,
      },
    );
  }
}

/** A store that asks for less, or whose answer was lost: of neither can anything be said. */
function mayPass({ reason, outcome }: StoreError): boolean {
  return reason === 'throttled' || (reason === 'failed' && outcome === 'unknown');
}

/** False where the store did not say enough; it is asked again under other names. */
async function probeOnce(store: ObjectStore, random: Random, isLast: boolean): Promise<boolean> {
  const folder = paths.probe(randomHex(random, 8));
  const probe: Probe = { store, random, key: (name) => `${folder}/${name}` };
  try {
    await settleAll([
      createAndUpdate(probe),
      createRace(probe),
      updateRace(probe),
      listAfterWrite(probe, `${folder}/listed/`),
    ]);
    return true;
  } catch (error) {
    if (isLast || !(error instanceof StoreError) || !mayPass(error)) throw error;
    return false;
  } finally {
    const keys = ['update', 'create-race', 'update-race', 'listed/a', 'listed/b'].map(probe.key);
    // What cannot be removed is a few bytes under a name that nobody reads.
    await Promise.allSettled(keys.map((key) => store.delete(key)));
  }
}

interface Probe {
  readonly store: ObjectStore;
  readonly random: Random;
  readonly key: (name: string) => string;
}

/** As `Promise.all`, but waits for the end of every one also after a failure: what is cleaned up must not come back. */
async function settleAll(checks: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(checks);
  await Promise.all(checks);
}

async function createAndUpdate({ store, random, key }: Probe): Promise<void> {
  const name = key('update');
  const bodies = { first: random.bytes(32), second: random.bytes(32), stale: random.bytes(32) };
  const first = await store.putIfAbsent(name, [bodies.first]);
  if (first.kind === 'refused') throw refusal('refused the first create of a key as if it existed');
  await expectStored(store, name, bodies.first, 'a create');

  const again = await store.putIfAbsent(name, [bodies.stale]);
  if (again.kind === 'stored')
    throw refusal('accepted a second create of the same key: it ignores If-None-Match');
  await expectStored(store, name, bodies.first, 'a create that it refused');

  const second = await store.putIfMatch(name, [bodies.second], first.etag);
  if (second.kind === 'refused')
    throw refusal('refused to update an object whose ETag was right: it does not know If-Match on PUT');
  await expectStored(store, name, bodies.second, 'an update');

  const stale = await store.putIfMatch(name, [bodies.stale], first.etag);
  if (stale.kind === 'stored')
    throw refusal('accepted an update with the ETag of an older version: it ignores If-Match');
  await expectStored(store, name, bodies.second, 'an update that it refused');
}

async function createRace({ store, random, key }: Probe): Promise<void> {
  const name = key('create-race');
  await race(store, name, random, 'creates of one key (If-None-Match)', (body) =>
    store.putIfAbsent(name, [body]),
  );
}

async function updateRace({ store, random, key }: Probe): Promise<void> {
  const name = key('update-race');
  const first = await store.putIfAbsent(name, [random.bytes(32)]);
  if (first.kind === 'refused') throw refusal('refused the first create of a key as if it existed');
  const update = (body: Uint8Array) => store.putIfMatch(name, [body], first.etag);
  await race(store, name, random, 'updates of one version (If-Match)', update);
}

async function race(
  store: ObjectStore,
  name: string,
  random: Random,
  what: string,
  put: (body: Uint8Array) => Promise<PutResult>,
): Promise<void> {
  const bodies = Array.from({ length: racers }, () => random.bytes(32));
  const results = await Promise.allSettled(bodies.map(put));
  const winners = bodies.filter((_, i) => results[i]?.status === 'fulfilled' && isStored(results[i].value));
  if (winners.length > 1)
    throw refusal(
      `accepted ${winners.length} of ${racers} racing ${what}: it checks the condition before it writes, not while`,
    );

  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  const [winner] = winners;
  if (winner !== undefined) return expectStored(store, name, winner, 'a race of writes');
  // A conflict says that somebody else won; of an unknown outcome one cannot tell.
  const unknown = failures.find((error) => !(error instanceof StoreError) || error.outcome === 'unknown');
  throw unknown ?? refusal(`refused all of ${racers} racing ${what}: one must win`);
}

function isStored(result: PutResult): boolean {
  return result.kind === 'stored';
}

async function listAfterWrite({ store, random, key }: Probe, prefix: string): Promise<void> {
  const names = [key('listed/a'), key('listed/b')];
  const seen = async () => (await store.list(prefix, { limit: 10 })).objects.map((object) => object.key);
  if ((await seen()).length > 0) throw refusal('lists keys that were never written');
  for (const [index, name] of names.entries()) {
    const put = await store.putIfAbsent(name, [random.bytes(32)]);
    if (put.kind === 'refused') throw refusal('refused the first create of a key as if it existed');
    const expected = names.slice(0, index + 1);
    if ((await seen()).join() !== expected.join())
      throw refusal(
        'does not list an object right after it was written: its listings are stale or out of order',
      );
  }
}

async function expectStored(
  store: ObjectStore,
  name: string,
  body: Uint8Array,
  after: string,
): Promise<void> {
  const object = await store.get(name);
  if (object !== null && Buffer.compare(object.bytes, body) === 0) return;
  throw refusal(
    `did not return the expected bytes right after ${after}: its reads are stale or its answers untrue`,
  );
}

function refusal(fault: string): Error {
  return new Error(
    `this object store ${fault}; Tidebase needs one with atomic conditional writes and consistent reads and ` +
      'listings, and does not start on this one, because acknowledged writes would be lost',
  );
}
