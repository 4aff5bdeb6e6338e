import { ApiError } from '../../protocol/errors.ts';
import type { TenantEvent } from '../../protocol/stored-tenant.ts';
import { assert, DataError } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import { Serial } from '../../src/base/serial.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ActorComponents, isGoneLog, refuseNewerOwner } from '../actor/components.ts';
import { confirmedInTime } from '../log/confirmed-in-time.ts';
import { isNotWritten, type LogClient } from '../log/log-client.ts';
import type { LogPosition, ReplayedRecord } from '../log/replay.ts';
import { isApplied, type LogWatermark } from '../storage/manifest.ts';
import { ActorClosed, type Committed, commit, loadCommitted } from '../storage/manifest-store.ts';
import { MemoryAccount } from '../thread/memory-budget.ts';
import { resealSecrets } from './reseal.ts';
import { answerBytes } from './stored-answers.ts';
import {
  applyTenantEvent,
  copyOfState,
  decodeTenantEvent,
  emptyTenant,
  encodeTenantEvent,
  patternsOf,
  remnantOf,
  type TenantManifest,
  type TenantState,
  tenantManifestCodec,
} from './tenant-state.ts';

type Components = Pick<
  ActorComponents,
  'store' | 'clock' | 'random' | 'log' | 'memory' | 'directory' | 'ownership' | 'keyEncryptionKeys'
>;

/** What the tenant's other parts have to say about an event. */
export interface EventHooks {
  /** Throws where the tenant takes no further event. */
  refuse(): void;
  /** Called when an event is durable, just before it changes the state: what it deletes is still known there. */
  applying(event: TenantEvent): void;
}

/** Resident bytes of the actor, of a key or an answer without what may be long of it, of a pattern, and of a name, with what holds them. Measured like those of a namespace. */
const openTenantBytes = 4_000;
const keyBytes = 900;
const patternBytes = 90;
const nameBytes = 500;

/**
 * The durable half of one tenant: its state, the events that change it, and its manifest. Every change is an event in the log;
 * it is applied once durable, in log order.
 */
export class TenantLog {
  readonly tenantId: number;
  readonly #components: Components;
  readonly #hooks: EventHooks;
  readonly #applies = new Serial();
  readonly #applied = new Map<string, LogWatermark>();
  #state: TenantState = emptyTenant();
  #committed: Committed<TenantManifest> | null = null;
  #submittedVersion = 0;
  /** Higher than those of every earlier actor of this tenant, whose last one the log may have refused. */
  #epoch: number;
  #closed = false;
  #draining = false;
  #unflushed = false;
  readonly #account: MemoryAccount;

  constructor(components: Components, tenantId: number, hooks: EventHooks) {
    this.#components = components;
    this.#account = new MemoryAccount(components.memory);
    this.tenantId = tenantId;
    this.#hooks = hooks;
    this.#epoch = Math.floor(components.clock.now() * 1_000);
  }

  /** `load` and `bury` put another object in its place, so nobody keeps it. */
  get state(): TenantState {
    return this.#state;
  }

  /** Whether its manifest contains all events that it knows. */
  get isFlushed(): boolean {
    return !this.#unflushed;
  }

  /** Whether every event that was given has been applied or refused. */
  get isIdle(): boolean {
    return this.#applies.waiting === 0;
  }

  /** Whether another one must be opened in its place: its state is not that of the log or the store any more. */
  get closed(): boolean {
    return this.#closed;
  }

  get draining(): boolean {
    return this.#draining;
  }

  get residentBytes(): number {
    return this.#account.bytes;
  }

  /** Reads the manifest, where there is one. Call it once, before `replay`. */
  async load(): Promise<void> {
    this.#committed = await loadCommitted(
      this.#components.store,
      paths.tenantManifest(this.tenantId),
      tenantManifestCodec,
    );
    if (this.#committed === null) return;
    refuseNewerOwner(this.#components, this.#committed.value.owner);
    this.#adopt(this.#committed.value);
  }

  #adopt(manifest: TenantManifest): void {
    this.#state = copyOfState(manifest.state);
    for (const [logId, watermark] of manifest.applied)
      if (!isGoneLog(this.#components, manifest.owner, logId)) this.#applied.set(logId, watermark);
  }

  /**
   * What the log has beyond the manifest. Call once, before anything is appended. Throws `DataError` where there is no manifest
   * and the log's first record is not the tenant's first.
   */
  replay(records: readonly ReplayedRecord[]): void {
    const [first] = records;
    if (this.#committed === null && first !== undefined && first.head.version !== 1)
      throw new DataError(paths.tenantManifest(this.tenantId), 0, 'the manifest is missing');
    for (const record of records) this.#replay(record);
    this.#submittedVersion = this.#state.version;
    this.#measure();
  }

  #replay(record: ReplayedRecord): void {
    const { head, position, payload, damage } = record;
    this.#unflushed = true;
    // A log that the view has forgotten since its records came is done: its watermark is still in the manifest, and nowhere else.
    const isFlushed = this.#committed !== null && isApplied(this.#committed.value, position);
    if (isFlushed || isApplied({ applied: this.#applied }, position)) return;
    if (damage !== undefined) throw damage;
    const place = `${paths.logObject(position.logId, position.slot)}, record ${position.index}`;
    this.#apply(decodeTenantEvent(payload, place), head.version, position);
  }

  /** Resolves once the event is durable and applied. */
  async append(event: TenantEvent, options?: Parameters<LogClient['append']>[3]): Promise<void> {
    if (this.#closed) throw new ActorClosed(`the actor of tenant ${this.tenantId} has closed`);
    this.#hooks.refuse();
    const epoch = this.#epoch;
    const version = ++this.#submittedVersion;
    const head = {
      tenantId: this.tenantId,
      namespace: '',
      namespaceId: '',
      version,
      blob: null,
      detail: null,
    };
    const durable = this.#components.log.append(head, encodeTenantEvent(event), epoch, options);
    durable.catch(() => {});
    return this.#applies.run(async () => {
      try {
        this.#apply(event, version, await durable);
        // These come every second, and next to nothing of them stays.
        if (event.kind !== 'usage-noted' && event.kind !== 'namespace-reported') this.#measure();
      } catch (error) {
        if (!isNotWritten(error)) {
          this.close();
          throw error;
        }
        if (epoch === this.#epoch) {
          this.#epoch++;
          this.#submittedVersion = this.#state.version;
        }
        throw error.refusal === 'busy'
          ? new ApiError('write_busy', 'the log has no room; nothing was written', { retryAfter: 1 })
          : new ApiError('unavailable', 'the log could not take this change; nothing was written', {
              retryAfter: 1,
            });
      }
    });
  }

  /** Fronts forget also where the client was told by then that nobody knows: a revoked key must not live on in a cache. */
  appendAndForget(event: TenantEvent): Promise<void> {
    return this.append(event).then(() => this.#components.directory.forget(this.tenantId));
  }

  /** Waits for work for as long as a client does. Throws 503 `write_unknown` after that; the work goes on. */
  confirmed<T>(work: Promise<T>): Promise<T> {
    return confirmedInTime(this.#components.clock, work);
  }

  /** Applies a durable event. Asserts that none was left out, and that each is applied once, in the order of its log. */
  #apply(event: TenantEvent, version: number, position: LogPosition): void {
    const { logId, slot, index } = position;
    const before = this.#state.version;
    assert(version === before + 1, () => `event ${version} of tenant ${this.tenantId} follows ${before}`);
    const isAgain = isApplied({ applied: this.#applied }, position);
    assert(!isAgain, () => `event ${slot}/${index} of log ${logId} is applied again`);
    this.#hooks.applying(event);
    applyTenantEvent(this.#state, event);
    this.#applied.set(logId, { slot, index });
    this.#unflushed = true;
  }

  #measure(): void {
    const { keys, names, providerKeys, answers } = this.#state;
    // The manifest is kept for the next commit, with maps of its own.
    const keyCount = keys.size + providerKeys.size + answers.size;
    const long = patternsOf(keys.values()) * patternBytes + answerBytes(answers);
    this.#account.set('tenants', openTenantBytes + keyCount * keyBytes + long + names.size * nameBytes);
  }

  /** Puts the state of this moment into the manifest, and tells the log how far that reaches. One at a time. */
  async commit(): Promise<void> {
    this.#unflushed = false;
    const { log, random, ownership, keyEncryptionKeys: keys } = this.#components;
    resealSecrets(this.#state, { tenantId: this.tenantId, keys, random });
    const applied = new Map(this.#applied);
    const next: TenantManifest = {
      version: (this.#committed?.value.version ?? 0) + 1,
      nonce: randomHex(random, 16),
      owner: { logId: log.logId, view: ownership.placement },
      applied,
      state: copyOfState(this.#state),
    };
    const key = paths.tenantManifest(this.tenantId);
    try {
      this.#committed = await commit(this.#components, tenantManifestCodec, {
        key,
        next,
        current: this.#committed,
      });
    } catch (error) {
      // Another process, or the actor before this one, has flushed since this one was opened.
      this.#unflushed = true;
      this.close();
      throw error;
    }
    for (const [logId, { slot, index }] of applied) {
      log.flushed({ tenantId: this.tenantId, namespaceId: '' }, { logId, slot, index });
    }
  }

  /** Replaces the state of a deleted tenant by its remnant. */
  bury(): void {
    this.#state = remnantOf(this.#state);
    this.#measure();
  }

  /** Resolves when all that was appended is applied or refused. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#applies.whenIdle();
  }

  close(): void {
    this.#closed = true;
    this.#account.release();
  }
}
