import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ReadLink, SharedNamespace, ShareRequest } from '../../protocol/messages.ts';
import type { EmbedConfig, VectorConfig } from '../../protocol/namespace.ts';
import { placementKey } from '../../protocol/placement.ts';
import type { BranchRecord } from '../../protocol/stored-tenant.ts';
import type { VectorStatistics } from '../../protocol/worker-tasks.ts';
import { describeError } from '../../src/base/log.ts';
import { Serial } from '../../src/base/serial.ts';
import { type ActorReply, reply, tokenMeter } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { confirmedInTime } from '../log/confirmed-in-time.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import { MemoryAccount } from '../thread/memory-budget.ts';
import { checkVectors } from './check-vectors.ts';
import {
  commitImport,
  encodeImport,
  firstSequenceOfImport,
  type ImportedSegment,
  type ImportFigures,
} from './commit-import.ts';
import { isNameLost, nameLost, notConfirmed } from './confirm-name.ts';
import { eraseNamespace } from './drop.ts';
import { embedBatch } from './embed-batch.ts';
import { vectorStatistics } from './index-vectors.ts';
import { reportOf } from './last-words.ts';
import type { LoadedBatch } from './loaded-batch.ts';
import { NamespaceQueries } from './namespace-queries.ts';
import type { NamespaceState } from './namespace-state.ts';
import { openNamespace } from './open.ts';
import { closeReaders } from './open-built.ts';
import { mergePatches } from './patch.ts';
import type { PreparedWrite } from './prepare-write.ts';
import { manifestBytes, openNamespaceBytes, readerBytes } from './resident.ts';
import { isLarge } from './segment-look-up.ts';
import type { OnStored } from './share-namespace.ts';
import { updateNamespace } from './update-namespace.ts';
import { Upkeep } from './upkeep.ts';
import { type AppliedWrite, WritePipeline } from './write-pipeline.ts';

export interface Opening {
  readonly identity: NamespaceIdentity;
  /** Null for text only. */
  readonly vector: VectorConfig | null;
  /** Null where texts are not embedded. */
  readonly embed: EmbedConfig | null;
  /** The link, where the namespace is one that stays at a version of its source: then it is only read. */
  readonly link: ReadLink | null;
  /** The namespace and version that this one began as; null where it began empty. */
  readonly branched: BranchRecord | null;
  /** The name was made by the request that opens it. */
  readonly created: boolean;
  readonly replayed: readonly ReplayedRecord[];
  /** See open.ts. */
  readonly documentsKnown: number;
  /** The actor before it failed: only what the store says counts, not what the local disk remembers. */
  readonly again: boolean;
  /** The version of the manifest with which this thread put the namespace away; null where it has not, or does not remember. */
  readonly putAwayVersion: number | null;
}

const reportEveryMs = 300;

/**
 * One namespace, one writer. Reads run beside each other over snapshots; writes go through the pipeline; flushes and
 * the change of owner run one at a time. An answer is JSON text.
 */
export class NamespaceActor {
  readonly #components: ActorComponents;
  readonly #state: NamespaceState;
  readonly #pipeline: WritePipeline;
  readonly #queries: NamespaceQueries;
  readonly #updates = new Serial();
  readonly #upkeep: Upkeep;
  /** Resolves once the name is durable and this process owns the manifest: the first acknowledgement waits for it. */
  readonly #ready: Promise<void>;
  /** Resolves once a name that is being made is durable; null where it is. */
  #naming: Promise<void> | null = null;
  readonly #account: MemoryAccount;
  #measuredSegments: NamespaceState['segments'] | null = null;
  #measuredManifest: NamespaceState['committed'] = null;
  #created: boolean;
  #reportArmed = false;
  #dropped = false;
  #closed = false;
  /** The link, where the namespace is one; null where it may be written to. */
  readonly link: ReadLink | null;

  private constructor(components: ActorComponents, state: NamespaceState, opening: Opening) {
    this.#components = components;
    this.#state = state;
    this.link = opening.link;
    this.#pipeline = new WritePipeline(components, state);
    this.#queries = new NamespaceQueries(components, state, {
      branched: opening.branched,
      indexVectors: () => this.#upkeep.indexVectors(),
    });
    this.#upkeep = new Upkeep(components, state, {
      isClosed: () => this.closed,
      onLost: () => this.close(),
      onCommitted: () => {
        this.#measure();
        this.#armReport();
      },
    });
    this.#account = new MemoryAccount(components.memory);
    this.#account.set('actors', openNamespaceBytes);
    this.#measure();
    this.#created = opening.created;
    this.#ready = this.#becomeReady(opening);
    // Not the owner, or of a name that was not made: it may acknowledge nothing, now or later.
    this.#ready.catch(() => this.close());
    // What was reported before it was opened may be lost.
    if (!opening.created) void this.#report();
  }

  static async open(
    components: ActorComponents,
    opening: Opening,
    tally: ReadTally,
  ): Promise<NamespaceActor> {
    const { identity, created, link, branched, ...rest } = opening;
    const hasManifest = link !== null || branched !== null;
    const state = await openNamespace(components, identity, { isNew: created, hasManifest, ...rest, tally });
    return new NamespaceActor(components, state, opening);
  }

  get identity(): NamespaceIdentity {
    return this.#state.identity;
  }

  /** Whether it does nothing that others wait for. */
  get isIdle(): boolean {
    return this.#pipeline.unsettled === 0 && this.#upkeep.isIdle;
  }

  /** Whether its manifest contains all that it knows. */
  get isFlushed(): boolean {
    return this.#state.unflushedBytes === 0;
  }

  get residentBytes(): number {
    return this.#account.bytes;
  }

  /** Rows that become a segment leave the memory; those of a manifest's tail stay. */
  get flushableBytes(): number {
    if (this.isFlushed) return 0;
    const { frozen, memtable, memtableBytes } = this.#state;
    return frozen.length > 0 || memtable.documentBytes > limits.manifestTailBytesMax ? memtableBytes : 0;
  }

  /** The version of its last committed manifest; 0 where there is none yet. */
  get manifestVersion(): number {
    return this.#state.committed?.value.version ?? 0;
  }

  /** The namespace's version: the writes that readers see. */
  get version(): number {
    return this.#state.counters.version;
  }

  get vectors(): VectorStatistics {
    return vectorStatistics(this.#state.segments);
  }

  /** Numbers of each vector of the namespace; 0 where it has no vectors. */
  get vectorDims(): number {
    return this.#state.vector?.dims ?? 0;
  }

  /** Whether another one must be opened in its place. */
  get closed(): boolean {
    return this.#closed || this.#pipeline.broken;
  }

  /** Closes the actor: it takes no further work. What it has submitted goes on, and its successor replays it from the log. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#upkeep.cancelTimers();
    this.#account.release();
    closeReaders(this.#state);
    if (this.#reportArmed) void this.#report();
  }

  /** See NamespaceQueries. */
  get queries(): NamespaceQueries {
    return this.#queries;
  }

  /** Writes a batch, and answers once it is durable and readers see it. `deadlineMs` is the time that the request has left. */
  async write(write: PreparedWrite, deadlineMs: number): Promise<ActorReply> {
    if (this.#pipeline.waiting >= limits.mailboxWaitingMax) {
      throw new ApiError('write_busy', 'too many writes wait for this namespace; nothing was written', {
        retryAfter: 1,
      });
    }
    checkVectors(write, this.#state.vector);
    await this.#namedElsewhere();
    const created = this.#created;
    this.#created = false;
    const embedded = await embedBatch(this.#components, this.#state, write.batch, deadlineMs);
    const { applied, batch } = await this.#pipeline.inTurn(() =>
      this.#submit({ ...write, batch: embedded.batch }),
    );
    const [result] = await confirmedInTime(this.#components.clock, Promise.all([applied, this.#ready]));
    this.#afterWrite();
    const delayMs = this.#upkeep.answerDelayMs(batch.buffer.byteLength);
    if (delayMs > 0) await this.#components.clock.sleep(delayMs);
    return reply(
      `{"written":${batch.documentOffsets.length},"deleted":${result.deleted},"version":${result.version},` +
        `"stored_bytes":${this.#state.storedBytes},"created":${created}}`,
      {
        documents: batch.documentOffsets.length + batch.deletes.length,
        bytes: batch.buffer.byteLength,
        ...tokenMeter(this.#state.embed?.provider, embedded.tokens),
      },
    );
  }

  /** The first sequence that an import may have which begins now. */
  get firstSequenceOfImport(): number {
    return firstSequenceOfImport(this.#pipeline.lastSequence);
  }

  /** A stored segment becomes part of the namespace. Answers once it is durable and seen. */
  async import(segment: ImportedSegment, { textOnly, tookMs }: ImportFigures): Promise<ActorReply> {
    await this.#namedElsewhere();
    const created = this.#created;
    this.#created = false;
    const { rowCount, minSequence: firstSequence } = segment.toc;
    const committed = this.#pipeline.inTurn(async () => {
      await this.#pipeline.whenApplied();
      if (this.closed || this.#dropped)
        throw new ActorClosed(`the actor of "${this.identity.name}" has closed`);
      let isDurable = false;
      const append = async () => {
        const appended = await this.#pipeline.appendImport(encodeImport(segment), {
          firstSequence,
          count: rowCount,
        });
        isDurable = true;
        return appended;
      };
      try {
        await this.#upkeep.commit(() => commitImport(this.#components, this.#state, segment, append));
      } catch (error) {
        // No other manifest may be committed with its rows: the next actor replays the record.
        if (isDurable) this.close();
        throw isDurable ? importUnknown(error) : error;
      }
      this.#measure();
      return this.#state.counters.version;
    });
    const [version] = await Promise.all([committed, this.#ready]);
    this.#afterWrite();
    return reply(
      `{"written":${rowCount},"deleted":0,"version":${version},"stored_bytes":${this.#state.storedBytes},` +
        `"created":${created},"rows":${rowCount},"text_only":${textOnly},"took_ms":${tookMs()}}`,
      { documents: rowCount, bytes: segment.bytes },
    );
  }

  async #submit(write: PreparedWrite): Promise<{ batch: LoadedBatch; applied: Promise<AppliedWrite> }> {
    // Several large ones are ready at once when their clients were answered at once: reads have their turn between them.
    if (isLarge(write.batch)) await this.#components.clock.yieldTurn();
    for (;;) {
      this.#refuseWhileFull();
      const { epoch } = this.#pipeline;
      const batch = write.kind === 'patch' ? await this.#merged(write.batch) : write.batch;
      if (this.closed || this.#dropped)
        throw new ActorClosed(`the actor of "${this.identity.name}" has closed`);
      // A write that the patch was merged with was refused meanwhile: its words must not come back through the patch.
      if (epoch !== this.#pipeline.epoch) continue;
      const items = batch.documentOffsets.length + batch.deletes.length;
      return { batch, applied: items === 0 ? this.#nothingToDo() : this.#submitted(batch) };
    }
  }

  #submitted(batch: LoadedBatch): Promise<AppliedWrite> {
    const { applied } = this.#pipeline.submit(batch);
    this.#measure();
    // Also where nobody waits for it any more.
    const measure = () => this.#measure();
    applied.then(measure, measure);
    return applied;
  }

  /** Tells the budget what it holds. Called on every write: the segments are walked only where they have changed. */
  #measure(): void {
    const state = this.#state;
    this.#account.set('memtables', state.memtableBytes);
    this.#account.set('overlay', this.#pipeline.pendingBytes);
    if (state.segments === this.#measuredSegments && state.committed === this.#measuredManifest) return;
    this.#measuredSegments = state.segments;
    this.#measuredManifest = state.committed;
    this.#account.set('manifests', manifestBytes(state, state.segments));
    this.#account.set('readers', readerBytes(state.segments));
  }

  /** A patch reads what it changes. Where that is gone, nothing was written yet: whoever has the name now is asked. */
  async #merged(patches: LoadedBatch): Promise<LoadedBatch> {
    const { clock, shares } = this.#components;
    try {
      return await mergePatches(
        this.#state,
        this.#pipeline,
        patches,
        clock,
        shares.of(this.identity.tenantId),
      );
    } catch (error) {
      if (!(error instanceof MissingObjectError)) throw error;
      this.close();
      throw new ActorClosed(`the actor of "${this.identity.name}" has lost an object`, { cause: error });
    }
  }

  /** `PATCH` of the namespace itself: one after the other, so that what was asked for last holds. */
  update(body: Uint8Array, deadlineMs: number): Promise<ActorReply> {
    return this.#updates.run(async () => {
      await this.#ready;
      const tokens = await updateNamespace(this.#components, this.#state, body, deadlineMs);
      return reply(this.#queries.describe(), tokenMeter(this.#state.embed?.provider, tokens));
    });
  }

  flush(): Promise<void> {
    return this.#upkeep.flush();
  }

  /** Flushes because this namespace's records hold up the log: while it lasts, writers wait sooner than during `flush`. */
  flushForLog(): Promise<void> {
    return this.#upkeep.flushForLog();
  }

  /** Deletes retired segments whose grace is over, and rewrites those that have held deleted documents for too long. */
  async collect(): Promise<void> {
    await this.#upkeep.collect();
    await this.#upkeep.rewriteOverdue();
  }

  /** Has another namespace begin as this one is: see share-namespace.ts. */
  async share(request: ShareRequest, onStored: OnStored): Promise<SharedNamespace | null> {
    await this.#ready;
    return this.#upkeep.share(request, onStored);
  }

  /** Lets go what a namespace holds that began as this one was. */
  async release(holderId: string): Promise<void> {
    await this.#ready;
    await this.#upkeep.release(holderId);
  }

  /** Space that deletes have freed comes back soon: asked for by somebody whose quota is full. */
  reclaim(): void {
    this.#upkeep.reclaim();
  }

  /** Ends the actor after what it has accepted is durable and flushed. */
  async drain(): Promise<void> {
    this.#upkeep.drain();
    await this.#pipeline.whenIdle();
    if (this.closed) return;
    if (!this.isFlushed) await this.flush();
    await this.#report();
  }

  /** The name is gone: the objects go at once, what is still in the log is dropped at replay. */
  async drop(): Promise<void> {
    this.#dropped = true;
    this.#upkeep.stop();
    await this.#pipeline.whenIdle();
    // What was written until now is metered, though it is gone: durably, before its records may leave the log.
    await this.#tell();
    const { logger } = this.#components;
    const { namespaceId } = this.identity;
    const erase = () => eraseNamespace(this.#components, namespaceId);
    await this.#upkeep.inTurn(erase);
    // What was being built has stored, or is about to store, an object that nobody will name.
    void this.#upkeep
      .whenBuilt()
      .then((built) => (built ? erase() : undefined))
      .catch((error: unknown) =>
        logger.error('what was built of a deleted namespace is left to the sweep', {
          namespaceId,
          error: describeError(error),
        }),
      );
    for (const [logId, { slot, index }] of this.#state.applied) {
      this.#components.log.flushed(this.identity, { logId, slot, index });
    }
    this.close();
  }

  async #becomeReady(opening: Opening): Promise<void> {
    const { tenantId, name, namespaceId } = opening.identity;
    const confirmed = opening.created
      ? this.#components.directory.confirm(tenantId, name, namespaceId)
      : Promise.resolve();
    confirmed.catch(() => {});
    if (opening.created) this.#naming = confirmed;
    await this.#upkeep.takeOwnership();
    await confirmed.catch((error: unknown) => {
      throw notConfirmed(error);
    });
    this.#naming = null;
  }

  get isNamed(): boolean {
    return this.#naming === null;
  }

  /** Nothing may be seen of a namespace whose name may yet be lost, with the server that makes it or when its tenant moves there. */
  async named(): Promise<void> {
    if (this.#naming === null) return;
    await confirmedInTime(this.#components.clock, this.#naming).catch((cause: unknown) => {
      if (isNameLost(cause)) {
        // Before anybody asks it again: its own readiness fails a moment later.
        this.close();
        throw nameLost(cause);
      }
      const sentence = 'the namespace was not made in time; nothing was written';
      throw new ApiError('unavailable', sentence, { retryAfter: 1, cause });
    });
  }

  /** On this server the name's record goes ahead of the first one of the namespace, in the same log. */
  async #namedElsewhere(): Promise<void> {
    const { ownership } = this.#components;
    if (!this.isNamed && !ownership.isOwn(placementKey(this.identity.tenantId, ''))) await this.named();
  }

  /** Deleting no ids is a write of nothing: no record, no new version. */
  #nothingToDo(): Promise<AppliedWrite> {
    return Promise.resolve({ version: this.#state.counters.version, deleted: 0 });
  }

  /** Throws 503 `write_busy` while frozen memtables wait for their flush: memory is bounded. */
  #refuseWhileFull(): void {
    if (!this.#upkeep.isFull) return;
    throw new ApiError(
      'write_busy',
      'writes arrive faster than this namespace is stored; nothing was written',
      {
        retryAfter: 1,
      },
    );
  }

  #afterWrite(): void {
    this.#upkeep.afterWrite();
    this.#armReport();
  }

  /** The tenant's ledger hears of changes, a few times a second at most. */
  #armReport(): void {
    if (this.#reportArmed) return;
    this.#reportArmed = true;
    this.#components.clock.after(reportEveryMs, () => {
      if (!this.#closed) void this.#report();
    });
  }

  /** Reports to the tenant. A report that is lost is made good by the next, or by the next opening. */
  async #report(): Promise<void> {
    this.#reportArmed = false;
    await this.#tell().catch(() => {});
  }

  async #tell(): Promise<void> {
    const { tenantId, name } = this.#state.identity;
    await this.#components.directory.report(tenantId, name, reportOf(this.#state, this.isFlushed));
  }
}

function importUnknown(cause: unknown): ApiError {
  const sentence = 'the file is stored, but its manifest is not: its rows are there, or will be soon';
  return new ApiError('write_unknown', sentence, { retryAfter: 1, cause });
}
