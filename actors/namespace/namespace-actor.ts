import { documentQuerySchema } from '../../protocol/document.ts';
import { ApiError, invalidField } from '../../protocol/errors.ts';
import { documentIdProblem } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import {
  type CountRequest,
  parseCountBody,
  parseCountQuery,
  parseSearchBody,
  parseSearchQuery,
  parseWarmBody,
  refuseUnbuilt,
  type SearchRequest,
} from '../../protocol/search.ts';
import { parseQueryWith } from '../../protocol/validate.ts';
import { AssertionError, DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { Serial } from '../../src/base/serial.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ActorReply, namespaceJson } from '../actor-reply.ts';
import type { ActorComponents } from '../components.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { readBody } from '../request-body.ts';
import type { QueryReport, Temperature } from '../search/answers.ts';
import { type QueryContext, runCount, runSearch, runWarm } from '../search/run-search.ts';
import { TimeSlice } from '../search/time-slice.ts';
import { emptyReadReport, type ReadReport } from '../storage/block-fetch.ts';
import { type NamespaceIdentity, segmentIdsOf } from '../storage/manifest.ts';
import { ActorClosed, Deposed } from '../storage/manifest-store.ts';
import { collectRetired } from './collect-garbage.ts';
import { segmentInManifest } from './commit-manifest.ts';
import { compactOnce } from './compact.ts';
import { flushNamespace, freeze, takeOwnership } from './flush.ts';
import type { LoadedBatch, NamespaceState } from './namespace-state.ts';
import { openNamespace } from './open.ts';
import { mergePatches } from './patch.ts';
import type { PreparedWrite } from './prepare-write.ts';
import { documentJson, findDocument, findWarm } from './read-document.ts';
import { takeSnapshot } from './take-snapshot.ts';
import { type AppliedWrite, WritePipeline } from './write-pipeline.ts';

/**
 * One namespace, one writer. Reads run beside each other over snapshots; writes go through the pipeline; flushes and
 * the change of owner run one at a time. An answer is JSON text.
 */
export interface Opening {
  readonly identity: NamespaceIdentity;
  /** The name was made by the request that opens it. */
  readonly created: boolean;
  readonly replayed: readonly ReplayedRecord[];
  /** The actor before it failed: only what the store says counts, not what the local disk remembers. */
  readonly again: boolean;
}

const reportEveryMs = 300;
const flushRetryMs = 1_000;

export class NamespaceActor {
  readonly #components: ActorComponents;
  readonly #state: NamespaceState;
  readonly #pipeline: WritePipeline;
  readonly #commits = new Serial();
  /** Resolves once the name is durable and this process owns the manifest: the first acknowledgement waits for it. */
  readonly #ready: Promise<void>;
  #created: boolean;
  #reportArmed = false;
  #dropped = false;
  #closed = false;
  #compacting = false;
  #draining = false;
  /** For eviction: when it was used last, by the monotonic clock. */
  lastUsedMs = 0;

  private constructor(components: ActorComponents, state: NamespaceState, opening: Opening) {
    this.#components = components;
    this.#state = state;
    this.#pipeline = new WritePipeline(components, state);
    this.#created = opening.created;
    this.#ready = this.#becomeReady(opening);
    // Not the owner, or of a name that was not made: it may acknowledge nothing, now or later.
    this.#ready.catch(() => this.close());
  }

  static async open(
    components: ActorComponents,
    opening: Opening,
    report: ReadReport,
  ): Promise<NamespaceActor> {
    const { identity, created, replayed, again } = opening;
    const state = await openNamespace(components, identity, { isNew: created, replayed, again, report });
    return new NamespaceActor(components, state, opening);
  }

  get identity(): NamespaceIdentity {
    return this.#state.identity;
  }

  get memoryBytes(): number {
    let bytes = 4_096;
    for (const memtable of this.#state.memtablesNewestFirst()) bytes += memtable.bytes;
    return bytes;
  }

  /** Whether it holds nothing that only it knows and does nothing that others wait for. */
  get isIdle(): boolean {
    return (
      this.#state.unflushedBytes === 0 &&
      this.#pipeline.unsettled === 0 &&
      this.#commits.waiting === 0 &&
      !this.#compacting
    );
  }

  /** Whether another one must be opened in its place. */
  get closed(): boolean {
    return this.#closed || this.#pipeline.broken;
  }

  /** It takes no further work. What it has submitted goes on; the next one replays it from the log. */
  close(): void {
    this.#closed = true;
  }

  /** A read that memory answers, without a promise; null where it takes one. */
  getWarm(id: string, beganAt: number): string | null {
    const place = findWarm(this.#state, id);
    if (place === 'cold') return null;
    // An id that no document can have is looked up like any other: only who finds nothing pays for judging it.
    if (place === null) throw badId(id) ?? noSuchDocument(id);
    const cpuMs = this.#components.clock.monotonic() - beganAt;
    return documentJson(place, { temperature: 'warm', storeGets: 0, storeBytes: 0, cpuMs, timedOut: false });
  }

  async write(write: PreparedWrite): Promise<ActorReply> {
    if (this.#pipeline.waiting >= limits.mailboxWaitingMax) {
      throw new ApiError('write_busy', 'too many writes wait for this namespace; nothing was written', {
        retryAfter: 1,
      });
    }
    const created = this.#created;
    this.#created = false;
    const { applied, batch } = await this.#pipeline.inTurn(() => this.#submit(write));
    const result = await this.#acknowledged(applied);
    this.#afterWrite();
    return this.#reply(
      `{"written":${batch.documentOffsets.length},"deleted":${result.deleted},"version":${result.version},` +
        `"stored_bytes":${this.#state.storedBytes},"created":${created}}`,
      { documents: batch.documentOffsets.length + batch.deletes.length, bytes: batch.buffer.byteLength },
    );
  }

  async #submit(write: PreparedWrite): Promise<{ batch: LoadedBatch; applied: Promise<AppliedWrite> }> {
    for (;;) {
      this.#refuseWhileFull();
      const { epoch } = this.#pipeline;
      const batch =
        write.kind === 'patch'
          ? await mergePatches(this.#state, this.#pipeline, write.batch, this.#components.clock)
          : write.batch;
      if (this.closed || this.#dropped)
        throw new ActorClosed(`the actor of "${this.identity.name}" has closed`);
      // A write that the patch was merged with was refused meanwhile: its words must not come back through the patch.
      if (epoch !== this.#pipeline.epoch) continue;
      const items = batch.documentOffsets.length + batch.deletes.length;
      return { batch, applied: items === 0 ? this.#nothingToDo() : this.#pipeline.submit(batch).applied };
    }
  }

  async handle(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    switch (call.operation) {
      case 'getDocument':
        return this.#getDocument(call, opened);
      case 'search':
        return this.#search(call, parseSearch(call, body), opened);
      case 'count':
        return this.#count(call, parseCount(call, body), opened);
      case 'warm':
        return this.#warm(call, body, opened);
      case 'getNamespace':
        return this.#reply(this.describe());
      default:
        throw new ApiError('not_implemented', `${call.operation} is not built yet`);
    }
  }

  /** The Namespace resource. */
  describe(): string {
    const { identity, counters, storedBytes } = this.#state;
    return namespaceJson({ ...identity, ...counters, storedBytes });
  }

  async flush(): Promise<void> {
    await this.#flushing(async () => {
      await this.#flushFrozen();
      await flushNamespace(this.#components, this.#state);
    });
  }

  /** Ends the actor after what it has accepted is durable and flushed. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#pipeline.whenIdle();
    if (this.closed) return;
    if (this.#state.unflushedBytes > 0) await this.flush();
  }

  /** The name is gone: the objects go at once, what is still in the log is dropped at replay. */
  async drop(): Promise<void> {
    this.#dropped = true;
    await this.#pipeline.whenIdle();
    const { namespaceId } = this.identity;
    await this.#commits.run(async () => {
      const { store } = this.#components;
      // The manifest goes first: segments without a manifest are orphans, a manifest without segments is damage.
      await store.delete(paths.namespaceManifest(namespaceId));
      const { segments, committed } = this.#state;
      const owned = segmentIdsOf({
        segments: segments.map(segmentInManifest),
        retired: committed?.value.retired ?? [],
      });
      for (const id of owned) await store.delete(paths.namespaceSegment(namespaceId, id));
    });
    for (const [logId, { seq, index }] of this.#state.applied) {
      this.#components.log.flushed(this.identity, { logId, seq, index });
    }
  }

  async #becomeReady(opening: Opening): Promise<void> {
    const { tenantId, name, namespaceId } = opening.identity;
    const confirmed = opening.created
      ? this.#components.directory.confirm(tenantId, name, namespaceId)
      : Promise.resolve();
    confirmed.catch(() => {});
    await this.#commits.run(() => takeOwnership(this.#components, this.#state));
    await confirmed.catch((error: unknown) => {
      throw notConfirmed(error);
    });
  }

  /** A client is not kept waiting for a slot whose outcome is not known; the write itself goes on. */
  async #acknowledged(applied: Promise<AppliedWrite>): Promise<AppliedWrite> {
    let giveUp = () => {};
    const tooLong = new Promise<never>((_, reject) => {
      giveUp = this.#components.clock.after(limits.writeUnknownAfterMs, () =>
        reject(
          new ApiError(
            'write_unknown',
            'object storage did not confirm the write in time: it may or may not be applied',
            {
              retryAfter: 1,
            },
          ),
        ),
      );
    });
    try {
      const [result] = await Promise.race([Promise.all([applied, this.#ready]), tooLong]);
      return result;
    } finally {
      giveUp();
    }
  }

  /** Deleting no ids is a write of nothing: no record, no new version. */
  #nothingToDo(): Promise<AppliedWrite> {
    return Promise.resolve({ version: this.#state.counters.version, deleted: 0 });
  }

  /** Memory is bounded: writers wait while frozen memtables do. */
  #refuseWhileFull(): void {
    if (this.#state.frozen.length < limits.frozenMemtablesMax || !this.#memtableIsFull()) return;
    throw new ApiError(
      'write_busy',
      'writes arrive faster than this namespace is stored; nothing was written',
      {
        retryAfter: 1,
      },
    );
  }

  #memtableIsFull(): boolean {
    const { memtable } = this.#state;
    return memtable.bytes >= limits.memtableBytesMax || memtable.rowCount >= limits.memtableDocumentsMax;
  }

  #afterWrite(): void {
    if (this.#memtableIsFull() && this.#state.frozen.length < limits.frozenMemtablesMax) {
      freeze(this.#state);
      this.#flushInBackground();
    }
    this.#armReport();
  }

  #flushInBackground(): void {
    // Frozen memtables only: the one that takes writes would become a needlessly small segment.
    this.#flushing(() => this.#flushFrozen()).then(
      () => this.#compactInBackground(),
      (error: unknown) => {
        this.#components.logger.error('a flush failed', {
          namespaceId: this.identity.namespaceId,
          error: describeError(error),
        });
        if (!this.closed) this.#components.clock.after(flushRetryMs, () => this.#flushInBackground());
      },
    );
  }

  /** Until the policy finds nothing more. A failure leaves the segments as they are; the next flush tries again. */
  #compactInBackground(): void {
    if (this.#compacting || this.#ending) return;
    this.#compacting = true;
    this.#compactAll()
      .catch((error: unknown) => {
        const fields = { namespaceId: this.identity.namespaceId, error: describeError(error) };
        if (!this.#ending) this.#components.logger.error('a compaction failed', fields);
      })
      .finally(() => {
        this.#compacting = false;
      });
  }

  async #compactAll(): Promise<void> {
    const inTurn = (work: () => Promise<void>) => this.#flushing(work);
    while (!this.#ending && (await compactOnce(this.#components, this.#state, inTurn)));
  }

  get #ending(): boolean {
    return this.closed || this.#dropped || this.#draining;
  }

  /** Flushes one at a time. One that shows that the state is not that of the store any more closes the actor. */
  async #flushing(flush: () => Promise<void>): Promise<void> {
    await this.#commits.run(async () => {
      if (this.#dropped || this.closed) return;
      try {
        await flush();
        await collectRetired(this.#components, this.#state);
      } catch (error) {
        if (error instanceof Deposed || error instanceof AssertionError || error instanceof DataError)
          this.close();
        throw error;
      }
      this.#armReport();
    });
  }

  async #flushFrozen(): Promise<void> {
    while (this.#state.frozen.length > 0) await flushNamespace(this.#components, this.#state);
  }

  /** The tenant's ledger hears of changes, a few times a second at most. */
  #armReport(): void {
    if (this.#reportArmed) return;
    this.#reportArmed = true;
    this.#components.clock.after(reportEveryMs, () => {
      this.#reportArmed = false;
      const { identity, counters, storedBytes } = this.#state;
      const { namespaceId } = identity;
      const { docsWritten, bytesWritten } = counters;
      const report = { namespaceId, docsWritten, bytesWritten, storedBytes };
      if (!this.#dropped) this.#components.directory.report(identity.tenantId, identity.name, report);
    });
  }

  async #getDocument(call: ActorCall, opened: OpenedNow): Promise<ActorReply> {
    const refusal = badId(call.argument);
    if (refusal !== null) throw refusal;
    await this.#reach(minVersionOf(call));
    const slice = new TimeSlice(this.#components.clock, call.deadlineMs);
    const place = await slice.waitFor(findDocument(this.#state, call.argument, opened.report));
    if (place === null) throw noSuchDocument(call.argument);
    const report: QueryReport = {
      ...opened.report,
      temperature: opened.temperature(),
      cpuMs: slice.cpuMs,
      timedOut: false,
    };
    return this.#reply(documentJson(place, report), { report: opened.report, cpuMs: slice.cpuMs });
  }

  async #search(call: ActorCall, request: SearchRequest, opened: OpenedNow): Promise<ActorReply> {
    await this.#reach(request.min_version);
    return this.#query(call, opened, (context) => runSearch(context, request));
  }

  async #count(call: ActorCall, request: CountRequest, opened: OpenedNow): Promise<ActorReply> {
    await this.#reach(request.min_version);
    return this.#query(call, opened, (context) => runCount(context, request));
  }

  #warm(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    const request = parseWarmBody(body === null || body.byteLength === 0 ? undefined : readBody(body));
    return this.#query(call, opened, (context) => runWarm(context, request));
  }

  async #query(
    call: ActorCall,
    opened: OpenedNow,
    run: (context: QueryContext) => Promise<string>,
  ): Promise<ActorReply> {
    const { clock, cursorKey } = this.#components;
    const slice = new TimeSlice(clock, Math.min(call.deadlineMs, call.caller.querySeconds * 1_000));
    const context: QueryContext = {
      identity: this.identity,
      snapshot: takeSnapshot(this.#state),
      slice,
      report: opened.report,
      temperature: opened.temperature(),
      cursorKey,
      monotonic: () => clock.monotonic(),
      beganAt: opened.beganAt,
    };
    const json = await run(context);
    return this.#reply(json, { report: opened.report, cpuMs: slice.cpuMs });
  }

  /** Waits a little for a version that a caller has seen elsewhere. */
  async #reach(minVersion: number | undefined): Promise<void> {
    if (minVersion === undefined) return;
    const { clock } = this.#components;
    const until = clock.monotonic() + limits.minVersionWaitMs;
    while (this.#state.counters.version < minVersion) {
      if (clock.monotonic() >= until) {
        throw new ApiError('unavailable', `version ${minVersion} of this namespace is not here yet`, {
          retryAfter: 1,
        });
      }
      await clock.sleep(10);
    }
  }

  #reply(json: string, metered: Partial<ActorReply> = {}): ActorReply {
    return { status: 200, json, report: emptyReadReport(), cpuMs: 0, documents: 0, bytes: 0, ...metered };
  }
}

/** How the namespace was found by this request, and what opening it read. */
export interface OpenedNow {
  readonly report: ReadReport;
  readonly beganAt: number;
  temperature(): Temperature;
}

/** Why nothing of a namespace whose name was not confirmed can be acknowledged. */
function notConfirmed(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  switch (error.code) {
    case 'write_busy':
      return error;
    case 'not_found':
      // Nobody will ever find what was written under an id that has no name.
      return new ApiError('unavailable', 'the namespace was not made; nothing was written', {
        retryAfter: 1,
      });
    default:
      return new ApiError(
        'write_unknown',
        'the namespace may or may not have been made, with this write in it',
        {
          retryAfter: 1,
        },
      );
  }
}

function badId(id: string): ApiError | null {
  const problem = documentIdProblem(id);
  return problem === null ? null : invalidField('id', problem);
}

function noSuchDocument(id: string): ApiError {
  return new ApiError('not_found', `there is no document with the id ${JSON.stringify(id.slice(0, 100))}`);
}

function parseSearch(call: ActorCall, body: Uint8Array | null): SearchRequest {
  const request =
    body === null
      ? parseSearchQuery(parseQueryString(call.query), parseText)
      : parseSearchBody(readBody(body));
  refuseUnbuilt(request);
  return request;
}

function parseCount(call: ActorCall, body: Uint8Array | null): CountRequest {
  const request =
    body === null ? parseCountQuery(parseQueryString(call.query), parseText) : parseCountBody(readBody(body));
  refuseUnbuilt(request);
  return request;
}

const parseText = (text: string) => readBody(Buffer.from(text));

function minVersionOf(call: ActorCall): number | undefined {
  if (call.query === '') return undefined;
  return parseQueryWith(documentQuerySchema, parseQueryString(call.query)).min_version;
}
