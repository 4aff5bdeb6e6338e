import { ApiError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type ActorCall, internalCalls, noCaller } from '../protocol/messages.ts';
import { DataError } from '../src/base/assert.ts';
import { describeError } from '../src/base/log.ts';
import { StoreError } from '../src/object-store/object-store.ts';
import type { ActorReply } from './actor-reply.ts';
import type { ActorComponents } from './components.ts';
import type { ReplayedRecord } from './log/replay.ts';
import type { LogTarget } from './log/unflushed.ts';
import { dropObjects } from './namespace/drop.ts';
import { NamespaceActor } from './namespace/namespace-actor.ts';
import type { OpenedNow } from './namespace/namespace-queries.ts';
import { makesNamespace, prepareWrite, writeOperations } from './namespace/prepare-write.ts';
import { emptyReadReport, MissingObjectError, type ReadReport } from './storage/block-fetch.ts';
import { ActorClosed, Deposed } from './storage/manifest-store.ts';
import { isReadFailure } from './storage/read-failure.ts';
import { TenantActor } from './tenant/tenant-actor.ts';
import { handleTenantCall } from './tenant/tenant-calls.ts';

/**
 * Which actors are open on this thread: opens them once and lazily, hands them their calls, closes one that failed so
 * that the next call reopens it from durable state, and puts the least recently used ones away when there are many.
 */
interface Slot<Actor> {
  readonly opening: Promise<Actor>;
  /** Null while it opens. */
  actor: Actor | null;
  lastUsedMs: number;
}

/** Records of a target that came from the log before it was opened. */
type Replays = Map<string, ReplayedRecord[]>;

/** A call meets an actor that closes under it once, hardly ever twice. */
const opensOfOneCallMax = 4;
/** Between two rounds of recovery; the first failure is mostly another thread that is still starting. */
const recoverAgainMsMin = 250;
const recoverAgainMsMax = 30_000;

/** What namespaces and tenants ask of each other to end what they have begun. */
const callsOfAcceptedWork: ReadonlySet<string> = new Set([
  internalCalls.confirmNamespace,
  internalCalls.reportNamespace,
  internalCalls.dropNamespace,
]);

const noSuchNamespace = (name: string) => new ApiError('not_found', `there is no namespace named "${name}"`);

export class ActorHost {
  readonly #components: ActorComponents;
  readonly #namespaces = new Map<string, Slot<NamespaceActor>>();
  readonly #tenants = new Map<number, Slot<TenantActor>>();
  readonly #namespaceReplays: Replays = new Map();
  readonly #tenantReplays = new Map<number, ReplayedRecord[]>();
  /** Namespaces and tenants whose actor failed: they are replayed before they open again. */
  readonly #failed = new Set<string>();
  readonly #failedTenants = new Set<number>();
  readonly #openActorsMax: number;
  #recovering: Promise<void> = Promise.resolve();
  #draining = false;
  #beginDrain = () => {};
  readonly #drainBegan: Promise<void>;

  constructor(components: ActorComponents, options: { readonly openActorsMax?: number } = {}) {
    this.#components = components;
    this.#openActorsMax = options.openActorsMax ?? limits.openActorsMax;
    this.#drainBegan = new Promise((resolve) => {
      this.#beginDrain = resolve;
    });
  }

  /** Before anything is served: a durable record of a target of this thread. */
  acceptReplay(record: ReplayedRecord): void {
    const { tenantId, namespace, namespaceId } = record.head;
    if (namespace === '') listOf(this.#tenantReplays, tenantId).push(record);
    else listOf(this.#namespaceReplays, namespaceId).push(record);
  }

  /** Every replayed target is opened and flushed in the background, so that the old logs are soon done with. */
  recover(): void {
    const targets: LogTarget[] = [];
    for (const tenantId of this.#tenantReplays.keys())
      targets.push({ tenantId, namespace: '', namespaceId: '' });
    for (const [first] of this.#namespaceReplays.values()) if (first !== undefined) targets.push(first.head);
    this.#recovering = this.#recoverAll(targets);
  }

  /** The warm document read, without a promise: by far the most frequent call. Null: take the long way. */
  getWarm(call: ActorCall): Buffer | null {
    if (call.query !== '') return null;
    const slot = this.#namespaces.get(slotKey(call.tenantId, call.namespace));
    if (slot === undefined || slot.actor === null || slot.actor.closed) return null;
    slot.lastUsedMs = this.#components.clock.monotonic();
    return slot.actor.queries.getWarm(call.argument, slot.lastUsedMs);
  }

  async handle(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    // What was accepted before still has to end: it asks and tells the tenants that live here.
    if (this.#draining && !callsOfAcceptedWork.has(call.operation)) {
      throw new ApiError('unavailable', 'this server is shutting down', { retryAfter: 1 });
    }
    try {
      return await this.#untilOpen(() => this.#handle(call, body));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new ApiError('unavailable', 'object storage did not answer; try again', {
        retryAfter: 1,
        cause: error,
      });
    }
  }

  async #handle(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    if (call.operation === internalCalls.dropNamespace) return this.#drop(call);
    if (call.operation === internalCalls.collectNamespace) return this.#collect(call);
    if (call.namespace === '') return handleTenantCall(await this.#tenant(call.tenantId), call, body);
    const writeKind = writeOperations.get(call.operation);
    if (writeKind === undefined) return this.#query(call, body);
    const write = await prepareWrite(this.#components.lanes, writeKind, body ?? new Uint8Array());
    return this.#untilOpen(async () => {
      const actor = await this.#namespace(call, { create: makesNamespace(write), report: emptyReadReport() });
      return this.#guard(call, actor, () => actor.write(write));
    });
  }

  /** An actor that closed before it took the work is opened again: nothing was written, so nothing is done twice. */
  async #untilOpen<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; tries < opensOfOneCallMax; tries++) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ActorClosed)) throw error;
      }
    }
    throw new ApiError('unavailable', 'this data is being opened again; nothing was written', {
      retryAfter: 1,
    });
  }

  /** The log is held up by this target's records. */
  async flush(tenantId: number, namespace: string, namespaceId: string): Promise<void> {
    if (namespace === '') return (await this.#tenant(tenantId)).flush();
    const actor = await this.#namespaces.get(slotKey(tenantId, namespace))?.opening;
    if (actor?.identity.namespaceId === namespaceId && !actor.closed) return actor.flush();
    // Its actor failed and nobody called it since, or its name is gone: what the log holds of it is asked for again.
    this.#failed.add(namespaceId);
    await this.#recoverNamespace({ tenantId, namespace, namespaceId });
  }

  /** Everything accepted becomes durable and is flushed. No call is taken any more. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#beginDrain();
    await this.#recovering;
    const drainAll = (slots: Iterable<Slot<{ drain(): Promise<void> }>>) =>
      Promise.allSettled([...slots].map(async (slot) => (await slot.opening).drain()));
    // Namespaces first: their last words go to their tenants.
    const ended = [
      ...(await drainAll(this.#namespaces.values())),
      ...(await drainAll(this.#tenants.values())),
    ];
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }

  get openNamespaces(): number {
    return this.#namespaces.size;
  }

  async #query(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    const { clock } = this.#components;
    const beganAt = clock.monotonic();
    const report = emptyReadReport();
    const wasOpen = this.#namespaces.get(slotKey(call.tenantId, call.namespace))?.actor?.closed === false;
    const actor = await this.#namespace(call, { create: false, report });
    const getsOfOpening = report.storeGets;
    const temperature = () => (wasOpen ? 'warm' : getsOfOpening > 0 ? 'cold' : 'local');
    const opened: OpenedNow = { report, beganAt, temperature };
    return this.#guard(call, actor, async () => {
      try {
        return await actor.queries.handle(call, body, opened);
      } catch (error) {
        if (!(error instanceof MissingObjectError)) throw error;
        // Its manifest is older than a collection elsewhere. A read changes nothing, so it is done again.
        actor.close();
        throw new ActorClosed(error.message);
      }
    });
  }

  /** An actor that breaks is closed: its state can no longer be trusted, the durable one can. */
  async #guard<T>(call: ActorCall, actor: NamespaceActor, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiError || error instanceof StoreError || error instanceof ActorClosed)
        throw error;
      actor.close();
      this.#components.logger.error('an actor failed and is closed', {
        operation: call.operation,
        namespace: call.namespace,
        error: describeError(error),
      });
      if (!(error instanceof Deposed) && !isReadFailure(error)) throw error;
      // The record may be durable: then the next actor applies it.
      throw new ApiError(
        'write_unknown',
        'this namespace changed its owner, or could not be read: the write may or may not be applied',
        {
          retryAfter: 1,
        },
      );
    }
  }

  async #namespace(
    call: ActorCall,
    options: { readonly create: boolean; readonly report: ReadReport },
  ): Promise<NamespaceActor> {
    const key = slotKey(call.tenantId, call.namespace);
    const known = this.#namespaces.get(key);
    if (known !== undefined) {
      known.lastUsedMs = this.#components.clock.monotonic();
      const actor = await known.opening;
      if (!actor.closed) return actor;
      this.#failed.add(actor.identity.namespaceId);
      if (this.#namespaces.get(key) === known) this.#namespaces.delete(key);
    }
    const resolved = await this.#components.directory.resolve(call.tenantId, call.namespace, options.create);
    if (resolved === null) throw noSuchNamespace(call.namespace);
    // Another call may have opened it while the name was looked up.
    const meanwhile = this.#namespaces.get(key);
    if (meanwhile !== undefined) return meanwhile.opening;
    const { namespaceId, createdAt, created } = resolved;
    const identity = { tenantId: call.tenantId, name: call.namespace, namespaceId, createdAt };
    this.#evictIfFull();
    return this.#open(this.#namespaces, key, async () => {
      const again = await this.#replayAgain(identity);
      const replayed = this.#namespaceReplays.get(namespaceId) ?? [];
      const opening = { identity, created, replayed, again };
      const actor = await NamespaceActor.open(this.#components, opening, options.report).catch(
        (error: unknown) => {
          // What was read does not fit together: everything is asked for again.
          if (!(error instanceof StoreError)) this.#failed.add(namespaceId);
          throw error;
        },
      );
      this.#namespaceReplays.delete(namespaceId);
      return actor;
    });
  }

  /** What a failed actor had applied and not flushed is in the log alone. Answers whether it was one. */
  async #replayAgain(identity: {
    readonly tenantId: number;
    readonly namespaceId: string;
  }): Promise<boolean> {
    if (!this.#failed.has(identity.namespaceId)) return false;
    this.#namespaceReplays.delete(identity.namespaceId);
    await this.#components.log.replayTarget(identity);
    this.#failed.delete(identity.namespaceId);
    return true;
  }

  async #tenant(tenantId: number): Promise<TenantActor> {
    const known = this.#tenants.get(tenantId);
    if (known !== undefined) {
      const actor = await known.opening;
      if (!actor.closed) return actor;
      if (this.#tenants.get(tenantId) === known) {
        this.#tenants.delete(tenantId);
        this.#failedTenants.add(tenantId);
      }
    }
    const meanwhile = this.#tenants.get(tenantId);
    if (meanwhile !== undefined) return meanwhile.opening;
    return this.#open(this.#tenants, tenantId, async () => {
      if (this.#failedTenants.has(tenantId)) {
        this.#tenantReplays.delete(tenantId);
        await this.#components.log.replayTarget({ tenantId, namespaceId: '' });
        this.#failedTenants.delete(tenantId);
      }
      const actor = await TenantActor.open(
        this.#components,
        tenantId,
        this.#tenantReplays.get(tenantId) ?? [],
      );
      this.#tenantReplays.delete(tenantId);
      return actor;
    });
  }

  #open<Key, Actor>(slots: Map<Key, Slot<Actor>>, key: Key, open: () => Promise<Actor>): Promise<Actor> {
    const slot: Slot<Actor> = {
      opening: open().catch((error: unknown) => {
        if (!(error instanceof DataError)) throw error;
        this.#components.logger.error('an actor could not be opened', { error: describeError(error) });
        const message = 'stored data could not be read; nothing was written';
        throw new ApiError('unavailable', message, { retryAfter: 1, cause: error });
      }),
      actor: null,
      lastUsedMs: this.#components.clock.monotonic(),
    };
    slots.set(key, slot);
    slot.opening.then(
      (actor) => {
        slot.actor = actor;
      },
      () => {
        if (slots.get(key) === slot) slots.delete(key);
      },
    );
    return slot.opening;
  }

  async #drop(call: ActorCall): Promise<ActorReply> {
    const key = slotKey(call.tenantId, call.namespace);
    const slot = this.#namespaces.get(key);
    const actor = await slot?.opening.catch(() => undefined);
    // The name may have been made again meanwhile: that is another namespace, and it stays.
    if (actor?.identity.namespaceId === call.argument) {
      if (this.#namespaces.get(key) === slot) this.#namespaces.delete(key);
      await actor.drop();
    } else {
      await this.#dropById({ tenantId: call.tenantId, namespaceId: call.argument });
    }
    return nothingToSay();
  }

  async #collect(call: ActorCall): Promise<ActorReply> {
    const actor = await this.#namespace(call, { create: false, report: emptyReadReport() });
    if (actor.identity.namespaceId === call.argument) await this.#guard(call, actor, () => actor.collect());
    return nothingToSay();
  }

  /** A namespace whose name is gone and whose actor is not open. */
  async #dropById(identity: { readonly tenantId: number; readonly namespaceId: string }): Promise<void> {
    await this.#replayAgain(identity);
    const records = this.#namespaceReplays.get(identity.namespaceId) ?? [];
    const positions = records.map((record) => record.position);
    await dropObjects(this.#components, identity, positions);
    this.#namespaceReplays.delete(identity.namespaceId);
  }

  #evictIfFull(): void {
    if (this.#namespaces.size < this.#openActorsMax) return;
    let oldest: [string, Slot<NamespaceActor>] | null = null;
    for (const entry of this.#namespaces) {
      if (entry[1].actor === null || !entry[1].actor.isIdle) continue;
      if (oldest === null || entry[1].lastUsedMs < oldest[1].lastUsedMs) oldest = entry;
    }
    if (oldest === null) return;
    this.#namespaces.delete(oldest[0]);
    // A call that holds it already must not write through it beside its successor.
    oldest[1].actor?.close();
  }

  /** Again and again until every target is flushed: each one that is not keeps its log alive. */
  async #recoverAll(targets: readonly LogTarget[]): Promise<void> {
    let left = targets;
    for (let delayMs = recoverAgainMsMin; ; delayMs = Math.min(delayMs * 2, recoverAgainMsMax)) {
      const failed: LogTarget[] = [];
      for (const target of left)
        if (!this.#draining && !(await this.#recoverOne(target))) failed.push(target);
      if (failed.length === 0 || this.#draining) return;
      left = failed;
      await Promise.race([this.#components.clock.sleep(delayMs), this.#drainBegan]);
    }
  }

  async #recoverNamespace(head: LogTarget): Promise<void> {
    const { tenantId, namespace, namespaceId } = head;
    const resolved = await this.#components.directory.resolve(tenantId, namespace, false);
    if (resolved?.namespaceId === namespaceId) {
      const call = { ...internalCall(tenantId, namespace), argument: '' };
      await (await this.#namespace(call, { create: false, report: emptyReadReport() })).flush();
      return;
    }
    // Its name was deleted, or never became durable: nobody can ever see these records.
    await this.#dropById(head);
  }

  async #recoverOne(target: LogTarget): Promise<boolean> {
    const { tenantId, namespace, namespaceId } = target;
    try {
      if (namespace === '') await (await this.#tenant(tenantId)).flush();
      else await this.#recoverNamespace(target);
      return true;
    } catch (error) {
      this.#components.logger.error('a target was not recovered yet; its log is kept', {
        tenantId,
        namespaceId,
        error: describeError(error),
      });
      return false;
    }
  }
}

function nothingToSay(): ActorReply {
  return { status: 204, json: '', report: emptyReadReport(), cpuMs: 0, documents: 0, bytes: 0 };
}

function slotKey(tenantId: number, namespace: string): string {
  return `${tenantId}/${namespace}`;
}

function listOf<Key>(lists: Map<Key, ReplayedRecord[]>, key: Key): ReplayedRecord[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const made: ReplayedRecord[] = [];
  lists.set(key, made);
  return made;
}

function internalCall(tenantId: number, namespace: string): ActorCall {
  return { operation: '', tenantId, namespace, argument: '', query: '', deadlineMs: 0, caller: noCaller };
}
