/**
 * The actors of this thread: opens them once and lazily, hands them their calls, closes one that failed so that the next
 * call reopens it from durable state. Which ones stay open is open-actors.ts.
 */
import { documentChangeOf, effectOf, endsBegunWork, takesFile } from '../../protocol/effect-of.ts';
import { ApiError, noSuchNamespace, sourceIsGone } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall, NewNamespace, ReceivedFile, ResolvedNamespace } from '../../protocol/messages.ts';
import { type Owners, placementKey, type Standing } from '../../protocol/placement.ts';
import type { ActorStatistics, VectorStatistics } from '../../protocol/worker-tasks.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { LruMap } from '../../src/base/lru.ts';
import { unpackMessage } from '../../src/base/msgpack.ts';
import { SerialByKey } from '../../src/base/serial-by-key.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { type ActorReply, reply } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { MovedAway } from '../actor/ownership.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import type { LogTarget } from '../log/unflushed.ts';
import { dropObjects } from '../namespace/drop.ts';
import { importFile } from '../namespace/import-file.ts';
import { NamespaceActor } from '../namespace/namespace-actor.ts';
import type { OpenedNow } from '../namespace/namespace-queries.ts';
import { namespaceOf, type PreparedWrite, prepareWrite } from '../namespace/prepare-write.ts';
import { emptyReadTally, MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import type { Manifest, NamespaceIdentity } from '../storage/manifest.ts';
import { cacheManifest } from '../storage/manifest-cache.ts';
import { ActorClosed, type Committed } from '../storage/manifest-store.ts';
import { ReadDeadline, ReadTimedOut } from '../storage/read-deadline.ts';
import { ReadShares } from '../storage/read-share.ts';
import { TenantActor } from '../tenant/tenant-actor.ts';
import { handleTenantCall } from '../tenant/tenant-calls.ts';
import { ownTurn, type Turn } from '../thread/turn.ts';
import { appliedInStore } from './applied-in-store.ts';
import { Copies } from './copies.ts';
import { Drops } from './drops.ts';
import { flushMoving } from './flush-moving.ts';
import { guardActor } from './guard-actor.ts';
import {
  drainAll,
  Eviction,
  type Held,
  hold,
  OpenActors,
  placementKeyOfSlot,
  slotKey,
  withHeld,
} from './open-actors.ts';
import { linkOf, NamespaceIsLink, readSource } from './read-link.ts';
import { keyOfTarget, recoverTargets } from './recover-targets.ts';
import { answerSharing } from './sharing-calls.ts';
import { StorageQuota } from './storage-quota.ts';
import { ThreadPlace } from './thread-place.ts';
import { WaitingReplays } from './waiting-replays.ts';

/** How long a query may put together what it found, after its deadline. */
const lateAnswerMs = 2_000;
/**
 * An opening is charged with the time that it took, so much at most, in milliseconds: what it does is done between waits for the
 * disk and the store, and can't be told from them.
 */
const openingMsMax = 5;
/** A call meets an actor that closes under it once, hardly ever twice. */
const opensOfOneCallMax = 4;
/** Manifest versions remembered of namespaces that were put away, about 120 bytes each; others are read from the store. */
const putAwayVersionsMax = 50_000;
/** A look-up of a name is on its way for seconds at most. */
const droppedMax = 10_000;
/** How often a stop looks whether the last changes were answered, in milliseconds. */
const changesLookMs = 10;
const noCache = { bytes: 0, serving: false };

export class ActorHost {
  readonly #components: ActorComponents;
  /** Ids of namespaces that are being dropped: an actor that is still opening has not heard of it. */
  readonly #dropping = new Set<string>();
  /** Ids that were dropped lately, which are never used again: whoever looked the name up before may only now begin to open one. */
  readonly #dropped = new LruMap<string, true>(droppedMax);
  readonly #namespaces: OpenActors<NamespaceActor>;
  readonly #tenants: OpenActors<TenantActor>;
  readonly #eviction: Eviction;
  readonly #replays: WaitingReplays;
  readonly #quota: StorageQuota;
  readonly #readShares: ReadShares;
  readonly #copies: Copies;
  readonly #place: ThreadPlace;
  /** Manifest versions by namespace id: see `Opening.putAwayVersion`. */
  #putAwayVersions = new LruMap<string, number>(putAwayVersionsMax);
  readonly #openActorsMax: number;
  readonly #imports = new SerialByKey<string>();
  readonly #drops: Drops;
  readonly #foundAs = { warm: 0, local: 0, cold: 0 };
  #recovering: Promise<unknown> = Promise.resolve();
  /** Whether `recover` was called: what comes later is recovered as it comes. */
  #recovers = false;
  #draining = false;
  /** Changes that were taken and not answered. */
  #changes = 0;
  #beginDrain = () => {};
  readonly #drainBegan: Promise<void>;

  constructor(
    components: ActorComponents,
    options: { readonly openActorsMax?: number; readonly threads?: number; readonly index?: number } = {},
  ) {
    const { clock, memory, fetcher } = components;
    this.#components = components;
    this.#readShares = new ReadShares(options.threads);
    this.#copies = new Copies(components, this.#readShares);
    this.#place = new ThreadPlace(components.ownership, options);
    this.#openActorsMax = options.openActorsMax ?? limits.openActorsMax;
    this.#namespaces = new OpenActors(clock, (actor) =>
      this.#putAwayVersions.set(actor.identity.namespaceId, actor.manifestVersion),
    );
    this.#tenants = new OpenActors(clock);
    const kinds = [this.#namespaces, this.#tenants];
    const { cache: blocks, fresh = null } = fetcher.options;
    this.#eviction = new Eviction({ ...components, blocks, fresh }, kinds);
    this.#replays = new WaitingReplays(memory);
    this.#quota = new StorageQuota(components);
    this.#drops = new Drops(components);
    this.#drainBegan = new Promise((resolve) => {
      this.#beginDrain = resolve;
    });
  }

  /** Takes a durable record of a target of this thread. Called before anything is served. */
  acceptReplay(record: ReplayedRecord): void {
    this.#replays.accept(record);
  }

  /** Opens and flushes every replayed target in the background, so that the old logs are soon done with; those that come later too. */
  recover(): void {
    this.#recovers = true;
    this.#recoverWaiting(0);
  }

  #recoverWaiting(afterMs: number): void {
    const { ownership } = this.#components;
    const targets = this.#replays.targets().filter((target) => ownership.isReady(keyOfTarget(target)));
    const recovery = {
      afterMs,
      components: this.#components,
      recover: (target: LogTarget) => this.#recover(target),
      isOver: () => this.#draining,
      over: this.#drainBegan,
    };
    this.#recovering = Promise.all([this.#recovering, recoverTargets(recovery, targets)]);
  }

  /**
   * Takes a later view. In this turn everything that is not this server's any more is put away, before its log says so to others: from
   * then on they may own it.
   */
  adopt(standing: Standing): void {
    const { ownership } = this.#components;
    if (!ownership.adopt(standing)) return;
    this.#copies.clear();
    // Whatever moved away and comes back may have been changed elsewhere.
    this.#putAwayVersions = new LruMap(putAwayVersionsMax);
    const isOwnSlot = (key: string) => ownership.isOwn(placementKeyOfSlot(key));
    this.#namespaces.giveUp((key) => !isOwnSlot(key));
    this.#tenants.giveUp((key) => !isOwnSlot(key));
    this.#replays.drop((target) => !ownership.isOwn(keyOfTarget(target)));
  }

  /** Records of targets that have come to this server follow: see `logCalls.replayBegin`. */
  beginReplay(standing: Standing, chain: readonly Owners[]): void {
    const { ownership } = this.#components;
    this.adopt(standing);
    ownership.begin(chain);
    this.#replays.drop((target) => !ownership.isReady(keyOfTarget(target)));
  }

  /** Everything that has come by this placement was replayed: it may be opened. Requests wait for that, so they come before recovery. */
  endReplay(placement: number): void {
    this.#components.ownership.settle(placement);
    if (this.#recovers && !this.#draining) this.#recoverWaiting(limits.recoverAfterMs);
  }

  /** Answers a document that memory has, without a promise: by far the most frequent call. Null where the call must take the long way. */
  getWarm(call: ActorCall): Buffer | null {
    if (call.query !== '' || call.link !== undefined) return null;
    const slot = this.#namespaces.get(slotKey(call.tenantId, call.namespace));
    if (slot === undefined || slot.actor === null || slot.actor.closed || !slot.actor.isNamed) return null;
    if (this.#components.evidence?.isFresh() === false) return null;
    slot.lastUsedMs = this.#components.clock.monotonic();
    const answer = slot.actor.queries.getWarm(call.argument, slot.lastUsedMs);
    if (answer !== null) this.#foundAs.warm++;
    return answer;
  }

  /** Answers a call. `turn` says whose request it is, and whether anybody still waits for it. */
  async handle(
    call: ActorCall,
    body: Uint8Array | null,
    turn: Turn = ownTurn(this.#components.clock),
  ): Promise<ActorReply> {
    // What was accepted before still has to end: it asks and tells the tenants that live here.
    if (this.#draining && !endsBegunWork(call.operation))
      throw this.#components.ownership.refusalOfDrain(call);
    if (call.fromCopy === true) return this.#copies.read(call, body, turn);
    const { memory } = this.#components;
    const bodyBytes = body?.byteLength ?? 0;
    const isChange = isAwaited(call.operation);
    // Before its own body counts: a write as large as the whole budget gets in when nothing else is there.
    if (effectOf(call.operation).meters === 'write') this.#refuseWhileFull(call.tenantId);
    memory.add('bodies', bodyBytes);
    if (isChange) this.#changes++;
    try {
      const answer = await this.#untilOpen(() => this.#handle(call, body, turn));
      // What a change answers its record in the log has confirmed.
      if (tellsWhatIs(call)) await this.#confirm();
      return answer;
    } catch (error) {
      // That something is not there is an answer too.
      if (error instanceof ApiError && error.status === 404) await this.#confirm();
      const isUnavailable = error instanceof ApiError && error.code === 'unavailable';
      const isNothingDone = error instanceof StoreError || isUnavailable;
      const { ownership } = this.#components;
      // Its log may have refused it, or its actor have closed, only because of that.
      if (isNothingDone && !ownership.isOwn(placementKey(call.tenantId, call.namespace)))
        throw error instanceof MovedAway ? error : new MovedAway(ownership.placement, error);
      if (!(error instanceof StoreError)) throw error;
      throw new ApiError('unavailable', 'object storage did not answer; try again', {
        retryAfter: 1,
        cause: error,
      });
    } finally {
      memory.add('bodies', -bodyBytes);
      if (isChange) this.#changes--;
      this.#eviction.makeRoom();
    }
  }

  /** Answers may go out that were made before; throws 503 where another server may own what they tell of. */
  async #confirm(): Promise<void> {
    const { evidence } = this.#components;
    if (evidence !== null && !evidence.isFresh()) await evidence.confirm();
  }

  #refuseWhileFull(tenantId: number): void {
    if (!this.#eviction.isFullFor(tenantId)) return;
    const sentence =
      'the memory of this server is taken up by writes that are being stored; nothing was written';
    throw new ApiError('write_busy', sentence, { retryAfter: 1 });
  }

  async #handle(call: ActorCall, body: Uint8Array | null, turn: Turn): Promise<ActorReply> {
    const key = placementKey(call.tenantId, call.namespace);
    const { ownership } = this.#components;
    if (!ownership.isReady(key)) await ownership.whenReady(key);
    if (call.operation === internalCalls.dropNamespace) return this.#drops.run(call, () => this.#erase(call));
    if (call.operation === internalCalls.collectNamespace) return this.#collect(call);
    const shared = await this.#answerSharing(call, body);
    if (shared !== null) return shared;
    if (call.namespace === '')
      return this.#inTenant(call.tenantId, (actor) => handleTenantCall(actor, call, body));
    if (call.operation === 'updateNamespace') return this.#update(call, body ?? new Uint8Array());
    if (call.operation === 'importDocuments')
      return this.#import(call, receivedFile(body ?? new Uint8Array()));
    const writeKind = documentChangeOf(call.operation);
    if (writeKind === null) return this.#query(call, body, turn);
    const { lanes, shares } = this.#components;
    const write = await prepareWrite(
      lanes,
      writeKind,
      body ?? new Uint8Array(),
      shares.claim(call.tenantId, call.deadlineMs),
    );
    return this.#write(call, write);
  }

  async #write(call: ActorCall, write: PreparedWrite): Promise<ActorReply> {
    const { tenantId, caller } = call;
    const { documentOffsets, buffer } = write.batch;
    const adds = documentOffsets.length > 0;
    if (adds) await this.#quota.admit(tenantId, caller.storageQuotaBytes, buffer.byteLength);
    const opening = { create: namespaceOf(write), tally: emptyReadTally() };
    return this.#untilOpen(() =>
      this.#inWritable(call, opening, async (actor) => {
        const written = await this.#guard(call, actor, () => actor.write(write, call.deadlineMs));
        // Who deletes because the quota is full waits for the space, not for the next flush.
        if (!adds && this.#quota.isFull(tenantId, caller.storageQuotaBytes)) actor.reclaim();
        return written;
      }),
    );
  }

  /** Imports of one name run one after the other. How many run at once over all names is the lane's to say. */
  #import(call: ActorCall, file: ReceivedFile): Promise<ActorReply> {
    const { tenantId, caller } = call;
    return this.#imports.run(slotKey(tenantId, call.namespace), () =>
      importFile(this.#components, call, file, {
        admit: (bytes) => this.#quota.admit(tenantId, caller.storageQuotaBytes, bytes),
        withActor: (create, work) =>
          this.#inWritable(call, { create, tally: emptyReadTally() }, (actor) =>
            this.#guard(call, actor, () => work(actor)),
          ),
      }),
    );
  }

  #update(call: ActorCall, body: Uint8Array): Promise<ActorReply> {
    const opening = { create: null, tally: emptyReadTally() };
    return this.#inWritable(call, opening, (actor) =>
      this.#guard(call, actor, () => actor.update(body, call.deadlineMs)),
    );
  }

  /** An actor that closed before it took the work is opened again: nothing that anybody finds was written, so nothing is done twice. */
  async #untilOpen<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; tries < opensOfOneCallMax; tries++) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ActorClosed)) throw error;
      }
    }
    const sentence = 'this data is being opened again; nothing was written';
    throw new ApiError('unavailable', sentence, { retryAfter: 1 });
  }

  /** Flushes a target whose records hold up the log. */
  async flush(tenantId: number, namespace: string, namespaceId: string): Promise<void> {
    if (namespace === '') return this.#inTenant(tenantId, (actor) => actor.flush());
    const slot = this.#namespaces.get(slotKey(tenantId, namespace));
    if (slot !== undefined) {
      const held = await hold(slot, this.#components.clock);
      try {
        const { actor } = held;
        if (actor.identity.namespaceId === namespaceId && !actor.closed) return await actor.flushForLog();
      } finally {
        held.release();
      }
    }
    // Its actor failed and nobody called it since, or its name is gone: what the log holds of it is asked for again.
    this.#replays.forget({ tenantId, namespaceId });
    await this.#recoverNamespace({ tenantId, namespace, namespaceId });
  }

  /** Flushes what is open here and would move away with these owners: see flush-moving.ts. */
  flushMoving(owners: Owners, withinMs: number): Promise<void> {
    const { log } = this.#components;
    const lookUp = (target: LogTarget) => this.lookUp(target, log.logId);
    const components = { ...this.#components, lookUp };
    return flushMoving(components, [this.#namespaces, this.#tenants], { owners, withinMs });
  }

  /** Tells the log how far of it the target's manifest has, whoever owns the target now. Nothing is told of one that has none yet. */
  async lookUp(target: LogTarget, logId: string): Promise<void> {
    const { log } = this.#components;
    const through = await appliedInStore(this.#components, target, logId);
    if (through !== null) log.flushed(target, { logId, ...through });
  }

  /** Makes everything accepted durable and flushes it. No call is taken any more. */
  async drain(): Promise<void> {
    const ended = await Promise.allSettled([this.drainNamespaces()]);
    // Tenants last: the namespaces' last words go to them.
    ended.push(...(await drainAll(this.#tenants)));
    // What was flushed is told over another way than the word to end: the log's floor must not be behind it.
    ended.push(...(await Promise.allSettled([this.#components.log.heard()])));
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }

  /** Does the first half of `drain`. Every thread does it before any begins the second. */
  async drainNamespaces(): Promise<void> {
    this.#draining = true;
    this.#beginDrain();
    await this.#recovering;
    for (const end of await drainAll(this.#namespaces)) if (end.status === 'rejected') throw end.reason;
    await this.#whenChanged();
  }

  /** Resolves when every change that was taken is answered. An actor whose data has moved is nobody's to drain, and its last records may still be on their way. */
  async #whenChanged(): Promise<void> {
    const { clock } = this.#components;
    const untilMs = clock.monotonic() + limits.drainMs;
    while (this.#changes > 0 && clock.monotonic() < untilMs) await clock.sleep(changesLookMs);
  }

  get openNamespaces(): number {
    return this.#namespaces.size;
  }

  statistics(): Omit<ActorStatistics, 'busySeconds' | 'chargedMs' | 'longestTurn'> {
    const { memory, fetcher, warmCache } = this.#components;
    return {
      openNamespaces: this.#namespaces.size,
      openTenants: this.#tenants.size,
      evictions: this.#eviction.count,
      residentBytes: memory.bytes,
      residentBytesBy: memory.lines,
      vectors: this.#vectors(),
      blocks: { ...fetcher.found },
      foundAs: { ...this.#foundAs },
      copies: this.#copies.statistics,
      cache: warmCache?.stats() ?? noCache,
    };
  }

  #vectors(): VectorStatistics {
    let [indexed, waiting] = [0, 0];
    for (const [, { actor }] of this.#namespaces.slots()) {
      if (actor === null) continue;
      const { vectors } = actor;
      indexed += vectors.indexed;
      waiting += vectors.waiting;
    }
    return { indexed, waiting };
  }

  async #query(call: ActorCall, body: Uint8Array | null, turn: Turn): Promise<ActorReply> {
    const { clock } = this.#components;
    const beganAt = clock.monotonic();
    const { querySeconds, readInflightBytes } = call.caller;
    const deadline = new ReadDeadline(clock, Math.min(call.deadlineMs, querySeconds * 1_000), turn.beganAt);
    const share = this.#readShares.of(call.tenantId, readInflightBytes);
    // An opening is everybody's who asks meanwhile: it goes on where this query's time is over.
    const opening = emptyReadTally(share);
    const wasOpen = this.#namespaces.get(slotKey(call.tenantId, call.namespace))?.actor?.closed === false;
    const holding = this.#namespace(call, { create: null, tally: opening });
    const held = await deadline.wait(holding).catch((error) => {
      if (error instanceof ReadTimedOut) void holding.then(({ release }) => release()).catch(() => {});
      if (error instanceof NamespaceIsLink) return error;
      if (call.link !== undefined && error instanceof ApiError && error.code === 'not_found')
        throw sourceIsGone(call.link);
      throw error;
    });
    if (held instanceof NamespaceIsLink) {
      const spentMs = clock.monotonic() - beganAt;
      return readSource(this.#components, held, { call, body, spentMs });
    }
    if (!wasOpen) turn.charge(Math.min(clock.monotonic() - beganAt, openingMsMax));
    const answering = withHeld(held, (actor) => {
      // The source of the link was deleted, and its name is another namespace's by now.
      if (call.link !== undefined && call.link.sourceId !== actor.identity.namespaceId)
        throw sourceIsGone(call.link);
      const foundAs = wasOpen ? 'warm' : opening.storeGets > 0 ? 'cold' : 'local';
      const { storeGets, storeBytes, diskReads } = opening;
      this.#foundAs[foundAs]++;
      const tally = { ...emptyReadTally(share, deadline), storeGets, storeBytes, diskReads };
      const opened: OpenedNow = { tally, deadline, turn, foundAs };
      const { link } = actor;
      return this.#guard(call, actor, async () => {
        await actor.named();
        try {
          return await actor.queries.handle(link === null ? call : { ...call, link }, body, opened);
        } catch (error) {
          if (!(error instanceof MissingObjectError)) throw error;
          // Its manifest is older than a collection elsewhere. A read changes nothing, so it is done again.
          actor.close();
          throw new ActorClosed(error.message);
        }
      });
    });
    // What waits for somebody else's read may not see the deadline itself.
    return new ReadDeadline(clock, deadline.leftMs + lateAnswerMs).wait(answering);
  }

  #guard<T>(call: ActorCall, actor: NamespaceActor, work: () => Promise<T>): Promise<T> {
    return guardActor(this.#components, call, { actor, work });
  }

  /** Runs work with the namespace's actor, which stays open until it has ended. */
  async #inNamespace<T>(
    call: Pick<ActorCall, 'tenantId' | 'namespace'>,
    options: { readonly create: NewNamespace | null; readonly tally: ReadTally },
    work: (actor: NamespaceActor) => Promise<T>,
  ): Promise<T> {
    return withHeld(await this.#namespace(call, options), work);
  }

  /** As `#inNamespace`, for what changes it at the wish of a client. */
  #inWritable<T>(
    call: Pick<ActorCall, 'tenantId' | 'namespace'>,
    options: { readonly create: NewNamespace | null; readonly tally: ReadTally },
    work: (actor: NamespaceActor) => Promise<T>,
  ): Promise<T> {
    return this.#inNamespace(call, options, async (actor) => {
      if (actor.link !== null) throw new NamespaceIsLink(actor.link);
      return work(actor);
    });
  }

  async #namespace(
    call: Pick<ActorCall, 'tenantId' | 'namespace'>,
    options: { readonly create: NewNamespace | null; readonly tally: ReadTally },
  ): Promise<Held<NamespaceActor>> {
    const { clock, directory } = this.#components;
    const key = slotKey(call.tenantId, call.namespace);
    const known = this.#namespaces.get(key);
    if (known !== undefined) {
      const held = await hold(known, clock);
      const isDropped = this.#dropping.has(held.actor.identity.namespaceId);
      if (!held.actor.closed && !isDropped) return held;
      held.release();
      // One that broke is not closed by itself: what it holds would be counted for ever.
      if (held.actor.closed) held.actor.close();
      // Another call may have seen it too, and opened the next one.
      if (this.#namespaces.get(key) === known) {
        this.#namespaces.delete(key, known);
        if (!isDropped) this.#replays.forget(held.actor.identity);
      }
    }
    const resolved = await directory.lookUp(call.tenantId, call.namespace, options.create);
    if (resolved === null) throw noSuchNamespace(call.namespace);
    const link = linkOf(call.namespace, resolved);
    // One that stays at a version has an actor here, and objects.
    if (link !== null && link.version === null) throw new NamespaceIsLink(link);
    // It may have moved away while its name was looked up.
    this.#components.ownership.require(placementKey(call.tenantId, call.namespace));
    const { namespaceId, createdAt } = resolved;
    if (this.#dropping.has(namespaceId) || this.#dropped.get(namespaceId) === true)
      throw new ActorClosed(`"${call.namespace}" was deleted meanwhile`);
    const identity = { tenantId: call.tenantId, name: call.namespace, namespaceId, createdAt };
    this.#eviction.makeRoomFor(this.#namespaces, this.#openActorsMax);
    // Another call may have opened it while the name was looked up: then this one joins it.
    const open = () => this.#openNamespace(identity, resolved, options.tally);
    return hold(
      this.#namespaces.openOnce(key, () => this.#opening(open)),
      clock,
    );
  }

  async #openNamespace(
    identity: NamespaceIdentity,
    resolved: ResolvedNamespace,
    tally: ReadTally,
  ): Promise<NamespaceActor> {
    const { created, documentsKnown, vector, embed, branched } = resolved;
    const link = linkOf(identity.name, resolved);
    const again = await this.#replays.readAgain(identity, this.#components.log);
    const putAwayVersion = this.#putAwayVersions.get(identity.namespaceId) ?? null;
    const replayed = this.#replays.of(identity);
    const known = { created, documentsKnown, putAwayVersion };
    const opening = { identity, vector, embed, link, branched, replayed, again, ...known };
    try {
      const actor = await NamespaceActor.open(this.#components, opening, tally);
      this.#replays.taken(identity);
      return actor;
    } catch (error) {
      // What was read does not fit together: everything is asked for again.
      if (!(error instanceof StoreError)) this.#replays.forget(identity);
      throw error;
    }
  }

  async #inTenant<T>(tenantId: number, work: (actor: TenantActor) => Promise<T>): Promise<T> {
    return withHeld(await this.#tenant(tenantId), work);
  }

  async #tenant(tenantId: number): Promise<Held<TenantActor>> {
    const { clock, log } = this.#components;
    const key = slotKey(tenantId, '');
    const target = { tenantId, namespaceId: '' };
    const known = this.#tenants.get(key);
    if (known !== undefined) {
      const held = await hold(known, clock);
      if (!held.actor.closed) return held;
      held.release();
      // Another call may have seen it too, and opened the next one.
      if (this.#tenants.get(key) === known) {
        this.#tenants.delete(key, known);
        this.#replays.forget(target);
      }
    }
    this.#components.ownership.require(placementKey(tenantId, ''));
    this.#eviction.makeRoomFor(this.#tenants, this.#openActorsMax);
    const open = async () => {
      await this.#replays.readAgain(target, log);
      const actor = await TenantActor.open(this.#components, tenantId, this.#replays.of(target));
      this.#replays.taken(target);
      return actor;
    };
    return hold(
      this.#tenants.openOnce(key, () => this.#opening(open)),
      clock,
    );
  }

  /** Opens an actor. Damage is named in the server's log; whoever asked hears that the data can't be had now. */
  async #opening<Actor>(open: () => Promise<Actor>): Promise<Actor> {
    try {
      return await open();
    } catch (error) {
      // Its name was deleted while it opened, so the name is looked up again; or its data is gone, and that is tried in vain.
      if (error instanceof MissingObjectError) {
        this.#components.logger.error('an actor met a missing object', { error: describeError(error) });
        throw new ActorClosed(error.message, { cause: error });
      }
      if (!(error instanceof DataError)) throw error;
      this.#components.logger.error('an actor could not be opened', { error: describeError(error) });
      const message = 'stored data could not be read; nothing was written';
      throw new ApiError('unavailable', message, { retryAfter: 1, cause: error });
    }
  }

  async #erase(call: ActorCall): Promise<void> {
    const key = slotKey(call.tenantId, call.namespace);
    this.#dropping.add(call.argument);
    const slot = this.#namespaces.get(key);
    const held =
      slot === undefined ? undefined : await hold(slot, this.#components.clock).catch(() => undefined);
    try {
      // The name may have been made again meanwhile: that is another namespace, and it stays.
      if (slot !== undefined && held?.actor.identity.namespaceId === call.argument) {
        this.#namespaces.delete(key, slot);
        await held.actor.drop();
      } else {
        // Whoever owns it now may have it open.
        this.#components.ownership.require(placementKey(call.tenantId, call.namespace));
        await this.#dropById({
          tenantId: call.tenantId,
          namespace: call.namespace,
          namespaceId: call.argument,
        });
      }
    } catch (error) {
      // Tried again, it is dropped without being opened: what is metered then is what the log still has.
      if (held?.actor.identity.namespaceId === call.argument) held.actor.close();
      this.#replays.forget({ tenantId: call.tenantId, namespaceId: call.argument });
      throw error;
    } finally {
      held?.release();
      this.#dropping.delete(call.argument);
      this.#dropped.set(call.argument, true);
    }
  }

  async #collect(call: ActorCall): Promise<ActorReply> {
    await this.#inNamespace(call, { create: null, tally: emptyReadTally() }, async (actor) => {
      if (actor.identity.namespaceId === call.argument) await this.#guard(call, actor, () => actor.collect());
    });
    return reply('', { status: 204 });
  }

  /** A namespace that will live on this thread opens without asking the store, like one that was put away. */
  #remember(child: Committed<Manifest>): void {
    const { tenantId, name, namespaceId, version } = child.value;
    if (!this.#place.isHere(placementKey(tenantId, name))) return;
    cacheManifest(this.#components, child);
    this.#putAwayVersions.set(namespaceId, version);
  }

  #answerSharing(call: ActorCall, body: Uint8Array | null): Promise<ActorReply | null> {
    const opening = { create: null, tally: emptyReadTally() };
    return answerSharing(this.#components, call, body, {
      withActor: (work) =>
        this.#inNamespace(call, opening, (actor) => this.#guard(call, actor, () => work(actor))),
      isDropping: (namespaceId) => this.#dropping.has(namespaceId),
      remember: (child) => this.#remember(child),
    });
  }

  /** Drops a namespace whose name is gone and whose actor is not open. */
  async #dropById(target: LogTarget): Promise<void> {
    const { tenantId, namespace: name, namespaceId } = target;
    await this.#replays.readAgain(target, this.#components.log);
    await dropObjects(this.#components, { tenantId, name, namespaceId }, this.#replays.of(target));
    this.#replays.taken(target);
  }

  /** Brings what the log has of a target into its manifest. */
  async #recover(target: LogTarget): Promise<void> {
    if (target.namespace === '') await this.#inTenant(target.tenantId, (actor) => actor.flush());
    else await this.#recoverNamespace(target);
  }

  async #recoverNamespace(head: LogTarget): Promise<void> {
    const { tenantId, namespace, namespaceId } = head;
    const resolved = await this.#components.directory.resolve(tenantId, namespace, null);
    if (resolved?.namespaceId === namespaceId) {
      const opening = { create: null, tally: emptyReadTally() };
      await this.#inNamespace({ tenantId, namespace }, opening, (actor) => actor.flush());
      return;
    }
    // Its name was deleted, or never became durable: nobody can ever see these records.
    await this.#dropById(head);
  }
}

/** Whether the answer tells what there is, and not only what became of a change. */
function tellsWhatIs({ operation }: ActorCall): boolean {
  return effectOf(operation).does === 'read' || operation === internalCalls.resolveNamespace;
}

/** Whether a stop waits for the answer: an import may take minutes, and is repeated, and what only ends other work ends with it. */
function isAwaited(operation: string): boolean {
  return effectOf(operation).does === 'write' && !takesFile(operation) && !endsBegunWork(operation);
}

function receivedFile(body: Uint8Array): ReceivedFile {
  return unpackMessage(body) as ReceivedFile;
}
