import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { TenantStanding } from '../../protocol/messages.ts';
import type { KeyUseNote, UsageCounters, UsageNote } from '../../protocol/stored-tenant.ts';
import { dayOf } from '../accounts/usage.ts';
import type { Principal } from '../auth/principal.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';

export interface UsageMeterComponents {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Resolves when the notes are durable. */
  readonly tell: (tenantId: number, notes: readonly UsageNote[]) => Promise<TenantStanding | null>;
  readonly learn: (standing: TenantStanding) => void;
}

type Counted = Partial<{ -readonly [Name in keyof UsageCounters]: number }>;
type CountedKey = { -readonly [Name in keyof KeyUseNote]: KeyUseNote[Name] };

interface OpenNote {
  readonly day: string;
  readonly counters: Counted;
  readonly keys: Map<number, CountedKey>;
}

interface Pending {
  notes: OpenNote[];
  telling: Promise<void> | null;
}

/** How often usage is told: with what the log takes until it is durable, less than the second that a crash may lose. */
export const tellEveryMs = 700;
/** When a key was used last is all that such requests leave behind: it need not cost a log object a second. */
export const tellTouchedEveryMs = 60_000;

const dayMs = 86_400_000;

/**
 * Counts what answers have used, by tenant, UTC day and key, and tells the tenants' actors so often, who have it
 * written to the log. A crash loses what was not told: a second's queries at most, in the customer's favour. What may
 * have been told is never told again, so nothing counts twice. Writes are metered where they are applied; of them a front
 * tells only which key was used.
 */
export class UsageMeter {
  readonly #components: UsageMeterComponents;
  readonly #tenants = new Map<number, Pending>();
  #today = '';
  #todayEndsAt = 0;
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel = () => {};

  constructor(components: UsageMeterComponents) {
    this.#components = components;
  }

  /**
   * Counts an answer. `used`: what is metered of it, besides the writes, which `keyUse` counts for its key alone. A connection's
   * use is counted as a key's is.
   */
  count(
    { tenantId, keyId: apiKeyId, connectionId }: Principal,
    used: Counted | null,
    keyUse: { readonly queries: number; readonly writes: number },
  ): void {
    const nowMs = this.#components.clock.now();
    const note = this.#note(tenantId, nowMs);
    if (used !== null) addTo(note.counters, used);
    const keyId = apiKeyId ?? connectionId;
    if (keyId !== null) {
      const key = keyOf(note, keyId);
      key.queries += keyUse.queries;
      key.writes += keyUse.writes;
      key.lastUsedAt = nowMs;
    }
    this.#arm(used !== null || keyUse.writes > 0 ? tellEveryMs : tellTouchedEveryMs);
  }

  /** Tells what was counted of one tenant, or of all. Resolves when it is durable, or cannot be. */
  async flush(tenantId?: number): Promise<void> {
    const all = tenantId === undefined ? [...this.#tenants.keys()] : [tenantId];
    await Promise.all(all.map((each) => this.#flushed(each)));
  }

  async #flushed(tenantId: number): Promise<void> {
    await this.#tenants.get(tenantId)?.telling;
    await this.#tell(tenantId);
  }

  #arm(inMs: number): void {
    const { clock, logger } = this.#components;
    const dueAt = clock.monotonic() + inMs;
    if (dueAt >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = dueAt;
    this.#cancel = clock.after(inMs, () => {
      this.#dueAt = Number.POSITIVE_INFINITY;
      for (const tenantId of this.#tenants.keys()) {
        this.#tell(tenantId).catch((error: unknown) =>
          logger.error('usage could not be told', { tenantId, error: describeError(error) }),
        );
      }
    });
  }

  #tell(tenantId: number): Promise<void> {
    const pending = this.#tenants.get(tenantId);
    if (pending === undefined) return Promise.resolve();
    pending.telling ??= this.#tellOnce(tenantId, pending).finally(() => {
      pending.telling = null;
      if (pending.notes.length === 0) this.#tenants.delete(tenantId);
    });
    return pending.telling;
  }

  async #tellOnce(tenantId: number, pending: Pending): Promise<void> {
    const { tell, learn, logger } = this.#components;
    const notes = pending.notes;
    if (notes.length === 0) return;
    pending.notes = [];
    try {
      const standing = await tell(
        tenantId,
        notes.map(({ day, counters, keys }) => ({ day, counters, keys: [...keys.values()] })),
      );
      if (standing !== null) learn(standing);
    } catch (error) {
      if (isNotWritten(error)) {
        pending.notes = merged(notes, pending.notes);
        this.#arm(tellEveryMs);
        return;
      }
      logger.error('usage may not have been counted', { tenantId, error: describeError(error) });
    }
  }

  #note(tenantId: number, nowMs: number): OpenNote {
    if (nowMs >= this.#todayEndsAt || nowMs < this.#todayEndsAt - dayMs) {
      this.#today = dayOf(nowMs);
      this.#todayEndsAt = (Math.floor(nowMs / dayMs) + 1) * dayMs;
    }
    let pending = this.#tenants.get(tenantId);
    if (pending === undefined) {
      pending = { notes: [], telling: null };
      this.#tenants.set(tenantId, pending);
    }
    const last = pending.notes.at(-1);
    if (last?.day === this.#today) return last;
    const note = { day: this.#today, counters: {}, keys: new Map<number, CountedKey>() };
    // Full only where the store has been away for long: what is not counted is the customer's gain.
    if (this.#tenants.size > limits.usageTenantsMax) this.#tenants.delete(tenantId);
    pending.notes.push(note);
    return note;
  }
}

function addTo(counters: Counted, used: Counted): void {
  for (const name in used) {
    const counter = name as keyof UsageCounters;
    counters[counter] = (counters[counter] ?? 0) + (used[counter] ?? 0);
  }
}

function keyOf({ keys }: OpenNote, keyId: number): CountedKey {
  let key = keys.get(keyId);
  if (key === undefined) {
    key = { keyId, queries: 0, writes: 0, lastUsedAt: 0 };
    keys.set(keyId, key);
  }
  return key;
}

/** Nothing of it is in the log: it is told again. Of everything else nobody knows. */
function isNotWritten(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'unavailable' || error.code === 'write_busy');
}

/** Joins notes that could not be told; where that lasts for days, the oldest are given up. */
function merged(older: readonly OpenNote[], newer: readonly OpenNote[]): OpenNote[] {
  const notes = [...older];
  for (const note of newer) {
    const same = notes.find(({ day }) => day === note.day);
    if (same === undefined) {
      notes.push(note);
      continue;
    }
    addTo(same.counters, note.counters);
    for (const [keyId, { queries, writes, lastUsedAt }] of note.keys) {
      const key = keyOf(same, keyId);
      key.queries += queries;
      key.writes += writes;
      key.lastUsedAt = Math.max(key.lastUsedAt, lastUsedAt);
    }
  }
  return notes.slice(-limits.usageNotesMax);
}
