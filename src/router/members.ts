import { limits } from '../../protocol/limits.ts';
import { type ClusterTask, type Owners, placementKey, taskKey } from '../../protocol/placement.ts';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';
import { isOwn } from '../base/owners.ts';
import { rendezvousPick } from '../base/rendezvous-hash.ts';

/** What a server knows of its cluster: one immutable snapshot, which the next one replaces as a whole. */
export interface Membership {
  readonly owners: Owners;
  /** The log of each member by its server's id; also of those that own nothing yet, or nothing any more. */
  readonly logs: ReadonlyMap<string, string>;
}

/** How a wait ended: it came to hold, its time was over, or too many wait. */
export type WaitEnd = 'holds' | 'over' | 'full';

interface Waiter {
  readonly holds: (members: Membership) => boolean;
  readonly end: (end: WaitEnd) => void;
}

/** Owners remembered, so that a request costs one look-up instead of a hash for each server. */
const ownersRememberedMax = 100_000;

/** The newest snapshot of the cluster, and who waits for a newer one. */
export class KnownMembers {
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();
  #now: Membership;
  #logs: ReadonlySet<string>;
  #owners = new LruMap<string, number>(ownersRememberedMax);

  constructor(members: Membership, clock: Clock) {
    this.#now = members;
    this.#logs = new Set(members.logs.values());
    this.#clock = clock;
  }

  get now(): Membership {
    return this.#now;
  }

  /** Calls that wait for a newer one. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Whoever follows the view gives its snapshots in their order. */
  use(members: Membership): void {
    const { placement } = this.#now.owners;
    assert(members.owners.placement >= placement, () => `a snapshot older than placement ${placement}`);
    if (members.owners.placement > placement) this.#owners = new LruMap(ownersRememberedMax);
    this.#now = members;
    this.#logs = new Set(members.logs.values());
    for (const { holds, end } of [...this.#waiters]) if (holds(members)) end('holds');
  }

  /** The id of the server whose actor has the name; null where no server owns anything. */
  ownerOf(tenantId: number, namespace: string): string | null {
    const { servers } = this.#now.owners;
    // Nothing is remembered where there is nothing to choose.
    if (servers.length <= 1) return servers[0] ?? null;
    const key = placementKey(tenantId, namespace);
    let at = this.#owners.get(key);
    if (at === undefined) {
      at = rendezvousPick(key, servers);
      this.#owners.set(key, at);
    }
    return servers[at] ?? null;
  }

  isOwn(tenantId: number, namespace: string): boolean {
    return this.ownerOf(tenantId, namespace) === this.#now.owners.self;
  }

  /** Whether this server does the work for all; nobody does it while no server owns anything. */
  doesTask(task: ClusterTask): boolean {
    return isOwn(this.#now.owners, taskKey(task));
  }

  /** The log of the other server that has this key; null where this one has it, and where that is not known. */
  otherLogOf(key: string): string | null {
    const { owners, logs } = this.#now;
    if (owners.servers.length === 0) return null;
    const owner = owners.servers[rendezvousPick(key, owners.servers)] ?? '';
    return owner === owners.self ? null : (logs.get(owner) ?? null);
  }

  /** Whether the process of this log is a member. */
  knows(logId: string): boolean {
    return this.#logs.has(logId);
  }

  /** The logs of all members but this server's own. */
  otherLogs(): readonly string[] {
    const { owners, logs } = this.#now;
    return [...logs].filter(([serverId]) => serverId !== owners.self).map(([, logId]) => logId);
  }

  /**
   * Calls back once, never within the call: when a snapshot is there of which it holds, after `ms`, or where too many wait. The
   * answered function ends the wait without a call.
   */
  until(holds: (members: Membership) => boolean, ms: number, then: (end: WaitEnd) => void): () => void {
    const known: WaitEnd | null = holds(this.#now) ? 'holds' : null;
    const isFull = this.#waiters.size >= limits.placementWaitersMax;
    const end = known ?? (isFull ? 'full' : 'over');
    const cancel = this.#clock.after(end === 'over' ? ms : 0, () => waiter.end(end));
    const waiter: Waiter = {
      holds,
      end: (how) => {
        stop();
        then(how);
      },
    };
    const stop = () => {
      cancel();
      this.#waiters.delete(waiter);
    };
    if (end === 'over') this.#waiters.add(waiter);
    return stop;
  }
}
