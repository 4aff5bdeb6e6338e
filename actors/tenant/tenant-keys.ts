import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { ConnectionUse, KeyStanding } from '../../protocol/messages.ts';
import type { KeyLimitsRecord, KeyRecord } from '../../protocol/stored-tenant.ts';
import { makeApiKey } from '../../src/accounts/api-keys.ts';
import { writeKeyClaim } from '../../src/accounts/key-claim.ts';
import { periodOf } from '../../src/accounts/usage.ts';
import { randomId48 } from '../../src/base/random.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Remembering } from './idempotent-requests.ts';
import { deleteKeyClaims } from './remove-tenant.ts';
import type { TenantLife } from './tenant-life.ts';
import type { TenantLog } from './tenant-log.ts';
import { patternsOf } from './tenant-state.ts';
import { keyUse } from './tenant-usage.ts';

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

export interface MadeKey {
  readonly key: string;
  readonly record: KeyRecord;
}

interface AskedFor {
  readonly keys: number;
  readonly namespaces: readonly string[];
}

/** The API keys of a tenant. */
export class TenantKeys {
  readonly #components: Components;
  readonly #parts: KeysParts;
  /** What requests under way ask for, which is not in the state yet. */
  readonly #asked = new Set<AskedFor>();
  /** How many `endAll` are under way, and how many there were. */
  #ending = 0;
  #endings = 0;

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

  /** What the connections of MCP clients have used: all use that is no key's. */
  connectionUse(): ConnectionUse[] {
    const ids = [...this.#parts.log.state.usage.keys.keys()].filter((id) => !this.#keys.has(id));
    return ids.map((id) => ({ id, lastUsedAt: this.use(id).lastUsedAt }));
  }

  /** Forgotten by every front when it resolves, and the use of those that ended durably so. */
  async forgetConnections(ids: readonly number[]): Promise<void> {
    const { log, life } = this.#parts;
    const known = ids.filter((id) => log.state.usage.keys.has(id) && !this.#keys.has(id));
    if (known.length === 0 || life.isGone) return this.#components.directory.forget(log.tenantId);
    await log.confirmed(log.appendAndForget({ kind: 'connections-ended', ids: known }));
  }

  async create(request: NewKeyRequest, remembering: Remembering<MadeKey> | null = null): Promise<MadeKey> {
    this.#parts.life.refuseLeaving();
    const { namespaces } = request;
    return this.#withinBounds({ keys: 1, namespaces }, null, () => this.#create(request, remembering));
  }

  async #create(request: NewKeyRequest, remembering: Remembering<MadeKey> | null): Promise<MadeKey> {
    const { log } = this.#parts;
    const { store, clock, random } = this.#components;
    const made = makeApiKey(random);
    const record: KeyRecord = {
      ...request,
      id: randomId48(random),
      prefix: made.prefix,
      digest: made.digest,
      createdAt: new Date(clock.now()).toISOString(),
    };
    const answered = { key: made.key, record };
    this.#refuseWhileEnding(this.#endings);
    const endings = this.#endings;
    // The claim comes first: a claim without its key leads nowhere, a key without its claim could never be revoked.
    const claim = { tenantId: log.tenantId as TenantId, keyId: record.id as KeyId };
    await writeKeyClaim(store, clock, made.digest, claim);
    try {
      this.#refuseWhileEnding(endings);
    } catch (error) {
      await deleteKeyClaims(store, [made.digest]).catch(() => {});
      throw error;
    }
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
  async replaceLimits(keyId: number, changed: KeyLimitsRecord): Promise<void> {
    const { log } = this.#parts;
    const known = this.#keys.get(keyId);
    if (known === undefined) throw noSuchKey();
    await this.#withinBounds({ keys: 0, namespaces: changed.namespaces }, known, () =>
      log.confirmed(log.appendAndForget({ kind: 'key-limits', keyId, limits: changed })),
    );
  }

  /** `replaced`: a key whose patterns go with it. Throws 409 where there would be too many keys, 422 where patterns. */
  async #withinBounds<T>(asked: AskedFor, replaced: KeyRecord | null, work: () => Promise<T>): Promise<T> {
    const all = [...this.#asked, asked];
    const patterns = patternsOf(this.#keys.values()) + patternsOf(all) - (replaced?.namespaces.length ?? 0);
    const keys = all.reduce((sum, { keys }) => sum + keys, this.#keys.size);
    if (asked.keys > 0 && keys > limits.keysOfTenantMax) {
      const sentence = `a tenant has at most ${limits.keysOfTenantMax} API keys: revoke some that are not used any more`;
      throw new ApiError('conflict', sentence);
    }
    if (asked.namespaces.length > 0 && patterns > limits.keyPatternsOfTenantMax) {
      const sentence = `the keys of a tenant have at most ${limits.keyPatternsOfTenantMax} names and patterns together: use a prefix, or revoke some keys`;
      throw new ApiError('invalid', `namespaces: ${sentence}`, { fields: { namespaces: sentence } });
    }
    this.#asked.add(asked);
    try {
      return await work();
    } finally {
      this.#asked.delete(asked);
    }
  }

  /**
   * Ends all keys, or those that a person made: durable and forgotten by every front when it resolves. Keys whose making was
   * begun before that, perhaps by one that ends, are refused: otherwise one could make its successor while it ends.
   */
  async endAll(madeBy: number | null): Promise<void> {
    const { log, life } = this.#parts;
    if (life.isGone) return;
    this.#ending += 1;
    this.#endings += 1;
    try {
      await log.confirmed(log.appendAndForget({ kind: 'keys-ended', madeBy }));
    } finally {
      this.#ending -= 1;
    }
  }

  #refuseWhileEnding(endings: number): void {
    if (this.#ending === 0 && this.#endings === endings) return;
    const sentence = 'keys of this tenant are being ended; no key was made: try again';
    throw new ApiError('unavailable', sentence, { retryAfter: 1 });
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
