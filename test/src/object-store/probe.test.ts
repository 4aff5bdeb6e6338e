import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { FsObjectStore } from '../../../src/object-store/fs-object-store.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import type {
  ListOptions,
  ListPage,
  ObjectStore,
  PutResult,
  StoredObject,
} from '../../../src/object-store/object-store.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { probeObjectStore } from '../../../src/object-store/probe.ts';

/** An honest store, for liars to be derived from. */
class Store extends MemoryObjectStore {
  /** As a store does that knows no conditions. */
  async overwrite(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    await super.delete(key);
    return super.putIfAbsent(key, bytes);
  }
}

class IgnoresIfNoneMatch extends Store {
  override putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    return this.overwrite(key, bytes);
  }
}

class IgnoresIfMatch extends Store {
  override putIfMatch(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    return this.overwrite(key, bytes);
  }
}

class RefusesIfMatch extends Store {
  override async putIfMatch(): Promise<PutResult> {
    return { kind: 'refused' };
  }
}

class ChecksThenCreates extends Store {
  override async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    if ((await this.get(key)) !== null) return { kind: 'refused' };
    await turn();
    return this.overwrite(key, bytes);
  }
}

class ChecksThenUpdates extends Store {
  override async putIfMatch(key: string, bytes: readonly Uint8Array[], etag: string): Promise<PutResult> {
    if ((await this.get(key))?.etag !== etag) return { kind: 'refused' };
    await turn();
    return this.overwrite(key, bytes);
  }
}

class StoresWhatItRefuses extends Store {
  override async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    const result = await super.putIfAbsent(key, bytes);
    if (result.kind === 'refused') await this.overwrite(key, bytes);
    return result;
  }
}

class RefusesAllRacers extends Store {
  override async putIfMatch(key: string, bytes: readonly Uint8Array[], etag: string): Promise<PutResult> {
    return key.endsWith('update-race') ? { kind: 'refused' } : super.putIfMatch(key, bytes, etag);
  }
}

class ReadsStale extends Store {
  readonly #seen = new Map<string, StoredObject | null>();
  override async get(key: string): Promise<StoredObject | null> {
    const known = this.#seen.get(key);
    const object = known ?? (await super.get(key));
    this.#seen.set(key, object);
    return object;
  }
}

class ListsStale extends Store {
  readonly #seen = new Map<string, ListPage>();
  override async list(prefix: string, options: ListOptions): Promise<ListPage> {
    const page = this.#seen.get(prefix) ?? (await super.list(prefix, options));
    this.#seen.set(prefix, page);
    return page;
  }
}

class DeniesAccess extends Store {
  override async putIfAbsent(key: string): Promise<PutResult> {
    const cause = new Error('S3 answered 403: AccessDenied: no right to write');
    throw new StoreError('create', key, 'not-applied', 'failed', { cause });
  }
}

const liars: readonly [new () => ObjectStore, RegExp][] = [
  [IgnoresIfNoneMatch, /accepted a second create of the same key: it ignores If-None-Match/],
  [IgnoresIfMatch, /accepted an update with the ETag of an older version: it ignores If-Match/],
  [RefusesIfMatch, /refused to update an object whose ETag was right/],
  [ChecksThenCreates, /accepted \d+ of 32 racing creates of one key/],
  [ChecksThenUpdates, /accepted \d+ of 32 racing updates of one version/],
  [StoresWhatItRefuses, /did not return the expected bytes right after a create that it refused/],
  [RefusesAllRacers, /refused all of 32 racing updates/],
  [ReadsStale, /did not return the expected bytes right after an update/],
  [ListsStale, /does not list an object right after it was written/],
  [DeniesAccess, /cannot be used: create of a probe object failed: S3 answered 403/],
];

describe('the start-up probe', () => {
  it('passes an honest store and leaves nothing behind', async () => {
    const store = new MemoryObjectStore();
    await probeObjectStore(store, systemClock, systemRandom);
    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
  });

  it('passes the folder store, several probes at a time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tidebase-probe-'));
    const store = await FsObjectStore.open(folder, systemClock, systemRandom);
    await Promise.all([
      probeObjectStore(store, systemClock, systemRandom),
      probeObjectStore(store, systemClock, systemRandom),
    ]);
    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
    await store.close();
    await rm(folder, { recursive: true, maxRetries: 10, retryDelay: 50 });
  });

  it('counts conflicts in a race as lost races', async () => {
    class Conflicts extends Store {
      override async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
        const result = await super.putIfAbsent(key, bytes);
        if (result.kind === 'refused' && key.endsWith('create-race'))
          throw new StoreError('create', key, 'not-applied', 'conflict');
        return result;
      }
    }
    await probeObjectStore(new Conflicts(), systemClock, systemRandom);
  });

  it('asks a store that throttles again', async () => {
    let asked = 0;
    class Throttles extends Store {
      override async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
        if (asked++ % 60 === 0) throw new StoreError('create', key, 'unknown', 'throttled');
        return super.putIfAbsent(key, bytes);
      }
    }
    const store = new Throttles();
    await probeObjectStore(store, systemClock, systemRandom);
    assert.ok(asked > 60);
    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
  });

  for (const [Liar, message] of liars)
    it(`refuses a store that ${Liar.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim()}`, async () => {
      const store = new Liar();
      await assert.rejects(probeObjectStore(store, systemClock, systemRandom), message);
      assert.deepEqual((await store.list('probe', { limit: 10 })).objects, []);
    });
});
