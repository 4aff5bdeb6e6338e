import { ApiError } from '../../protocol/errors.ts';
import type { NameEntry, TenantEvent } from '../../protocol/stored-tenant.ts';
import { describeError } from '../../src/base/log.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import { NotErasedYet } from '../actor/directory.ts';
import { dropWaitMs, keepDropping } from './keep-dropping.ts';
import { deleteKeyClaims, dropEach } from './remove-tenant.ts';
import type { TenantLog } from './tenant-log.ts';
import { entryOf, keysThatEnd, linksAt } from './tenant-state.ts';

type Components = Pick<ActorComponents, 'store' | 'clock' | 'logger' | 'directory' | 'evidence'>;

interface DroppedNamespace {
  readonly name: string;
  /** What of its writes is metered. */
  known: NameEntry;
  /** How many of them a replay of the tenant's log would meter: the tenant may have heard of more, between two events. */
  writesLogged: number;
  /** Whether its owner is known to let nobody in any more. */
  hasEnded: boolean;
}

/** What deletions leave behind, until it is gone: objects of namespaces, claims of keys. */
export class TenantDrops {
  readonly #components: Components;
  readonly #log: TenantLog;
  /** Namespaces whose name is gone and whose objects may not be, by id. The log is held until they are. */
  readonly #namespaces = new Map<string, DroppedNamespace>();
  /** Digests of keys that are revoked and whose claims may be there. They let nobody in, so they go with the next flush. */
  readonly #claims = new Set<string>();

  constructor(components: Components, log: TenantLog) {
    this.#components = components;
    this.#log = log;
  }

  get isEmpty(): boolean {
    return this.#namespaces.size + this.#claims.size === 0;
  }

  applying(event: TenantEvent): void {
    if (event.kind === 'namespace-deleted') this.#beginNamespace(event);
    if (event.kind === 'keys-ended')
      for (const { digest } of keysThatEnd(this.#log.state, event)) this.#claims.add(digest);
    if (event.kind === 'key-revoked') {
      const gone = this.#log.state.keys.get(event.keyId);
      if (gone !== undefined) this.#claims.add(gone.digest);
    }
  }

  #beginNamespace(event: Extract<TenantEvent, { kind: 'namespace-deleted' }>): void {
    const gone = entryOf(this.#log.state, event);
    if (gone === undefined) return;
    const { name, namespaceId, taken } = event;
    for (const { name: link, namespaceId: linkId, entry } of linksAt(this.#log.state, namespaceId))
      this.#namespaces.set(linkId, { name: link, known: entry, writesLogged: entry.writes, hasEnded: false });
    // A link that follows has no objects.
    if (gone.linked?.follows === true) return;
    this.#namespaces.set(namespaceId, {
      name,
      known: gone.writes < taken.writes ? { ...gone, ...taken } : gone,
      writesLogged: taken.writes,
      hasEnded: false,
    });
  }

  /** What is known of a namespace whose objects may be there. */
  known(namespaceId: string): NameEntry | undefined {
    return this.#namespaces.get(namespaceId)?.known;
  }

  writesLogged(namespaceId: string): number {
    return this.#namespaces.get(namespaceId)?.writesLogged ?? 0;
  }

  /** An event says more of it. */
  learn(
    namespaceId: string,
    { known, logged }: { readonly known: NameEntry; readonly logged: number },
  ): void {
    const dropped = this.#namespaces.get(namespaceId);
    if (dropped === undefined) return;
    dropped.known = known;
    dropped.writesLogged = Math.max(dropped.writesLogged, logged);
  }

  /**
   * The name is gone durably, so the deletion has happened whatever becomes of the objects: while the store does not
   * answer they are asked for again, at last by the flush. `onEnded`: nobody is let into it any more; it may be called more than once.
   */
  #dropSoon(namespaceId: string, name: string, onEnded: () => void): Promise<void> {
    const { clock, logger } = this.#components;
    return keepDropping(clock, {
      drop: async () => {
        try {
          if (this.#namespaces.has(namespaceId)) await this.#dropNamespace(namespaceId, name);
        } finally {
          if (this.#namespaces.get(namespaceId)?.hasEnded !== false) onEnded();
        }
      },
      onFailure: (error) =>
        logger.error('objects of a deleted namespace are still there', {
          namespaceId,
          error: describeError(error),
        }),
      isOver: () => this.#log.draining,
    });
  }

  /**
   * Drops namespaces that were deleted together. Resolves when their objects are gone, or have had their time, and nobody is let into one of
   * them any more: whoever owns it may not have heard, and what it acknowledged until then would be lost.
   */
  async dropInTime(gone: readonly { readonly namespaceId: string; readonly name: string }[]): Promise<void> {
    const drops = gone.map(({ namespaceId, name }) => {
      let noteEnd = () => {};
      const ended = new Promise<void>((resolve) => {
        noteEnd = resolve;
      });
      return { ended, dropped: this.#dropSoon(namespaceId, name, noteEnd) };
    });
    const dropped = Promise.all(drops.map((each) => each.dropped));
    await settledWithin(this.#components.clock, dropped, dropWaitMs);
    await Promise.all(drops.map(({ ended }) => ended));
  }

  /** Drops all that there is at this moment. */
  async dropAll(): Promise<void> {
    for (const [namespaceId, { name }] of [...this.#namespaces]) await this.#dropNamespace(namespaceId, name);
    await this.#dropClaims([...this.#claims]);
  }

  /**
   * Step 2 of a deleted tenant's end (tenant-life.ts). False where the process ends before it is done: what is left is then the next one's, for the
   * log still holds the event.
   */
  async dropTenant(): Promise<boolean> {
    const { directory } = this.#components;
    const { tenantId } = this.#log;
    // Once more: the thread of the actor that took the event may have ended before the fronts had heard.
    await directory.forget(tenantId);
    const { state } = this.#log;
    const names = [...state.names]
      .filter(([, { linked }]) => linked?.follows !== true)
      .map(([name, { namespaceId }]) => ({ name, namespaceId }));
    const isDone = await dropEach(names, async ({ name, namespaceId }) => {
      if (this.#log.draining || this.#log.closed) return false;
      await directory.drop(tenantId, name, namespaceId);
      return true;
    });
    if (!isDone) return false;
    await this.#dropClaims([...state.keys.values()].map(({ digest }) => digest));
    await this.#components.store.delete(paths.tenantConnections(tenantId));
    await this.#components.store.delete(paths.tenantBilling(tenantId));
    return true;
  }

  /** Throws 503 where another server may still write to a deleted namespace of this name: what follows it must not begin before. */
  refuseEnding(name: string): void {
    if (this.#components.evidence === null) return;
    for (const dropped of this.#namespaces.values())
      if (dropped.name === name && !dropped.hasEnded)
        throw new ApiError(
          'unavailable',
          `"${name}" was deleted and has not ended yet; nothing was written`,
          {
            retryAfter: 1,
          },
        );
  }

  async #dropNamespace(namespaceId: string, name: string): Promise<void> {
    try {
      await this.#components.directory.drop(this.#log.tenantId, name, namespaceId);
    } catch (error) {
      const dropped = this.#namespaces.get(namespaceId);
      if (dropped !== undefined && error instanceof NotErasedYet) dropped.hasEnded = true;
      throw error;
    }
    this.#namespaces.delete(namespaceId);
  }

  async #dropClaims(digests: readonly string[]): Promise<void> {
    if (digests.length === 0) return;
    await deleteKeyClaims(this.#components.store, digests);
    for (const digest of digests) this.#claims.delete(digest);
  }
}
