import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, TenantId } from '../../protocol/ids.ts';
import type { KeyLimitsRecord, KeyRecord, KeyStanding } from '../../protocol/messages.ts';
import { makeApiKey } from '../../src/accounts/api-keys.ts';
import { writeKeyClaim } from '../../src/accounts/key-claim.ts';
import { periodOf } from '../../src/accounts/usage.ts';
import { randomId48 } from '../../src/base/random.ts';
import type { ActorComponents } from '../components.ts';
import type { Remembering } from './idempotent-requests.ts';
import { deleteKeyClaims } from './remove-tenant.ts';
import type { TenantLife } from './tenant-life.ts';
import type { TenantLog } from './tenant-log.ts';
import { keyUse } from './tenant-usage.ts';

/** The API keys of a tenant. */
type Components = Pick<ActorComponents, 'store' | 'clock' | 'random' | 'directory'>;

interface KeysParts {
  readonly log: TenantLog;
  readonly life: TenantLife;
}

export interface NewKeyRequest {
  readonly name: string;
  readonly scope: KeyRecord['scope'];
  readonly namespaces: readonly string[];
  readonly ratePerSecond: number | null;
  readonly capQueries: number | null;
  readonly capWrites: number | null;
  readonly createdBy: string;
  readonly personId: number;
}

export interface NewKey {
  readonly key: string;
  readonly record: KeyRecord;
}

export class TenantKeys {
  readonly #components: Components;
  readonly #parts: KeysParts;

  constructor(components: Components, parts: KeysParts) {
    this.#components = components;
    this.#parts = parts;
  }

  get #keys(): ReadonlyMap<number, KeyRecord> {
    return this.#parts.log.state.keys;
  }

  /** Newest first. */
  list(): KeyRecord[] {
    return [...this.#keys.values()]
      .reverse()
      .sort((a, b) => Number(a.createdAt < b.createdAt) - Number(a.createdAt > b.createdAt));
  }

  standing(keyId: number): KeyStanding | null {
    const key = this.#keys.get(keyId);
    if (key === undefined) return null;
    const { queries, writes } = this.use(keyId);
    const { month } = periodOf(this.#components.clock.now());
    return { ...key, month, usedQueries: queries, usedWrites: writes };
  }

  /** What a key has used of this period. */
  use(keyId: number): ReturnType<typeof keyUse> {
    return keyUse(this.#parts.log.state.usage, keyId, this.#components.clock.now());
  }

  async create(request: NewKeyRequest, remembering: Remembering<NewKey> | null = null): Promise<NewKey> {
    const { log, life } = this.#parts;
    const { store, clock, random } = this.#components;
    life.refuseLeaving();
    const made = makeApiKey(random);
    const record: KeyRecord = {
      ...request,
      id: randomId48(random),
      prefix: made.prefix,
      digest: made.digest,
      createdAt: new Date(clock.now()).toISOString(),
    };
    const answered = { key: made.key, record };
    // The claim comes first: a claim without its key leads nowhere, a key without its claim could never be revoked.
    const claim = { tenantId: log.tenantId as TenantId, keyId: record.id as KeyId };
    await writeKeyClaim(store, clock, made.digest, claim);
    const answer = remembering?.answer(answered) ?? null;
    const durable = log.append({ kind: 'key-created', key: record, answer }).catch(async (error: unknown) => {
      // Nothing was written: nobody would ever delete the claim, for no record names it.
      if (error instanceof ApiError) await deleteKeyClaims(store, [made.digest]).catch(() => {});
      throw error;
    });
    remembering?.run.holdUntil(durable);
    await log.confirmed(durable);
    return answered;
  }

  /** Durable and forgotten by every front when it resolves. */
  async replaceLimits(keyId: number, limits: KeyLimitsRecord): Promise<void> {
    const { log } = this.#parts;
    if (!this.#keys.has(keyId)) throw noSuchKey();
    await log.confirmed(log.appendAndForget({ kind: 'key-limits', keyId, limits }));
  }

  /** Durable and forgotten by every front when it resolves. */
  async revoke(keyId: number): Promise<void> {
    const { log } = this.#parts;
    if (!this.#keys.has(keyId)) {
      // The thread of the actor that revoked it may have ended before the fronts had heard.
      await this.#components.directory.forget(log.tenantId);
      throw noSuchKey();
    }
    await log.confirmed(log.appendAndForget({ kind: 'key-revoked', keyId }));
  }
}

function noSuchKey(): ApiError {
  return new ApiError('not_found', 'there is no such key');
}
