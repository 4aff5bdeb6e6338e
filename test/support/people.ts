/** People over a memory store, with a hash whose cost can be seen. */
import { ApiError } from '../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { silentLogger } from '../../src/base/log.ts';
import { systemRandom } from '../../src/base/random.ts';
import { type People, preparePeople } from '../../src/identity/people.ts';
import type { Person } from '../../src/identity/person-record.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { type PutResult, StoreError, type StoreOutcome } from '../../src/object-store/object-store.ts';
import { FakeClock } from './fake-clock.ts';

/** Fails writes by rule, having applied them or not. */
export class FailingStore extends MemoryObjectStore {
  fail: (key: string) => { outcome: StoreOutcome; apply: boolean } | null = () => null;
  override putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    return this.#perhaps(key, () => super.putIfAbsent(key, bytes));
  }
  override putIfMatch(key: string, bytes: readonly Uint8Array[], etag: string): Promise<PutResult> {
    return this.#perhaps(key, () => super.putIfMatch(key, bytes, etag));
  }
  async #perhaps(key: string, put: () => Promise<PutResult>): Promise<PutResult> {
    const failure = this.fail(key);
    if (failure === null) return put();
    if (failure.apply) await put();
    throw new StoreError('put', key, failure.outcome, 'failed');
  }
}

/** Argon2 is tested where it runs; here the cost of a hash only has to be visible. */
export class PlainHasher {
  readonly verified: string[] = [];
  async hash(password: string): Promise<string> {
    return `new:${password}`;
  }
  async verify(hash: string, password: string) {
    this.verified.push(hash);
    const matches = hash.endsWith(`:${password}`);
    return { matches, needsRehash: matches && hash.startsWith('old:') };
  }
}

export interface PeopleHouse {
  readonly objectStore: FailingStore;
  readonly hasher: PlainHasher;
  readonly clock: FakeClock;
  readonly people: People;
  /** Tenants that were told that their owner's address is verified, in this order. */
  readonly told: number[];
  /** Tenants whose keys were ended, and whose of them: null for all. */
  readonly ended: (readonly [tenantId: number, madeBy: number | null])[];
  /** What ending them does, before it is noted. */
  onEnd: () => Promise<void>;
  /** What telling them does, besides being noted. */
  onTold: (tenantId: number) => Promise<void>;
}

export async function peopleHouse(): Promise<PeopleHouse> {
  const objectStore = new FailingStore();
  const hasher = new PlainHasher();
  const clock = new FakeClock();
  const told: number[] = [];
  const ended: [number, number | null][] = [];
  const people = await preparePeople({
    objectStore,
    hasher,
    tenantCreator: { createTenant: async () => {} },
    async ownerVerified(tenantId) {
      await house.onTold(tenantId);
      told.push(tenantId);
    },
    async endKeys(tenantId, madeBy) {
      await house.onEnd();
      ended.push([tenantId, madeBy]);
    },
    clock,
    random: systemRandom,
    logger: silentLogger,
  });
  const house: PeopleHouse = {
    objectStore,
    hasher,
    clock,
    people,
    told,
    ended,
    onEnd: async () => {},
    onTold: async () => {},
  };
  return house;
}

/** The code of the error that the work ends with. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => 'no error',
    (caught: unknown) => caught,
  );
  return error instanceof ApiError ? error.code : String(error);
}

/** A person who owns one tenant, has made no other in this month, and has not verified their address. */
export function personRecord(of: {
  readonly id: PersonId;
  readonly tenantId: TenantId;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}): Person {
  const { id, tenantId, createdAt } = of;
  return {
    id,
    email: 'a@b.c',
    name: 'A',
    passwordHash: '',
    generation: 1,
    verified: false,
    links: [],
    resentAt: null,
    verificationMailsAt: [],
    keysEnding: false,
    tenants: [{ tenantId, role: 'owner' }],
    defaultTenantId: tenantId,
    tenantsMade: { month: '2023-11', count: 0 },
    createdAt,
    nonce: '0',
  };
}
