import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { SharedNamespace, ShareRequest } from '../../protocol/messages.ts';
import { AssertionError, DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { Serial } from '../../src/base/serial.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import type { ActorComponents } from '../actor/components.ts';
import { ActorClosed, Deposed } from '../storage/manifest-store.ts';
import { paysForGraphs } from '../vector/plan-graphs.ts';
import { chooseMerge } from './choose-merge.ts';
import { collectRetired } from './collect-garbage.ts';
import { compactOnce } from './compact.ts';
import { flushNamespace, freeze, takeOwnership } from './flush.ts';
import { indexVectorsOnce } from './index-vectors.ts';
import type { NamespaceState } from './namespace-state.ts';
import { closeReaders } from './open-built.ts';
import { nextOverdueMs, overdueSegments } from './overdue-segments.ts';
import { leaveParent, type OnStored, releasePin, shareNamespace } from './share-namespace.ts';
import { WritePace } from './write-pace.ts';

export interface UpkeepHooks {
  /** Whether the actor takes no work any more. */
  readonly isClosed: () => boolean;
  /** The state is not that of the store any more: the actor must close. */
  readonly onLost: () => void;
  /** What the objects take has changed. */
  readonly onCommitted: () => void;
}

const flushRetryMs = 1_000;
/** Searches ask for graphs that are not there: one that can't be built would keep a compute thread busy for nothing. */
const indexRetryMs = 60_000;
/**
 * The share of a memtable that may be filled while the log waits for a flush: a namespace of few writes, whose flush waits for
 * those of others, goes on.
 */
const shareWhileLogWaits = 1 / 8;
/** Deletes come in batches: one flush for those of this long. */
const reclaimAfterMs = 500;

/**
 * What happens to a namespace unseen: ownership, flushes, compactions, collection. Everything that changes the manifest
 * runs one at a time; a build or a merge runs beside it.
 */
export class Upkeep {
  readonly #components: ActorComponents;
  readonly #state: NamespaceState;
  readonly #hooks: UpkeepHooks;
  readonly #commits = new Serial();
  readonly #pace = new WritePace();
  #compacting: Promise<void> | null = null;
  #indexing: Promise<void> | null = null;
  #flushForLog: Promise<void> | null = null;
  #cancelCollection = () => {};
  #cancelRewrite = () => {};
  #reclaimArmed = false;
  #vectorsArmed = false;
  #quietArmed = false;
  #indexNotBefore = Number.NEGATIVE_INFINITY;
  #flushedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;
  #draining = false;

  constructor(components: ActorComponents, state: NamespaceState, hooks: UpkeepHooks) {
    this.#components = components;
    this.#state = state;
    this.#hooks = hooks;
  }

  get isIdle(): boolean {
    return this.#commits.waiting === 0 && this.#compacting === null && this.#indexing === null;
  }

  get #isOver(): boolean {
    return this.#stopped || this.#hooks.isClosed();
  }

  /** Ends upkeep: no commit begins any more. */
  stop(): void {
    this.#stopped = true;
    this.cancelTimers();
  }

  /** Resolves when what is being merged or indexed has ended; false where nothing is. */
  async whenBuilt(): Promise<boolean> {
    if (this.#compacting === null && this.#indexing === null) return false;
    await this.#compacting;
    await this.#indexing;
    return true;
  }

  /** Ends compaction: none begins any more. Flushes go on. */
  drain(): void {
    this.#draining = true;
  }

  /** Runs work on the namespace's objects in turn with every commit. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#commits.run(work);
  }

  takeOwnership(): Promise<void> {
    return this.#commits.run(async () => {
      await takeOwnership(this.#components, this.#state);
      this.#rewriteLater();
    });
  }

  get memtableIsFull(): boolean {
    const { memtable } = this.#state;
    const { limits } = this.#components;
    return memtable.bytes >= limits.memtableBytesMax || memtable.rowCount >= limits.memtableDocumentsMax;
  }

  /**
   * Memory is bounded: no write is taken while so many memtables wait for their flush. And so is the log, which a restart
   * reads: while it waits for this namespace, no more than part of a memtable is added.
   */
  get isFull(): boolean {
    const { frozen, memtable } = this.#state;
    const { limits } = this.#components;
    if (this.#flushForLog !== null && frozen.length > 0)
      return memtable.bytes >= limits.memtableBytesMax * shareWhileLogWaits;
    return frozen.length >= limits.frozenMemtablesMax && this.memtableIsFull;
  }

  /** How long the answer to a write of so many bytes waits, so that flushes keep up. */
  answerDelayMs(bytes: number): number {
    return this.#pace.delayMs(bytes, this.#state.frozen.length, this.#components.clock.monotonic());
  }

  afterWrite(): void {
    this.#flushVectorsSoon();
    const { frozenMemtablesMax } = this.#components.limits;
    if (!this.memtableIsFull || this.#state.frozen.length >= frozenMemtablesMax) return;
    freeze(this.#state);
    this.#flushInBackground();
  }

  /** Whether memory holds so many vectors that searching them takes a while: a segment of them can have a graph. */
  get #memtableAsksForGraphs(): boolean {
    const { vector, memtable } = this.#state;
    return vector !== null && paysForGraphs({ count: memtable.rowCount, dims: vector.dims });
  }

  #flushVectorsSoon(): void {
    if (this.#vectorsArmed || this.#ending || !this.#memtableAsksForGraphs) return;
    this.#vectorsArmed = true;
    this.#components.clock.after(limits.vectorsFlushAfterMs, () => {
      this.#vectorsArmed = false;
      if (this.#ending || !this.#memtableAsksForGraphs) return;
      this.flush().catch((error: unknown) => {
        const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
        this.#components.logger.error('vectors were not flushed yet', fields);
      });
    });
  }

  /** Compacts afterwards, in the background: a segment may have lost most of its rows. */
  async flush(): Promise<void> {
    await this.#flushing(async () => {
      await this.#flushFrozen();
      await flushNamespace(this.#components, this.#state);
    });
    this.#compactInBackground();
  }

  /** The log is held up by this namespace's records. Asked for again meanwhile, it happens once. */
  flushForLog(): Promise<void> {
    this.#flushForLog ??= this.flush().finally(() => {
      this.#flushForLog = null;
    });
    return this.#flushForLog;
  }

  /** Commits something in turn, and compacts afterwards. A failure that leaves the state behind the store closes the actor. */
  async commit(work: () => Promise<void>): Promise<void> {
    let isDone = false;
    const committing = this.#flushing(async () => {
      await work();
      isDone = true;
    });
    await committing.catch((error: unknown) => {
      // What was retired is deleted another time.
      if (!isDone || !(error instanceof StoreError)) throw error;
      const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
      this.#components.logger.error('retired segments were not collected', fields);
    });
    if (!isDone) throw new ActorClosed('the actor has closed');
    this.#compactInBackground();
  }

  /** See share-namespace.ts. */
  async share(request: ShareRequest, onStored: OnStored): Promise<SharedNamespace | null> {
    let shared: SharedNamespace | null | undefined;
    await this.#flushing(async () => {
      shared = await shareNamespace(this.#components, this.#state, request, onStored);
    });
    if (shared === undefined) throw new ActorClosed('the actor has closed');
    return shared;
  }

  /** Takes the pin of a holder out, and collects what it held alone. */
  async release(holderId: string): Promise<void> {
    let isDone = false;
    await this.#flushing(async () => {
      await releasePin(this.#components, this.#state, holderId);
      isDone = true;
    });
    if (!isDone) throw new ActorClosed('the actor has closed');
  }

  /** Deletes retired segments whose grace is over, and sees to those whose isn't. */
  async collect(): Promise<void> {
    await this.#flushing(async () => {});
  }

  /**
   * Rewrites segments that hold documents which were replaced or deleted too long ago. Rejects where some are left, which the
   * log has the reason of.
   */
  async rewriteOverdue(): Promise<void> {
    for (let tries = 0; tries < 2 && this.#overdue.size > 0 && !this.#ending; tries++) {
      this.#compactInBackground();
      await this.#compacting;
    }
    if (this.#overdue.size > 0 && !this.#ending) throw new Error('segments were not rewritten yet');
  }

  get #overdue(): ReadonlySet<string> {
    return overdueSegments(this.#components, this.#state);
  }

  /** A closed actor is not held in memory for the sake of what it retired, or should rewrite: the sweep finds that. */
  cancelTimers(): void {
    this.#cancelCollection();
    this.#cancelCollection = () => {};
    this.#cancelRewrite();
    this.#cancelRewrite = () => {};
  }

  #rewriteLater(): void {
    this.#cancelRewrite();
    const dueMs = nextOverdueMs(this.#components, this.#state);
    if (this.#ending || dueMs === null) return;
    const waitMs = Math.max(0, dueMs - this.#components.clock.now());
    this.#cancelRewrite = this.#components.clock.after(waitMs, () => this.#compactInBackground());
  }

  #collectLater(): void {
    this.#cancelCollection();
    if (this.#ending || (this.#state.committed?.value.retired.length ?? 0) === 0) return;
    this.#cancelCollection = this.#components.clock.after(this.#components.limits.retiredGraceMs, () => {
      this.collect().catch((error: unknown) =>
        this.#components.logger.error('retired segments were not collected', {
          namespaceId: this.#state.identity.namespaceId,
          error: describeError(error),
        }),
      );
    });
  }

  /** A flush and what compaction makes of it, in the background; asked for again meanwhile, it happens once. */
  reclaim(): void {
    if (this.#reclaimArmed || this.#ending) return;
    this.#reclaimArmed = true;
    this.#components.clock.after(reclaimAfterMs, () => {
      this.#reclaimArmed = false;
      if (this.#ending || this.#state.unflushedBytes === 0) return;
      this.flush().catch((error: unknown) => {
        const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
        this.#components.logger.error('space was not reclaimed yet', fields);
      });
    });
  }

  #flushInBackground(): void {
    // Frozen memtables only: the one that takes writes would become a needlessly small segment.
    this.#flushing(() => this.#flushFrozen()).then(
      () => this.#compactInBackground(),
      (error: unknown) => {
        this.#components.logger.error('a flush failed', {
          namespaceId: this.#state.identity.namespaceId,
          error: describeError(error),
        });
        if (!this.#isOver) this.#components.clock.after(flushRetryMs, () => this.#flushInBackground());
      },
    );
  }

  /** Compacts until the policy finds nothing more. A failure leaves the segments as they are; the next flush tries again. */
  #compactInBackground(): void {
    if (this.#compacting !== null || this.#ending) return;
    this.#compacting = this.#compactAll()
      .catch((error: unknown) => {
        this.#indexNotBefore = this.#components.clock.monotonic() + indexRetryMs;
        const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
        if (!this.#ending) this.#components.logger.error('a compaction failed', fields);
      })
      .finally(() => {
        this.#compacting = null;
        this.indexVectors();
      });
  }

  /** Whether no flush may soon be followed by another: segments are gathered then, and small ones are indexed. */
  get #isQuiet(): boolean {
    return this.#components.clock.monotonic() - this.#flushedAt >= limits.indexAfterFlushMs;
  }

  #lookWhenQuiet(): void {
    if (this.#quietArmed) return;
    this.#quietArmed = true;
    const leftMs = this.#flushedAt + limits.indexAfterFlushMs - this.#components.clock.monotonic();
    this.#components.clock.after(leftMs, () => {
      this.#quietArmed = false;
      this.#compactInBackground();
    });
  }

  /** Makes graphs for all segments that lack them, in the background. A failure leaves them so; a search a minute later tries again. */
  indexVectors(): void {
    if (this.#indexing !== null || this.#ending) return;
    if (this.#components.clock.monotonic() < this.#indexNotBefore) return;
    const inTurn = (work: () => Promise<void>) => this.#flushing(work);
    const indexAll = async () => {
      while (
        !this.#ending &&
        (await indexVectorsOnce(this.#components, this.#state, { inTurn, isQuiet: this.#isQuiet }))
      );
      if (this.#state.vector === null || this.#ending) return;
      if (!this.#isQuiet) this.#lookWhenQuiet();
      // It has become quiet meanwhile: what waits to be merged was left out.
      else if (chooseMerge(this.#state.segments, { isQuiet: true, overdue: this.#overdue }) !== null)
        this.#compactInBackground();
    };
    this.#indexing = indexAll()
      .catch((error: unknown) => {
        this.#indexNotBefore = this.#components.clock.monotonic() + indexRetryMs;
        const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
        if (!this.#ending) this.#components.logger.error('vectors were not indexed', fields);
      })
      .finally(() => {
        this.#indexing = null;
      });
  }

  async #compactAll(): Promise<void> {
    const inTurn = (work: () => Promise<void>) => this.#flushing(work);
    while (
      !this.#ending &&
      (await compactOnce(this.#components, this.#state, { inTurn, isQuiet: this.#isQuiet }))
    );
  }

  get #ending(): boolean {
    return this.#isOver || this.#draining;
  }

  /** Flushes one at a time. One that shows that the state is not that of the store any more closes the actor. */
  async #flushing(flush: () => Promise<void>): Promise<void> {
    await this.#commits.run(async () => {
      if (this.#isOver) return;
      try {
        await flush();
        await collectRetired(this.#components, this.#state);
      } catch (error) {
        const isLost = [Deposed, AssertionError, DataError].some((kind) => error instanceof kind);
        if (isLost) this.#hooks.onLost();
        throw error;
      } finally {
        if (this.#hooks.isClosed()) closeReaders(this.#state);
      }
      await this.#leaveParent();
      this.#collectLater();
      this.#rewriteLater();
      this.#hooks.onCommitted();
    });
  }

  /** Has the parent take this namespace's pin out. Where the parent can't be asked now, the next commit asks again, or the sweep does. */
  async #leaveParent(): Promise<void> {
    try {
      await leaveParent(this.#components, this.#state);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const fields = { namespaceId: this.#state.identity.namespaceId, error: describeError(error) };
      this.#components.logger.info('a parent keeps what is not needed any more', fields);
    }
  }

  async #flushFrozen(): Promise<void> {
    for (let oldest = this.#state.frozen[0]; oldest !== undefined; oldest = this.#state.frozen[0]) {
      const began = this.#components.clock.monotonic();
      await flushNamespace(this.#components, this.#state);
      this.#flushedAt = this.#components.clock.monotonic();
      this.#pace.noteFlush(oldest.memtable.documentBytes, this.#components.clock.monotonic() - began);
    }
  }
}
