import { limits } from '../../protocol/limits.ts';
import { type Owners, placementKey, type Standing } from '../../protocol/placement.ts';
import { describeError } from '../../src/base/log.ts';
import { isOwn } from '../../src/base/owners.ts';
import type { RecordHead } from '../../src/stored/log-object.ts';
import type { LogComponents } from './log-components.ts';
import { type LogEnd, LogTail } from './log-tail.ts';
import { maySucceedLater } from './may-succeed-later.ts';

/**
 * What this process may take over, and when.
 *
 * 1. In each placement every other member that owns something, or has owned it, is waited for: its log must have reached this very
 *    placement, or be sealed. A log that has passed it tells that the own view is old.
 * 2. Then whatever may be in these logs of targets that have come is there, and is replayed.
 * 3. A sealed log's process may answer reads for a second longer than it is sealed: that is waited out too, beside the replay, unless it
 *    has reached the placement before, as one that leaves has: then it answers no more for what has moved. With that the placement is
 *    settled.
 *
 * A target that has been this server's in all placements since the last settled one has come from nobody: it waits for nothing.
 */
export interface LogToReplay {
  readonly logId: string;
  /** Nothing at or under it is wanted; 0 where only the log's floor tells. */
  readonly after: number;
  readonly through: number;
}

export interface HandOverOptions {
  /** For how long a process may answer reads after its log was sealed; 0 where no other server can ask it. */
  readonly readsOutliveSealMs: number;
  /** Another member's log shows that there is a later view than the own one. */
  readonly onLaterView: () => void;
}

export class HandOver {
  readonly #components: LogComponents;
  readonly #options: HandOverOptions;
  readonly #tails = new Map<string, LogTail>();
  /** Other members' logs, and between which slots they may have records of what is this server's. */
  #ends = new Map<string, Pick<LogToReplay, 'after' | 'through'>>();
  readonly #sealKnownMs = new Map<string, number>();
  /** The last placements that others' logs were seen to have reached. */
  readonly #reached = new Map<string, number>();
  #standing: Standing;
  /** Owners from the last settled placement on, the present ones last. */
  #chain: readonly Owners[];
  #isSettled = false;
  #stopped = false;

  constructor(components: LogComponents, options: HandOverOptions, standing: Standing) {
    this.#components = components;
    this.#options = options;
    this.#standing = standing;
    this.#chain = [standing.owners];
    this.#noteSeals(standing);
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Ends the taking over: whoever still waits for other logs opens nothing any more. */
  stop(): void {
    this.#stopped = true;
  }

  /** Answers whether the owners are others now. */
  adopt(standing: Standing): boolean {
    if (standing.version <= this.#standing.version) return false;
    const isLater = standing.owners.placement > this.#standing.owners.placement;
    this.#standing = standing;
    this.#noteSeals(standing);
    if (isLater) this.#chain = [...this.#chain, standing.owners];
    return isLater;
  }

  isOwn({ tenantId, namespace }: Pick<RecordHead, 'tenantId' | 'namespace'>): boolean {
    return isOwn(this.#standing.owners, placementKey(tenantId, namespace));
  }

  /** Whether the target is this server's now and was not all the time since the last settled placement. */
  hasCome({ tenantId, namespace }: Pick<RecordHead, 'tenantId' | 'namespace'>): boolean {
    const key = placementKey(tenantId, namespace);
    if (!isOwn(this.#standing.owners, key)) return false;
    return !this.#isSettled || this.#chain.some((owners) => !isOwn(owners, key));
  }

  /** Owners from the last settled placement on; with nothing settled yet, from the first. */
  get chain(): readonly Owners[] {
    return this.#chain;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Whether this server has owned a part in all placements since the last settled one. If it has not, all that it owns now has come. */
  get ownedAny(): boolean {
    return this.#chain.every(({ servers, self }) => servers.includes(self));
  }

  /** Whether nothing can have come since the last settled placement: nobody has gone, and this server has been there all the time. */
  get nothingHasCome(): boolean {
    const { servers, self } = this.#standing.owners;
    if (!servers.includes(self)) return true;
    return (
      this.#isSettled &&
      this.#chain.every(
        (before) => before.servers.includes(self) && before.servers.every((each) => servers.includes(each)),
      )
    );
  }

  /**
   * Resolves with the logs in which records of targets that have come may be, once nothing can be added there; with null where
   * the standing is not that of now any more.
   */
  async whenEnded(): Promise<readonly LogToReplay[] | null> {
    const { clock } = this.#components;
    const standing = this.#standing;
    if (this.nothingHasCome) return [];
    for (;;) {
      if (this.#stopped) return null;
      const ends = await Promise.all(standing.others.map((logId) => this.#look(logId)));
      if (standing.owners.placement !== this.#standing.owners.placement) return null;
      if (ends.some(({ kind }) => kind === 'later')) this.#options.onLaterView();
      if (ends.every(({ kind }) => kind === 'barred' || kind === 'sealed')) {
        this.#ends = new Map(standing.others.map((logId, at) => [logId, rangeOf(ends[at])]));
        return this.logs();
      }
      await clock.sleep(limits.barrierLookEveryMs);
    }
  }

  /** Resolves when no process answers reads any more whose log is sealed, as far as is known; soon where it is over, at once where nothing has come. */
  async whenUnread(isOver: () => boolean): Promise<void> {
    if (this.nothingHasCome) return;
    for (let waitMs = this.#sealWaitMs(); waitMs > 0 && !isOver(); waitMs = this.#sealWaitMs())
      await this.#components.clock.sleep(Math.min(waitMs, limits.barrierLookEveryMs));
  }

  /**
   * Resolves when a member that is joining has had time to become active, and at once where no reads of a sealed process are waited out. Where the joining process
   * is the next one of the server whose log was sealed, it takes over what has come here, and reading that log here would only slow its own reading of it.
   */
  async whenJoined(isOver: () => boolean): Promise<void> {
    const { clock } = this.#components;
    const { logs, others, removed } = this.#standing;
    const isAnyJoining = logs.length > 1 + others.length + removed.length;
    // Who has just come to own its part has to take that over itself.
    if (!isAnyJoining || this.nothingHasCome || !this.ownedAny) return;
    const untilMs = clock.monotonic() + Math.min(limits.joinAwaitedMs, this.#sealWaitMs());
    while (clock.monotonic() < untilMs && !isOver()) await clock.sleep(limits.barrierLookEveryMs);
  }

  /** The logs of others in which records of targets that are this server's may be, oldest first. */
  logs(): readonly LogToReplay[] {
    const { removed, logs } = this.#standing;
    const isRemoved = new Set(removed.map(({ logId }) => logId));
    return [
      ...removed.map(({ logId, sealSeq }) => ({ logId, after: 0, through: sealSeq - 1 })),
      // What the view does not name any more is in manifests.
      ...[...this.#ends]
        .filter(([logId]) => logs.includes(logId) && !isRemoved.has(logId))
        .map(([logId, range]) => ({ logId, ...range })),
    ];
  }

  settled(): void {
    this.#chain = [this.#standing.owners];
    this.#isSettled = true;
  }

  async #look(logId: string): Promise<LogEnd> {
    const tail = this.#tails.get(logId) ?? new LogTail(this.#components.store, logId);
    this.#tails.set(logId, tail);
    const { placement } = this.#standing.owners;
    try {
      const end = await tail.look(placement);
      if (end.kind === 'barred') this.#reached.set(logId, placement);
      if (end.kind === 'sealed') {
        this.#reached.set(logId, end.placement);
        this.#noteSeal(logId);
      }
      return end;
    } catch (error) {
      if (!maySucceedLater(error)) throw error;
      this.#components.logger.error('the log of another server could not be read yet', {
        logId,
        error: describeError(error),
      });
      return { kind: 'open' };
    }
  }

  #noteSeals({ removed, logs }: Standing): void {
    for (const { logId } of removed) this.#noteSeal(logId);
    for (const logId of this.#tails.keys()) if (!logs.includes(logId)) this.#tails.delete(logId);
    // A view may name a log no more before reads of its process are over.
    for (const [logId, knownMs] of this.#sealKnownMs)
      if (!logs.includes(logId) && this.#readsLastMs(knownMs) <= 0) this.#sealKnownMs.delete(logId);
    for (const logId of this.#reached.keys())
      if (!logs.includes(logId) && !this.#sealKnownMs.has(logId)) this.#reached.delete(logId);
  }

  #noteSeal(logId: string): void {
    if (!this.#sealKnownMs.has(logId)) this.#sealKnownMs.set(logId, this.#components.clock.monotonic());
  }

  /** How long it takes until nobody answers reads any more whose log is sealed. */
  #sealWaitMs(): number {
    const { placement } = this.#standing.owners;
    const waitedFor = [...this.#sealKnownMs].filter(([logId]) => this.#reached.get(logId) !== placement);
    return this.#readsLastMs(Math.max(...waitedFor.map(([, knownMs]) => knownMs)));
  }

  /** How long a process may still answer reads whose log is known to be sealed since then. */
  #readsLastMs(sealKnownMs: number): number {
    return sealKnownMs + this.#options.readsOutliveSealMs - this.#components.clock.monotonic();
  }
}

function rangeOf(end: LogEnd | undefined): Pick<LogToReplay, 'after' | 'through'> {
  if (end?.kind === 'barred') return { after: end.after, through: end.through };
  return { after: 0, through: end?.kind === 'sealed' ? end.sealSeq - 1 : 0 };
}
