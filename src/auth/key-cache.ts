import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';
import { SingleFlight } from '../base/single-flight.ts';
import type { LookUpGuard } from '../identity/attempts.ts';
import type { Principal } from './principal.ts';

export interface KeyCacheOptions {
  readonly clock: Clock;
  /** Finds the principal from the records; null where the credential is nobody's. May throw; failures are not kept. */
  readonly load: (credential: string) => Promise<LoadedPrincipal | null>;
  /**
   * How long an answer is believed, counted from when it was asked for; null for ever, where this is the only cache. What revokes a
   * credential waits for other servers no longer than this, so one that does not hear of it still lets nobody in.
   */
  readonly keptMs: number | null;
  /** An answer that is older, and asked for, is loaded again while it is still believed. */
  readonly renewAfterMs?: number;
  readonly entriesMax?: number;
  readonly refusalsMax?: number;
  readonly loadsMax?: number;
}

export interface LoadedPrincipal {
  readonly principal: Principal;
  /** Milliseconds since 1970 after which the credential is worth nothing (login tokens); null for ever. */
  readonly expiresAt: number | null;
}

/** Whom something is cached of: a tenant with its keys and connections, or a person with their logins and connections. */
export interface Cached {
  readonly of: 'tenant' | 'person';
  readonly id: number;
}

/** How long "nobody's" is remembered: repeats of one bad key then cost no look-up. */
export const refusalKeptMs = 1_000;
/** Bad credentials remembered at once: those of one second, at about 150 bytes each. */
export const refusalsMaxDefault = 10_000;
/** Loads at once, each a few reads of object storage; a flood of different bad keys must not take all of them. */
export const loadsMaxDefault = 1_000;
/** Loads of one credential that were overtaken by invalidations before the caller is asked to come back. */
export const loadAttemptsMax = 4;
/** Invalidations remembered while loads run; past it every running load counts as overtaken. */
export const invalidationsMax = 10_000;

interface Entry {
  readonly loaded: LoadedPrincipal;
  readonly owners: readonly OwnerSlot[];
  /** When the entry was loaded, by the clock's `monotonic`. */
  readonly loadedAt: number;
}

/** Shared by all entries of one tenant or person, so that invalidating them is one flag. */
interface OwnerSlot {
  readonly name: string;
  alive: boolean;
  entries: number;
}

/**
 * Credential text → principal, on one front thread. A hit is one Map look-up by the text: no hashing, no promise.
 *
 * Revocation: `invalidateTenant` and `invalidatePerson` take effect at once. An answer that was being loaded while its
 * tenant or person was invalidated is neither cached nor given to anybody: it is loaded again, also for those who asked
 * before. So once a revocation was confirmed by every front thread, no request is let in by what it revoked.
 */
export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #entries: LruMap<string, Entry>;
  /** Credential → when its refusal is forgotten, of the clock's `monotonic`. */
  readonly #refusals: LruMap<string, number>;
  readonly #slots = new Map<string, OwnerSlot>();
  readonly #loads = new SingleFlight<string, Principal | null>();
  /** Owner → number of its last invalidation; kept only while loads run. */
  readonly #invalidations = new Map<string, number>();
  #invalidationCount = 0;
  /** Loads that began before this invalidation count as overtaken. */
  #overtakenBefore = 0;

  constructor(options: KeyCacheOptions) {
    this.#options = options;
    this.#entries = new LruMap(options.entriesMax ?? limits.keyCacheEntriesMax, (_, entry) =>
      this.#leave(entry),
    );
    this.#refusals = new LruMap(options.refusalsMax ?? refusalsMaxDefault);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The principal where it is known and still good, without waiting. */
  peek(credential: string): Principal | undefined {
    const entry = this.#entries.get(credential);
    if (entry === undefined) return undefined;
    if (this.#good(entry)) {
      if (this.#isToRenew(entry)) this.#renew(credential);
      return entry.loaded.principal;
    }
    this.#entries.delete(credential);
    return undefined;
  }

  /**
   * The principal, or null where the credential is nobody's. Throws what `load` throws, 429 `rate_limited` when too
   * many loads run, and 503 `unavailable` when changes of the tenant overtook every try. `guard` is asked before a load
   * that nobody has begun yet, and told where it found nothing.
   */
  async get(credential: string, guard?: LookUpGuard): Promise<Principal | null> {
    const known = this.peek(credential);
    if (known !== undefined) return known;
    if (this.#refused(credential)) return null;
    const running = this.#loads.joined(credential);
    if (running !== undefined) return running;
    if (this.#loads.size >= (this.#options.loadsMax ?? loadsMaxDefault)) {
      throw new ApiError('rate_limited', 'too many credentials are being looked up: try again in a second', {
        retryAfter: 1,
      });
    }
    guard?.begin();
    try {
      const principal = await this.#loads.run(credential, () => this.#load(credential));
      if (principal === null) guard?.failed();
      return principal;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not_found') guard?.failed();
      throw error;
    }
  }

  /** Forgets every credential of a tenant. Call before confirming any change of its keys, plan or status. */
  invalidateTenant(tenantId: number): void {
    this.#invalidate(tenantOwner(tenantId));
  }

  /** Forgets every login and every connection of a person. */
  invalidatePerson(personId: number): void {
    this.#invalidate(personOwner(personId));
  }

  async #load(credential: string): Promise<Principal | null> {
    for (let attempt = 0; attempt < loadAttemptsMax; attempt++) {
      const begun = this.#invalidationCount;
      const loadedAt = this.#options.clock.monotonic();
      const loaded = await this.#options.load(credential);
      if (loaded === null) {
        this.#refusals.set(credential, this.#options.clock.monotonic() + refusalKeptMs);
        this.#entries.delete(credential);
        return null;
      }
      const owners = ownersOf(loaded.principal);
      if (owners.some((owner) => this.#overtaken(owner, begun))) continue;
      this.#entries.set(credential, { loaded, owners: owners.map((owner) => this.#enter(owner)), loadedAt });
      return loaded.principal;
    }
    throw new ApiError('unavailable', 'the account is changing too fast to be read: try again in a second', {
      retryAfter: 1,
    });
  }

  #good({ owners, loaded, loadedAt }: Entry): boolean {
    const { clock, keptMs } = this.#options;
    for (const owner of owners) if (!owner.alive) return false;
    if (loaded.expiresAt !== null && clock.now() >= loaded.expiresAt) return false;
    return keptMs === null || clock.monotonic() - loadedAt < keptMs;
  }

  #isToRenew({ loadedAt }: Entry): boolean {
    const { clock, renewAfterMs = Number.POSITIVE_INFINITY } = this.#options;
    return clock.monotonic() - loadedAt >= renewAfterMs;
  }

  /** Loads a credential that is in use again, so that nobody has to wait for it later. What fails is tried again by who asks next. */
  #renew(credential: string): void {
    if (this.#loads.joined(credential) !== undefined) return;
    if (this.#loads.size >= (this.#options.loadsMax ?? loadsMaxDefault)) return;
    this.#loads
      .run(credential, () => this.#load(credential))
      .catch(() => {
        // Whoever finds it too old hears of the next failure.
      });
  }

  #refused(credential: string): boolean {
    const until = this.#refusals.get(credential);
    if (until === undefined) return false;
    if (this.#options.clock.monotonic() < until) return true;
    this.#refusals.delete(credential);
    return false;
  }

  #invalidate(owner: string): void {
    this.#invalidationCount += 1;
    const slot = this.#slots.get(owner);
    if (slot !== undefined) {
      slot.alive = false;
      this.#slots.delete(owner);
    }
    this.#rememberInvalidation(owner);
  }

  #rememberInvalidation(owner: string): void {
    if (this.#loads.size === 0 || this.#invalidations.size >= invalidationsMax) {
      this.#invalidations.clear();
      this.#overtakenBefore = this.#invalidationCount;
      return;
    }
    this.#invalidations.set(owner, this.#invalidationCount);
  }

  #overtaken(owner: string, begun: number): boolean {
    return begun < this.#overtakenBefore || begun < (this.#invalidations.get(owner) ?? 0);
  }

  #enter(owner: string): OwnerSlot {
    const slot = this.#slots.get(owner) ?? { name: owner, alive: true, entries: 0 };
    slot.entries += 1;
    this.#slots.set(owner, slot);
    return slot;
  }

  #leave(entry: Entry): void {
    for (const slot of entry.owners) {
      slot.entries -= 1;
      if (slot.entries === 0 && this.#slots.get(slot.name) === slot) this.#slots.delete(slot.name);
    }
  }
}

/**
 * Whose invalidation makes a credential forgotten: its tenant's, and of logins and connections their person's. A key does not
 * depend on its maker: changing a password must not touch the keys of a program.
 */
function ownersOf({ auth, tenantId, personId }: Principal): string[] {
  const tenant = tenantOwner(tenantId);
  return auth !== 'key' && personId !== null ? [tenant, personOwner(personId)] : [tenant];
}

const tenantOwner = (tenantId: number) => `tenant ${tenantId}`;
const personOwner = (personId: number) => `person ${personId}`;
