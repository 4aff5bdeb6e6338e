import type { MeteredUsage } from '../../protocol/messages.ts';
import type { TenantEvent } from '../../protocol/stored-tenant.ts';
import { Serial } from '../../src/base/serial.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import { EmbeddingKeys } from './embedding-keys.ts';
import { FrontRequests } from './front-requests.ts';
import { IdempotentRequests } from './idempotent-requests.ts';
import { TenantAccount } from './tenant-account.ts';
import { TenantDrops } from './tenant-drops.ts';
import { TenantKeys } from './tenant-keys.ts';
import { TenantLedger } from './tenant-ledger.ts';
import { TenantLife } from './tenant-life.ts';
import { TenantLinks } from './tenant-links.ts';
import { TenantLog } from './tenant-log.ts';
import { TenantNames } from './tenant-names.ts';
import { isDeleting } from './tenant-state.ts';

/**
 * One tenant, one writer: its parts over one log. They change the tenant by events that they append there, and what is no
 * event, the ledger, is kept by a flush.
 */
export class TenantActor {
  readonly #log: TenantLog;
  readonly #drops: TenantDrops;
  readonly #flushes = new Serial();
  readonly life: TenantLife;
  readonly keys: TenantKeys;
  readonly embeddingKeys: EmbeddingKeys;
  readonly names: TenantNames;
  readonly links: TenantLinks;
  readonly ledger: TenantLedger;
  readonly account: TenantAccount;
  /** Requests that may be repeated. */
  readonly requests: IdempotentRequests;
  readonly frontRequests: FrontRequests;

  private constructor(components: ActorComponents, tenantId: number) {
    const log = new TenantLog(components, tenantId, {
      refuse: () => this.life.refuseLeaving(),
      applying: (event) => this.#applying(event),
    });
    const flush = () => this.flush();
    const drops = new TenantDrops(components, log);
    const life = new TenantLife(components, { log, flush });
    const ledger = new TenantLedger(components, { log, drops });
    const account = new TenantAccount(components, { log, ledger, life });
    const requests = new IdempotentRequests(components, { tenantId, answers: () => log.state.answers });
    this.#log = log;
    this.#drops = drops;
    this.life = life;
    this.keys = new TenantKeys(components, { log, life });
    this.embeddingKeys = new EmbeddingKeys(components, log);
    this.names = new TenantNames(components, { log, drops, account });
    this.links = new TenantLinks(components, { log, names: this.names });
    this.ledger = ledger;
    this.account = account;
    this.requests = requests;
    this.frontRequests = new FrontRequests({ log, requests });
  }

  /** Opens a tenant from its manifest and what was replayed; a tenant without either does not exist (yet). */
  static async open(
    components: ActorComponents,
    tenantId: number,
    replayed: readonly ReplayedRecord[],
  ): Promise<TenantActor> {
    const actor = new TenantActor(components, tenantId);
    await actor.#log.load();
    actor.ledger.sumUp();
    actor.#log.replay(replayed);
    return actor;
  }

  #applying(event: TenantEvent): void {
    this.ledger.applying(event);
    this.#drops.applying(event);
    this.names.changed();
  }

  /** Whether nothing is under way in it. */
  get isIdle(): boolean {
    return this.#log.isIdle && this.#flushes.waiting === 0;
  }

  /** Whether its manifest contains all that it knows. */
  get isFlushed(): boolean {
    return this.#log.isFlushed && this.ledger.isFlushed;
  }

  get residentBytes(): number {
    return this.#log.residentBytes;
  }

  /** A flush alone gives nothing back. */
  readonly flushableBytes = 0;

  /** Whether another one must be opened in its place: its state is not that of the log or the store any more. */
  get closed(): boolean {
    return this.#log.closed;
  }

  /**
   * Puts everything applied into the manifest, and tells the log. Not before the objects of deleted namespaces are
   * deleted: once the log has forgotten the deletion, nothing would lead to them.
   */
  flush(): Promise<void> {
    return this.#flushes.run(async () => {
      if (!(await this.#dropAll()) || this.isFlushed || this.closed) return;
      this.ledger.committing();
      await this.#log.commit();
    });
  }

  /** False where the process ends before it is done. */
  async #dropAll(): Promise<boolean> {
    // Until there is none: what is deleted meanwhile would be in this manifest too.
    while (!this.#drops.isEmpty) await this.#drops.dropAll();
    return !isDeleting(this.#log.state) || this.#dropTenant();
  }

  /** False where the process ends before it is done. */
  async #dropTenant(): Promise<boolean> {
    if (!(await this.#drops.dropTenant())) return false;
    this.#log.bury();
    this.names.changed();
    this.ledger.sumUp();
    return true;
  }

  /**
   * What is metered until now, once its manifest has it; null where there is no such tenant. The manifest is written also where
   * no event is new: what is stored is counted all the time.
   */
  meteredUsage(): Promise<MeteredUsage | null> {
    return this.#flushes.run(async () => {
      if (this.life.isGone || !(await this.#dropAll())) return null;
      if (this.closed) throw new ActorClosed(`the actor of tenant ${this.#log.tenantId} has closed`);
      const { usage, nowMs: untilMs } = this.account.usage();
      const days = [...usage.days];
      this.ledger.committing();
      await this.#log.commit();
      return { untilMs, days };
    });
  }

  async drain(): Promise<void> {
    await this.#log.drain();
    await this.flush();
  }

  /** Closes the actor: it takes no further work, and the next one begins from its manifest. */
  close(): void {
    this.#log.close();
  }
}
