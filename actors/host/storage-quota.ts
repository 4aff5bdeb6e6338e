import { ApiError } from '../../protocol/errors.ts';
import { LruMap } from '../../src/base/lru.ts';
import type { ActorComponents } from '../actor/components.ts';

interface Known {
  readonly askedAtMs: number;
  bytes: number;
  /** The last that asked found no room, so that there may be some bytes left that nobody can use. */
  refused: boolean;
}

const askEveryMs = 1_000;
/** Tenants that write through one thread at a time; of a forgotten one the tenant is asked again. */
const tenantsMax = 10_000;

/**
 * Whether a tenant may store more. What it stores is its actor's to know, from what its namespaces report; a thread asks
 * at most once in `askEveryMs` and adds what it has let in itself since.
 *
 * So a tenant may pass its quota by what it writes in the time between a write and its being known: the report takes up
 * to 300 ms, the answer is up to a second old, on each thread. Refusing exactly would cost every write a call to
 * another actor, and the overshoot is deleted or paid for like everything else that is stored. One write alone cannot pass it.
 */
export class StorageQuota {
  readonly #components: Pick<ActorComponents, 'clock' | 'directory'>;
  readonly #known = new LruMap<number, Known>(tenantsMax);

  constructor(components: Pick<ActorComponents, 'clock' | 'directory'>) {
    this.#components = components;
  }

  /** Throws 507 `quota_full` where the tenant's quota has no room for so many bytes, or for any. Null is no quota. */
  async admit(tenantId: number, quotaBytes: number | null, writeBytes: number): Promise<void> {
    if (quotaBytes === null) return;
    const known = await this.#ask(tenantId);
    const isFull = known.bytes >= quotaBytes;
    known.refused = isFull || known.bytes + writeBytes > quotaBytes;
    if (known.refused) throw quotaFull(quotaBytes, isFull ? null : writeBytes);
    known.bytes += writeBytes;
  }

  /** Whether the tenant had no room left when it was last asked about. */
  isFull(tenantId: number, quotaBytes: number | null): boolean {
    const known = this.#known.get(tenantId);
    return quotaBytes !== null && known !== undefined && (known.refused || known.bytes >= quotaBytes);
  }

  async #ask(tenantId: number): Promise<Known> {
    const { clock, directory } = this.#components;
    const known = this.#known.get(tenantId);
    if (known !== undefined && clock.monotonic() - known.askedAtMs < askEveryMs) return known;
    const askedAtMs = clock.monotonic();
    const bytes = await directory.storedBytes(tenantId);
    const fresh = { askedAtMs, bytes, refused: known?.refused ?? false };
    this.#known.set(tenantId, fresh);
    return fresh;
  }
}

/** `writeBytes`: of a write that does not fit; null where nothing would. */
function quotaFull(quotaBytes: number, writeBytes: number | null): ApiError {
  const reason =
    writeBytes === null ? 'is used up' : `has no room left for the ${writeBytes} bytes of this request`;
  return new ApiError(
    'quota_full',
    `the storage quota of ${quotaBytes} bytes ${reason}; nothing was written: delete data or upgrade`,
  );
}
