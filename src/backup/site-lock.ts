import { hostname } from 'node:os';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { repeat } from '../base/repeat.ts';
import type { ObjectStore, StoredObject } from '../object-store/object-store.ts';

const beatEveryMs = 5_000;
/** A lock that has not changed for so long was left by a process that has ended. */
const leftAfterMs = 20_000;

/** Another backup is being made or cleared away in the same place. The message is for a person. */
export class SiteLocked extends Error {
  override name = 'SiteLocked';
}

/**
 * Holds a place of backups for one process, so that none clears away what another is copying. One small object, changed by
 * compare-and-set every 5 seconds; one that stands still for 20 is taken over.
 */
export class SiteLock {
  readonly #store: ObjectStore;
  readonly #key: string;
  readonly #holder: string;
  #etag: string;
  #lost: string | null = null;
  #stop = () => {};
  #beats = 0;

  private constructor(store: ObjectStore, key: string, holder: string, etag: string) {
    this.#store = store;
    this.#key = key;
    this.#holder = holder;
    this.#etag = etag;
  }

  /** Takes the lock, waiting for as long as it takes to see that nobody holds it. Throws `SiteLocked`. */
  static async take(
    store: ObjectStore,
    key: string,
    { clock, random }: { readonly clock: Clock; readonly random: Random },
  ): Promise<SiteLock> {
    const holder = `${hostname()} process ${process.pid} ${randomHex(random, 8)}`;
    const left = await leftLock(store, key, clock);
    const bytes = [contentOf(holder, 0)];
    const put =
      left === null ? await store.putIfAbsent(key, bytes) : await store.putIfMatch(key, bytes, left.etag);
    if (put.kind === 'refused') throw new SiteLocked('another backup has just begun in the same place');
    const lock = new SiteLock(store, key, holder, put.etag);
    lock.#stop = repeat(clock, beatEveryMs, () => lock.#beat());
    return lock;
  }

  /** Asserts that no other process has taken over because this one stood still for too long. Throws `SiteLocked`. */
  assertHeld(): void {
    if (this.#lost !== null) throw new SiteLocked(`this backup has lost its lock: ${this.#lost}`);
  }

  async release(): Promise<void> {
    this.#stop();
    if (this.#lost === null) await this.#store.delete(this.#key);
  }

  async #beat(): Promise<number> {
    try {
      const bytes = [contentOf(this.#holder, ++this.#beats)];
      const put = await this.#store.putIfMatch(this.#key, bytes, this.#etag);
      if (put.kind === 'refused') await this.#lookWhose();
      else this.#etag = put.etag;
    } catch {
      // What can't be seen now is seen by the next beat.
      await this.#lookWhose().catch(() => {});
    }
    return beatEveryMs;
  }

  async #lookWhose(): Promise<void> {
    const found = await this.#store.get(this.#key);
    const text = found === null ? '' : Buffer.from(found.bytes).toString();
    if (found !== null && text.startsWith(this.#holder)) this.#etag = found.etag;
    else this.#lost = found === null ? 'somebody removed it' : `${text.split('\n')[0]} has it`;
  }
}

/** The lock of a process that has ended, or null where there is none. Waits as long as it takes to see that. */
async function leftLock(store: ObjectStore, key: string, clock: Clock): Promise<StoredObject | null> {
  const before = await store.get(key);
  if (before === null) return null;
  await clock.sleep(leftAfterMs);
  const after = await store.get(key);
  if (after === null || after.etag === before.etag) return after;
  const [holder] = Buffer.from(after.bytes).toString().split('\n');
  throw new SiteLocked(`another backup is under way in the same place (${holder}): wait for its end`);
}

function contentOf(holder: string, beat: number): Buffer {
  return Buffer.from(`${holder}\n${beat}\n`);
}
