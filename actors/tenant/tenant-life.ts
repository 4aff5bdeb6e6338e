import { ApiError } from '../../protocol/errors.ts';
import type { BillingChange } from '../../protocol/messages.ts';
import type { KeyRecord, TenantRecord } from '../../protocol/stored-tenant.ts';
import { describeError } from '../../src/base/log.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import type { ActorComponents } from '../actor/components.ts';
import { dropWaitMs, keepDropping } from './keep-dropping.ts';
import type { TenantLog } from './tenant-log.ts';
import { isDeleting } from './tenant-state.ts';

type Components = Pick<ActorComponents, 'clock' | 'logger' | 'directory'>;

interface LifeParts {
  readonly log: TenantLog;
  /** Steps 2 and 3. */
  readonly flush: () => Promise<void>;
}

/**
 * A tenant's own beginning, status and end. One that is deleted goes in this order:
 *
 * 1. the event that says so is durable, and every front has forgotten the tenant: from here on it answers like one that never
 *    was, and takes no further event;
 * 2. the objects of its namespaces and the claims of its keys are deleted;
 * 3. its manifest becomes a remnant (`remnantOf`), and only then may the log forget the event.
 *
 * So after a crash anywhere between, the replay of the event opens its actor and has it flushed, which does the rest.
 */
export class TenantLife {
  readonly #components: Components;
  readonly #parts: LifeParts;
  /** The removal of this tenant, from the moment it was asked for. */
  #removal: Promise<void> | null = null;

  constructor(components: Components, parts: LifeParts) {
    this.#components = components;
    this.#parts = parts;
  }

  get #tenant(): TenantRecord | null {
    return this.#parts.log.state.tenant;
  }

  get #isDeleting(): boolean {
    return isDeleting(this.#parts.log.state);
  }

  /** Creating the same tenant again is success. */
  async create(tenant: TenantRecord, firstKey: KeyRecord | null): Promise<void> {
    const { log } = this.#parts;
    if (this.#tenant !== null) return;
    await log.confirmed(log.append({ kind: 'tenant-created', tenant, firstKey }));
  }

  /** Durable and known to every front when it resolves. */
  async verifyOwner(): Promise<void> {
    const { log } = this.#parts;
    // Whoever verifies an address tells all the tenants of a list, in which one that is deleted stays until the end.
    await this.#removal?.catch(() => {});
    if (this.#tenant === null || this.#isDeleting || this.#tenant.ownerVerified) return;
    await log.confirmed(log.appendAndForget({ kind: 'owner-verified' }));
  }

  /** Durable and known to every front when it resolves. Nobody comes back from `deleting`. */
  async setStatus(status: TenantRecord['status']): Promise<void> {
    const { log } = this.#parts;
    if (this.#tenant === null) throw noSuchTenant();
    if (status === 'deleting') return this.#remove();
    this.refuseLeaving();
    if (this.#tenant.status === status) return this.#components.directory.forget(log.tenantId);
    await log.confirmed(log.appendAndForget({ kind: 'tenant-status', status }));
  }

  /**
   * Takes what follows from the subscription, unless something newer is known: durable, and known to every front, when it resolves.
   * A tenant that is gone hears nothing.
   */
  async setBilling({ plan, status, billing }: BillingChange): Promise<void> {
    const { log } = this.#parts;
    if (this.#tenant === null) throw noSuchTenant();
    this.refuseLeaving();
    const known = this.#tenant.billing?.version ?? 0;
    if (billing.version <= known) return this.#components.directory.forget(log.tenantId);
    await log.confirmed(log.appendAndForget({ kind: 'tenant-billing', plan, status, billing }));
  }

  /** Whether its end was asked for and may be durable soon. */
  get isLeaving(): boolean {
    return this.#removal !== null && !this.#isDeleting;
  }

  /** Whether there is no such tenant, or none any more: its end was asked for or has come. */
  get isGone(): boolean {
    return this.#tenant === null || this.#isDeleting || this.#removal !== null;
  }

  /** Its end is its last event: what came after it would be lost with all the rest. */
  refuseLeaving(): void {
    if (this.#isDeleting) throw noSuchTenant();
    if (this.#removal !== null) throw new ApiError('conflict', 'the tenant is being deleted');
  }

  /** Resolves when it is gone durably, and mostly with all its objects: those that are left go as soon as they can. */
  async #remove(): Promise<void> {
    const { log } = this.#parts;
    const { clock, directory } = this.#components;
    // The thread of the actor that began it may have ended before the fronts had heard.
    if (this.#isDeleting && this.#removal === null) return directory.forget(log.tenantId);
    this.#removal ??= log.appendAndForget({ kind: 'tenant-status', status: 'deleting' }).then(
      async () => {
        await settledWithin(clock, this.#flushSoon(), dropWaitMs);
      },
      (error: unknown) => {
        this.#removal = null;
        throw error;
      },
    );
    await log.confirmed(this.#removal);
  }

  #flushSoon(): Promise<void> {
    const { clock, logger } = this.#components;
    const { log, flush } = this.#parts;
    return keepDropping(clock, {
      drop: flush,
      onFailure: (error) =>
        logger.error('a deleted tenant has objects that are still there', {
          tenantId: log.tenantId,
          error: describeError(error),
        }),
      isOver: () => log.draining || log.closed,
    });
  }
}

function noSuchTenant(): ApiError {
  return new ApiError('not_found', 'there is no such tenant');
}
