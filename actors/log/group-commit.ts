import { type FlowLimits, limits } from '../../protocol/limits.ts';
import { type Owners, placementKey } from '../../protocol/placement.ts';
import type { LogIdentity } from '../../protocol/worker-tasks.ts';
import { assert } from '../../src/base/assert.ts';
import { ByteGate, type Hold } from '../../src/base/byte-gate.ts';
import { type Moment, momentOf, noMoment } from '../../src/base/clock.ts';
import { xxh64 } from '../../src/base/hash.ts';
import { isOwn } from '../../src/base/owners.ts';
import { randomHex } from '../../src/base/random.ts';
import type { Share } from '../../src/base/share.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeLogObject, encodeLogObject, type RecordHead } from '../../src/stored/log-object.ts';
import { appendToSlot } from './append.ts';
import { uploadBlob } from './blob.ts';
import { EarlyGroups } from './early-groups.ts';
import type { LogComponents } from './log-components.ts';
import { RecordQueue } from './record-queue.ts';
import type { LogPosition } from './replay.ts';
import { targetKey } from './unflushed.ts';

/**
 * Group commit: records of all tenants of this server share one PUT.
 *
 * 1. A record joins the queue; one over the inline limit is uploaded as a blob first, and later records of the same
 *    target wait behind it, because a target's records enter the log in the order in which they were submitted.
 *    The queue holds a bounded number of bytes, of which an owner has what is free at most, and each group takes from all who
 *    wait, by share: so nobody's records wait behind all of somebody else's.
 * 2. A group is sent when `commitMs` have passed since the last one began, or at once when it holds enough bytes, or an urgent
 *    record for which it may go early. After idle it lingers a moment, so that a new name and its first document ride together.
 * 3. One PUT is in flight. Its slot is resolved before the next is tried (append.ts); then its records are answered.
 * 4. A seal in the slot: this log is over. Everything waiting is refused as not written, and `onSealed` is called.
 *
 * Each header carries the placement of its writer. When the owners change, nothing of a target that has moved away gets into the
 * log any more, from that turn on: what waits for a group, or behind a blob, is refused as not written. The first header with the
 * new placement is the barrier that others wait for before they take such targets over; where no record is to be written, it is
 * an object of its own. It says, as those after it do, from where on this log has what others own and no manifest contains.
 *
 * A target's submissions carry an epoch. After one was refused, everything of that epoch is refused, so that no record
 * enters the log whose predecessor did not; the target begins the next epoch once it has heard.
 */
export type Refusal = 'busy' | 'not-written';

export class AppendRefused extends Error {
  override name = 'AppendRefused';
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal === 'busy' ? 'the log has no room' : 'nothing was written');
    this.refusal = refusal;
  }
}

export interface GroupCommitOptions {
  readonly owners: Owners;
  readonly commitMs: number;
  readonly limits?: FlowLimits;
  /** `bytes`: of its payload, in the log or in its blob. */
  readonly onStored: (record: RecordHead, position: LogPosition, bytes: number) => void;
  /** Called after `onStored` of all of a group's records. */
  readonly onGroupStored: () => void;
  /** Called for each stored slot in its order, barriers included. `bytes` are the whole object's, and are not changed any more. */
  readonly onSlotStored?: (slot: number, bytes: Uint8Array) => void;
  readonly onSealed: () => void;
  /** Answers the highest slot, `lastSlot` at most, at and below which others need nothing of the log. */
  readonly othersFloor?: (lastSlot: number, owners: Owners) => number;
}

export interface AppendOptions {
  /** Who is charged; the tenant by itself where it is left out. */
  readonly share?: Share;
  /** Asks for a group before its time. It gets none where its owner, or all together, had too many (early-groups.ts). */
  readonly isUrgent?: boolean;
}

interface Pending {
  head: RecordHead;
  payload: Uint8Array;
  readonly bytes: number;
  readonly epoch: number;
  readonly share: Share;
  readonly isUrgent: boolean;
  readonly hold: Hold;
  /** Rises with each record taken. */
  readonly order: number;
  /** Whether its target was another server's at some time since it was taken: that one may have written what this record would be. */
  hasMoved: boolean;
  readonly resolve: (position: LogPosition) => void;
  readonly reject: (error: Error) => void;
}

/** Records that belong together come from two actors within this time. */
const lingerMs = 2;

export class GroupCommit {
  readonly #components: LogComponents;
  readonly #identity: LogIdentity;
  readonly #options: GroupCommitOptions;
  readonly #limits: FlowLimits;
  readonly #queue = new RecordQueue<Pending>();
  /** The records that are not answered yet, by their orders, which rise. */
  readonly #unanswered = new Map<number, Pending>();
  /** Bytes in the queue alone: what decides when a group is full. */
  #queueBytes = 0;
  /** Bytes of everything accepted and not answered: what is bounded. */
  readonly #waiting: ByteGate;
  /** By target: the record whose blob is being uploaded, and those behind it. */
  readonly #behindBlob = new Map<string, Pending[]>();
  #taken = 0;
  /** Uploaded or on their way, for records that are not in the log yet. */
  readonly #blobsOnTheWay = new Set<string>();
  /**
   * By target: its last epoch of which something was refused. Kept until the target's next epoch begins: its records come
   * over one port in the order in which they were submitted, so nothing of the old epoch can follow. What stays are
   * targets that were refused and never wrote again, at most one entry each.
   */
  readonly #failedEpochs = new Map<string, number>();
  #owners: Owners;
  /** The placement of the last header that was sent. */
  #headed: number;
  /** See `LogObjectHeader.othersFloor`: of the placement that was headed last. */
  #othersFloor: number | null = null;
  /** The slots whose headers were the first of their placements. */
  #firstOf: { readonly placement: number; readonly slot: number }[] = [];
  #lastSlot = 0;
  #lastChecksum = 0n;
  #lastBeganMs = Number.NEGATIVE_INFINITY;
  /** When the log was surely open: at the begin of a PUT that was stored, or of a GET that found nothing above the last slot. */
  #seenOpen = noMoment;
  #sending = false;
  readonly #early: EarlyGroups;
  /** Whether the next group does not wait for its time. */
  #isEarly = false;
  #sealed = false;
  #cancelTimer: (() => void) | null = null;
  #waiters: { readonly order: number; readonly wake: () => void }[] = [];

  constructor(components: LogComponents, identity: LogIdentity, options: GroupCommitOptions) {
    this.#components = components;
    this.#identity = identity;
    this.#options = options;
    this.#limits = options.limits ?? limits;
    this.#owners = options.owners;
    this.#headed = options.owners.placement;
    this.#early = new EarlyGroups(components.clock);
    this.#waiting = new ByteGate({
      max: this.#limits.logQueueBytesMax,
      clock: components.clock,
      waitersMax: 0,
      ownersPart: 1,
    });
  }

  /** The last slot that is known to be ours. */
  get lastSlot(): number {
    return this.#lastSlot;
  }

  /** The placement in the header of a slot at or above the last one that was asked for. */
  placementOf(slot: number): number {
    while ((this.#firstOf[1]?.slot ?? Number.POSITIVE_INFINITY) <= slot) this.#firstOf.shift();
    return this.#firstOf[0]?.placement ?? this.#headed;
  }

  /** Whether another process has ended this log, as far as is known here. */
  get isSealed(): boolean {
    return this.#sealed;
  }

  /** When the log was last surely open. */
  get seenOpen(): Moment {
    return this.#seenOpen;
  }

  /** Bytes of records that have been taken and not answered yet. */
  get waitingBytes(): number {
    return this.#waiting.held;
  }

  /** Blobs of records that have been taken and not stored yet. */
  get blobsOnTheWay(): ReadonlySet<string> {
    return this.#blobsOnTheWay;
  }

  /**
   * Takes the owners of a later placement, and sends the barrier at once. Whoever calls sees to it that targets that have moved
   * away are read no more: after the barrier they may be another's.
   */
  adopt(owners: Owners): void {
    if (owners.placement <= this.#owners.placement) return;
    this.#owners = owners;
    for (const pending of this.#unanswered.values()) {
      if (this.#isOwn(pending.head)) continue;
      pending.hasMoved = true;
      this.#endEpoch(pending);
    }
    void this.#send();
  }

  /**
   * Looks whether another process has ended this log, without writing. True: at the time of this call it had not.
   * Rejects with StoreError where that can't be said.
   */
  async confirmOpen(): Promise<boolean> {
    const beganAt = momentOf(this.#components.clock);
    // A group that is on its way may have been stored, sealed above, taken over and collected: its slot is empty then, and the seal is in the next.
    const free = this.#lastSlot + (this.#sending ? 2 : 1);
    for (let slot = this.#lastSlot + 1; !this.#sealed; slot++) {
      const key = paths.logObject(this.#identity.logId, slot);
      const found = await this.#components.store.get(key);
      if (found === null && slot < free) continue;
      if (found === null) {
        this.#noteOpen(beganAt);
        return !this.#sealed;
      }
      if (decodeLogObject(found.bytes, key).kind !== 'seal') continue;
      // A PUT that is in flight meets the seal itself, and then answers its records.
      if (!this.#sending) this.#end([]);
      return false;
    }
    return false;
  }

  /** Resolves once the record is durable. Rejects with AppendRefused, which promises that nothing was written. */
  append(
    head: RecordHead,
    payload: Uint8Array,
    epoch: number,
    {
      share = { owner: head.tenantId, tenant: head.tenantId, weight: 1 },
      isUrgent = false,
    }: AppendOptions = {},
  ): Promise<LogPosition> {
    return new Promise((resolve, reject) => {
      const bytes = payload.byteLength + 256;
      const hold = this.#hold({ head, epoch, bytes, share });
      if (typeof hold === 'string') return this.#refuse({ head, epoch, reject }, hold);
      const order = ++this.#taken;
      this.#failedEpochs.delete(targetKey(head));
      const record = { head, payload, bytes, epoch, share, isUrgent, order };
      const pending = { ...record, hold, hasMoved: false, resolve, reject };
      this.#unanswered.set(order, pending);
      this.#enter(pending);
    });
  }

  /** Resolves when nothing waits any more, which under a steady load may be never. */
  whenIdle(): Promise<void> {
    return this.#whenSettled(Number.MAX_SAFE_INTEGER);
  }

  /** Resolves when what was submitted before has been answered, whatever is submitted meanwhile. */
  whenSettled(): Promise<void> {
    return this.#whenSettled(this.#taken);
  }

  /** Resolves when a header with the present placement is stored, or the log is over: nothing is on its way then. */
  async whenBarred(): Promise<void> {
    while (this.#sending || this.#owesBarrier)
      await new Promise<void>((wake) => {
        this.#waiters.push({ order: Number.NEGATIVE_INFINITY, wake });
      });
  }

  #whenSettled(order: number): Promise<void> {
    if (this.#oldest() > order) return Promise.resolve();
    return new Promise((wake) => {
      this.#waiters.push({ order, wake });
    });
  }

  /** The order of the first record that is not answered yet; infinite where there is none. */
  #oldest(): number {
    const [oldest] = this.#unanswered.keys();
    return oldest ?? Number.POSITIVE_INFINITY;
  }

  /** Reserves room for a record, or answers why it may not be taken. */
  #hold({ head, epoch, bytes, share }: Pick<Pending, 'head' | 'epoch' | 'bytes' | 'share'>): Hold | Refusal {
    const failed = this.#failedEpochs.get(targetKey(head));
    if (this.#sealed || !this.#isOwn(head) || (failed !== undefined && failed >= epoch)) return 'not-written';
    return this.#waiting.reserve(share.owner, bytes) ?? 'busy';
  }

  #refuse(pending: Pick<Pending, 'head' | 'epoch' | 'reject'>, refusal: Refusal): void {
    this.#endEpoch(pending);
    pending.reject(new AppendRefused(refusal));
  }

  /** Nothing more of a record's epoch is taken. */
  #endEpoch({ head, epoch }: Pick<Pending, 'head' | 'epoch'>): void {
    // A sealed log takes nothing of any epoch.
    if (this.#sealed) return;
    const key = targetKey(head);
    this.#failedEpochs.set(key, Math.max(this.#failedEpochs.get(key) ?? epoch, epoch));
  }

  #enter(pending: Pending): void {
    const key = targetKey(pending.head);
    const behind = this.#behindBlob.get(key);
    if (behind !== undefined) behind.push(pending);
    else if (pending.payload.byteLength > this.#limits.logRecordInlineBytesMax)
      void this.#upload(key, pending);
    else this.#enqueue(pending);
  }

  async #upload(key: string, pending: Pending): Promise<void> {
    const waiting: Pending[] = [pending];
    this.#behindBlob.set(key, waiting);
    const id = randomHex(this.#components.random, 16);
    this.#blobsOnTheWay.add(id);
    const stored = await uploadBlob(this.#components, {
      logId: this.#identity.logId,
      id,
      bytes: pending.payload,
    });
    this.#behindBlob.delete(key);
    if (!stored || this.#sealed) {
      this.#blobsOnTheWay.delete(id);
      for (const refused of waiting) this.#abandon(refused);
      this.#wake();
      return;
    }
    const blob = { id, length: pending.payload.byteLength, checksum: xxh64(pending.payload) };
    pending.head = { ...pending.head, blob };
    pending.payload = new Uint8Array();
    this.#enqueue(pending);
    // A second large record among them makes the rest wait again: `#enter` sees to it.
    for (const next of waiting.slice(1)) this.#enter(next);
  }

  #abandon(pending: Pending): void {
    if (pending.head.blob !== null) this.#blobsOnTheWay.delete(pending.head.blob.id);
    this.#settle(pending);
    this.#refuse(pending, 'not-written');
  }

  /** Gives back what a record held, which is answered or about to be. */
  #settle({ hold, order }: Pending): void {
    hold.release();
    this.#unanswered.delete(order);
  }

  #enqueue(pending: Pending): void {
    this.#queue.push(pending);
    this.#queueBytes += pending.payload.byteLength;
    // The next group takes it along at no price where it goes early already, or now.
    if (pending.isUrgent && !this.#isEarly && this.#waitMs() > lingerMs)
      this.#isEarly = this.#early.take(pending.share.owner);
    this.#arm();
  }

  #arm(): void {
    if (this.#sending || this.#isEmpty) return;
    if (this.#owesBarrier || this.#isEarly || this.#queueBytes >= this.#limits.logGroupBytes) {
      void this.#send();
      return;
    }
    // The first record of a group sets its time: a steady stream must not put it off again and again.
    if (this.#cancelTimer !== null) return;
    this.#cancelTimer = this.#components.clock.after(this.#waitMs(), () => void this.#send());
  }

  /** How long the next group waits for its time. */
  #waitMs(): number {
    const { commitMs } = this.#options;
    const sinceLastMs = this.#components.clock.monotonic() - this.#lastBeganMs;
    return Math.max(commitMs - sinceLastMs, Math.min(lingerMs, commitMs));
  }

  async #send(): Promise<void> {
    if (this.#sending || this.#isEmpty) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#isEarly = false;
    const group = this.#takeGroup();
    if (group.length === 0 && !this.#owesBarrier) return this.#wake();
    this.#sending = true;
    const beganAt = momentOf(this.#components.clock);
    this.#lastBeganMs = beganAt.monotonicMs;
    if (this.#headed < this.#owners.placement)
      this.#othersFloor = this.#options.othersFloor?.(this.#lastSlot, this.#owners) ?? null;
    this.#headed = this.#owners.placement;
    const slot = this.#lastSlot + 1;
    const batchId = randomHex(this.#components.random, 16);
    const { logId } = this.#identity;
    const header = {
      logId,
      slot,
      kind: group.length === 0 ? 'barrier' : 'group',
      placement: this.#headed,
      previousChecksum: this.#lastChecksum,
      batchId,
      ...(this.#othersFloor === null ? {} : { othersFloor: this.#othersFloor }),
    } as const;
    const { bytes, checksum } = encodeLogObject(header, group);
    const { store, clock, logger } = this.#components;
    const outcome = await appendToSlot(store, clock, logger, { logId, slot, batchId, bytes });
    this.#sending = false;
    if (outcome === 'sealed') {
      this.#end(group);
      return;
    }
    // Where this process has closed the log meanwhile, its seal comes behind this slot.
    assert(slot === this.#lastSlot + 1, () => `slot ${slot} was stored after ${this.#lastSlot}`);
    this.#noteOpen(beganAt);
    this.#lastSlot = slot;
    this.#lastChecksum = checksum;
    if (this.#firstOf.at(-1)?.placement !== header.placement)
      this.#firstOf.push({ placement: header.placement, slot });
    this.#answer(group, slot);
    this.#options.onSlotStored?.(slot, bytes);
    this.#arm();
    this.#wake();
  }

  /** Evidence dates from the first try: a later one may find what the first one left, long after which a seal came. */
  #noteOpen(at: Moment): void {
    if (at.monotonicMs > this.#seenOpen.monotonicMs) this.#seenOpen = at;
  }

  get #isEmpty(): boolean {
    return this.#queue.isEmpty && !this.#owesBarrier;
  }

  /** Whether others wait for a header with the placement of now. */
  get #owesBarrier(): boolean {
    return !this.#sealed && this.#headed < this.#owners.placement;
  }

  #isOwn({ tenantId, namespace }: RecordHead): boolean {
    return isOwn(this.#owners, placementKey(tenantId, namespace));
  }

  #takeGroup(): Pending[] {
    const group: Pending[] = [];
    let bytes = 0;
    for (let next = this.#queue.shift(); next !== null; next = this.#queue.shift()) {
      if (next.hasMoved) {
        this.#queueBytes -= next.payload.byteLength;
        this.#abandon(next);
        continue;
      }
      if (group.length > 0 && bytes + next.payload.byteLength > this.#limits.logGroupBytes) {
        this.#queue.putBack(next);
        break;
      }
      group.push(next);
      bytes += next.payload.byteLength;
    }
    this.#queueBytes -= bytes;
    assert(this.#queueBytes >= 0, () => 'the queue holds a negative number of bytes');
    return group;
  }

  #answer(group: readonly Pending[], slot: number): void {
    for (const [index, pending] of group.entries()) {
      const position = { logId: this.#identity.logId, slot, index };
      this.#settle(pending);
      this.#options.onStored(pending.head, position, pending.bytes);
      if (pending.head.blob !== null) this.#blobsOnTheWay.delete(pending.head.blob.id);
      pending.resolve(position);
    }
    if (group.length > 0) this.#options.onGroupStored();
  }

  /** The own process is about to seal this log, as the last that it writes: what is found of a seal later is no news. */
  close(): void {
    if (!this.#sealed) this.#abandonAll([]);
  }

  #end(group: readonly Pending[]): void {
    if (this.#sealed) {
      for (const pending of group) this.#abandon(pending);
      this.#wake();
      return;
    }
    this.#components.logger.error('this log was sealed by another process', { logId: this.#identity.logId });
    this.#abandonAll(group);
    this.#options.onSealed();
  }

  #abandonAll(group: readonly Pending[]): void {
    this.#sealed = true;
    for (const pending of [...group, ...this.#queue.clear()]) this.#abandon(pending);
    this.#queueBytes = 0;
    this.#wake();
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const oldest = this.#oldest();
    for (const { order, wake } of this.#waiters) if (oldest > order) wake();
    this.#waiters = this.#waiters.filter(({ order }) => oldest <= order);
  }
}
