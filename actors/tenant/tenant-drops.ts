import type { NameEntry, TenantEvent } from '../../protocol/stored-tenant.ts';
import { describeError } from '../../src/base/log.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import { keepDropping } from './keep-dropping.ts';
import { deleteKeyClaims, dropEach } from './remove-tenant.ts';
import type { TenantLog } from './tenant-log.ts';
import { entryOf, keysThatEnd, linksAt } from './tenant-state.ts';

type Components = Pick<ActorComponents, 'store' | 'clock' | 'logger' | 'directory'>;

interface DroppedNamespace {
  readonly name: string;
  /** What of its writes is metered. */
  known: NameEntry;
  /** How many of them a replay of the tenant's log would meter: the tenant may have heard of more, between two events. */
  writesLogged: number;
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
      this.#namespaces.set(linkId, { name: link, known: entry, writesLogged: entry.writes });
    // A link that follows has no objects.
    if (gone.linked?.follows === true) return;
    this.#namespaces.set(namespaceId, {
      name,
      known: gone.writes < taken.writes ? { ...gone, ...taken } : gone,
      writesLogged: taken.writes,
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
   * answer they are asked for again, at last by the flush.
   */
  dropSoon(namespaceId: string, name: string): Promise<void> {
    const { clock, logger } = this.#components;
    return keepDropping(clock, {
      drop: async () => {
        if (this.#namespaces.has(namespaceId)) await this.#dropNamespace(namespaceId, name);
      },
      onFailure: (error) =>
        logger.error('objects of a deleted namespace are still there', {
          namespaceId,
          error: describeError(error),
        }),
      isOver: () => this.#log.draining,
    });
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

  async #dropNamespace(namespaceId: string, name: string): Promise<void> {
    await this.#components.directory.drop(this.#log.tenantId, name, namespaceId);
    this.#namespaces.delete(namespaceId);
  }

  async #dropClaims(digests: readonly string[]): Promise<void> {
    if (digests.length === 0) return;
    await deleteKeyClaims(this.#components.store, digests);
    for (const digest of digests) this.#claims.delete(digest);
  }
}
