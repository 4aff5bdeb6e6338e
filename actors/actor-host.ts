import { ApiError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { type ActorCall, internalCalls, noCaller } from '../protocol/messages.ts';
import { describeError } from '../src/base/log.ts';
import { StoreError } from '../src/object-store/object-store.ts';
import type { ActorReply } from './actor-reply.ts';
import type { ActorComponents } from './components.ts';
import type { ReplayedRecord } from './log/replay.ts';
import { NamespaceActor, type OpenedNow } from './namespace/namespace-actor.ts';
import { makesNamespace, prepareWrite, writeOperations } from './namespace/prepare-write.ts';
import { emptyReadReport, type ReadReport } from './storage/block-fetch.ts';
import { Deposed } from './storage/manifest-store.ts';
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

const noSuchNamespace = (name: string) => new ApiError('not_found', `there is no namespace named "${name}"`);

export class ActorHost {
  readonly #components: ActorComponents;
  readonly #namespaces = new Map<string, Slot<NamespaceActor>>();
  readonly #tenants = new Map<number, Slot<TenantActor>>();
  readonly #namespaceReplays: Replays = new Map();
  readonly #tenantReplays = new Map<number, ReplayedRecord[]>();
  /** Namespaces whose actor failed: they are replayed before they open again. */
  readonly #failed = new Set<string>();
  #recovering: Promise<void> = Promise.resolve();
  #draining = false;

  constructor(components: ActorComponents) {
    this.#components = components;
  }

  /** Before anything is served: a durable record of a target of this thread. */
  acceptReplay(record: ReplayedRecord): void {
    const { tenantId, namespace, namespaceId } = record.head;
    if (namespace === '') listOf(this.#tenantReplays, tenantId).push(record);
    else listOf(this.#namespaceReplays, namespaceId).push(record);
  }

  /** Every replayed target is opened and flushed in the background, so that the old logs are soon done with. */
  recover(): void {
    const targets = new Map<string, ReplayedRecord>();
    for (const [namespaceId, records] of this.#namespaceReplays) {
      const first = records[0];
      if (first !== undefined) targets.set(namespaceId, first);
    }
    const tenants = [...this.#tenantReplays.keys()];
    this.#recovering = this.#flushRecovered(tenants, [...targets.values()]);
  }

  /** The warm document read, without a promise: by far the most frequent call. Null: take the long way. */
  getWarm(call: ActorCall): string | null {
    if (call.query !== '') return null;
    const actor = this.#namespaces.get(slotKey(call.tenantId, call.namespace))?.actor;
    if (actor === undefined || actor === null) return null;
    const now = this.#components.clock.monotonic();
    actor.lastUsedMs = now;
    return actor.getWarm(call.argument, now);
  }

  async handle(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    if (this.#draining) throw new ApiError('unavailable', 'this server is shutting down', { retryAfter: 1 });
    if (call.operation === internalCalls.dropNamespace) return this.#drop(call);
    if (call.namespace === '') return handleTenantCall(await this.#tenant(call.tenantId), call, body);
    const writeKind = writeOperations.get(call.operation);
    if (writeKind !== undefined) {
      const write = await prepareWrite(this.#components.lanes, writeKind, body ?? new Uint8Array());
      const actor = await this.#namespace(call, { create: makesNamespace(write), report: emptyReadReport() });
      return this.#guard(call, actor, () => actor.write(write));
    }
    return this.#query(call, body);
  }

  /** The log is held up by this target's records. */
  async flush(tenantId: number, namespace: string): Promise<void> {
    const slot = namespace === '' ? this.#tenants.get(tenantId) : this.#namespaces.get(slotKey(tenantId, namespace));
    await (await slot?.opening)?.flush();
  }

  /** Everything accepted becomes durable and is flushed. No call is taken any more. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#recovering;
    const slots = [...this.#namespaces.values(), ...this.#tenants.values()];
    await Promise.all(slots.map(async (slot) => (await slot.opening).drain()));
  }

  get openNamespaces(): number {
    return this.#namespaces.size;
  }

  async #query(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    const { clock } = this.#components;
    const beganAt = clock.monotonic();
    const report = emptyReadReport();
    const wasOpen = this.#namespaces.get(slotKey(call.tenantId, call.namespace))?.actor != null;
    const actor = await this.#namespace(call, { create: false, report });
    const getsOfOpening = report.storeGets;
    const temperature = () => (wasOpen ? 'warm' : getsOfOpening > 0 ? 'cold' : 'local');
    const opened: OpenedNow = { report, beganAt, temperature };
    return this.#guard(call, actor, () => actor.handle(call, body, opened));
  }

  /** An actor that breaks is closed: its state can no longer be trusted, the durable one can. */
  async #guard<T>(call: ActorCall, actor: NamespaceActor, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiError) throw error;
      if (error instanceof StoreError) {
        throw new ApiError('unavailable', 'object storage did not answer; try again', { retryAfter: 1, cause: error });
      }
      this.#close(call, actor, error);
      if (error instanceof Deposed) {
        throw new ApiError('unavailable', 'this namespace has moved to another server', { retryAfter: 1 });
      }
      throw error;
    }
  }

  #close(call: ActorCall, actor: NamespaceActor, error: unknown): void {
    this.#components.logger.error('an actor failed and is closed', {
      operation: call.operation,
      namespace: call.namespace,
      error: describeError(error),
    });
    const key = slotKey(call.tenantId, call.namespace);
    if (this.#namespaces.get(key)?.actor !== actor) return;
    this.#namespaces.delete(key);
    this.#failed.add(actor.identity.namespaceId);
  }

  async #namespace(
    call: ActorCall,
    options: { readonly create: boolean; readonly report: ReadReport },
  ): Promise<NamespaceActor> {
    const key = slotKey(call.tenantId, call.namespace);
    const known = this.#namespaces.get(key);
    if (known !== undefined) {
      known.lastUsedMs = this.#components.clock.monotonic();
      return known.opening;
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
      await this.#replayAgain(identity);
      const replayed = this.#namespaceReplays.get(namespaceId) ?? [];
      const actor = await NamespaceActor.open(this.#components, { identity, created, replayed }, options.report);
      this.#namespaceReplays.delete(namespaceId);
      return actor;
    });
  }

  /** What a failed actor had applied and not flushed is in the log alone. */
  async #replayAgain(identity: { readonly tenantId: number; readonly namespaceId: string }): Promise<void> {
    if (!this.#failed.has(identity.namespaceId)) return;
    this.#namespaceReplays.delete(identity.namespaceId);
    await this.#components.log.replayTarget(identity);
    this.#failed.delete(identity.namespaceId);
  }

  async #tenant(tenantId: number): Promise<TenantActor> {
    const known = this.#tenants.get(tenantId);
    if (known !== undefined) return known.opening;
    return this.#open(this.#tenants, tenantId, async () => {
      const actor = await TenantActor.open(this.#components, tenantId, this.#tenantReplays.get(tenantId) ?? []);
      this.#tenantReplays.delete(tenantId);
      return actor;
    });
  }

  #open<Key, Actor>(slots: Map<Key, Slot<Actor>>, key: Key, open: () => Promise<Actor>): Promise<Actor> {
    const slot: Slot<Actor> = { opening: open(), actor: null, lastUsedMs: this.#components.clock.monotonic() };
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
    const resolvedAway = { create: false, report: emptyReadReport() };
    const actor = (await slot?.opening) ?? (await this.#openDropped(call, resolvedAway.report));
    this.#namespaces.delete(key);
    await actor.drop();
    return { status: 204, json: '', report: resolvedAway.report, cpuMs: 0, documents: 0, bytes: 0 };
  }

  /** A namespace whose name is already gone, opened by its id to delete what it owns. */
  #openDropped(call: ActorCall, report: ReadReport): Promise<NamespaceActor> {
    const namespaceId = call.argument;
    const identity = { tenantId: call.tenantId, name: call.namespace, namespaceId, createdAt: '' };
    const replayed = this.#namespaceReplays.get(namespaceId) ?? [];
    this.#namespaceReplays.delete(namespaceId);
    return NamespaceActor.open(this.#components, { identity, created: false, replayed }, report);
  }

  #evictIfFull(): void {
    if (this.#namespaces.size < limits.openActorsMax) return;
    let oldest: [string, Slot<NamespaceActor>] | null = null;
    for (const entry of this.#namespaces) {
      if (entry[1].actor === null || entry[1].actor.hasUnflushed) continue;
      if (oldest === null || entry[1].lastUsedMs < oldest[1].lastUsedMs) oldest = entry;
    }
    if (oldest !== null) this.#namespaces.delete(oldest[0]);
  }

  async #flushRecovered(tenantIds: readonly number[], firsts: readonly ReplayedRecord[]): Promise<void> {
    for (const tenantId of tenantIds) {
      await this.#recoverOne(`tenant ${tenantId}`, async () => (await this.#tenant(tenantId)).flush());
    }
    for (const { head } of firsts) {
      await this.#recoverOne(`namespace ${head.namespaceId}`, () => this.#recoverNamespace(head));
    }
  }

  async #recoverNamespace(head: ReplayedRecord['head']): Promise<void> {
    const { tenantId, namespace, namespaceId } = head;
    const resolved = await this.#components.directory.resolve(tenantId, namespace, false);
    if (resolved?.namespaceId === namespaceId) {
      const call = { ...internalCall(tenantId, namespace), argument: '' };
      await (await this.#namespace(call, { create: false, report: emptyReadReport() })).flush();
      return;
    }
    // Its name was deleted, or never became durable: nobody can ever see these records.
    const gone = { ...internalCall(tenantId, namespace), argument: namespaceId };
    await (await this.#openDropped(gone, emptyReadReport())).drop();
  }

  async #recoverOne(target: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#components.logger.error('a target was not recovered yet; its log is kept', {
        target,
        error: describeError(error),
      });
    }
  }
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
