import { type FlowLimits, limits } from '../../protocol/limits.ts';
import { logCalls } from '../../protocol/messages.ts';
import { actorThreadNames, placementKey } from '../../protocol/placement.ts';
import type { SealedLog } from '../../protocol/stored-log.ts';
import type { LogIdentity, LogStatistics, NamedLogs } from '../../protocol/worker-tasks.ts';
import { assert, DataError, must } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import {
  type ChannelHandler,
  type ChannelPort,
  type Message,
  PortChannel,
  type Respond,
} from '../../src/base/port-channel.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import { Serial } from '../../src/base/serial.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { patientGet } from '../../src/object-store/patient-get.ts';
import { type Patience, patiently } from '../../src/object-store/patiently.ts';
import { readFloor, writeFloor } from './floor.ts';
import { AppendRefused, GroupCommit } from './group-commit.ts';
import { keepLease } from './lease.ts';
import { LogCollection } from './log-collection.ts';
import type { LogComponents } from './log-components.ts';
import { headFromWire, type RecordHead } from './log-object.ts';
import { type LogPosition, replayedToWire, replayLog } from './replay.ts';
import { sealLog } from './seal.ts';
import { SlotBytes } from './slot-bytes.ts';
import { type LogTarget, UnflushedTargets } from './unflushed.ts';

/**
 * What the log thread does: this server's own log, and the replay of its predecessors' logs and of its own (after an
 * actor thread died) to the actor threads.
 */
export interface Placement {
  readonly index: number;
  readonly count: number;
}

/** How often old records are looked for and the floor is raised. */
const housekeepingMs = 10_000;
/** Housekeeping also comes after each such part of the bytes that may lie above the floor. */
const housekeepingShare = 1 / 4;
/** Past this many slots above the floor, the targets that hold it back are flushed: replay stays short. */
const slotsAboveFloorMax = 1_200;
/** How long a stop waits for the collection of the log: it is mostly a few objects. */
const collectAtEndMsMax = 2_000;

/** How often sealing is tried: with the pauses between them, for two seconds. */
const sealPatience: Patience = { triesMax: 5, pauseMs: (tries) => 200 * tries };
/** Damaged is mostly what was damaged on its way: the next look tells. */
const mayPass = (error: unknown) => error instanceof StoreError || error instanceof DataError;
const lookPatience: Patience = { ...sealPatience, passes: mayPass };

/** The log that this process writes. */
interface OwnLog {
  readonly logId: string;
  readonly commit: GroupCommit;
  /** Its targets that are not flushed; also in `#unflushed`, beside those of sealed logs. */
  readonly unflushed: UnflushedTargets;
  /** The slot at and below which nobody needs the log; only rises. */
  floor: number;
  readonly stopLease: () => void;
}

export class LogService {
  readonly #components: LogComponents;
  readonly #commitMs: number;
  readonly #limits: FlowLimits;
  /** The own log; null until `open`. */
  #opened: OwnLog | null = null;
  #sealedLogs: SealedLog[] = [];
  readonly #unflushed = new Map<string, UnflushedTargets>();
  readonly #collection: LogCollection;
  /** Replays that may still read below a floor that has risen since: nothing is deleted under them. */
  #replaying = 0;
  readonly #channels = new Map<number, PortChannel>();
  readonly #attaching = new Serial();
  #actorCount = 0;
  readonly #slotBytes = new SlotBytes();
  readonly #stored = { records: 0, recordBytes: 0, groups: 0 };
  #nextHousekeepingBytes: number;
  #housekeeping = false;
  #draining = false;
  #stopHousekeeping = () => {};

  /** Resolves when another process ended this one's log. */
  readonly sealed: Promise<void>;
  #end = () => {};

  constructor(
    components: LogComponents,
    options: { readonly commitMs: number; readonly limits?: FlowLimits },
  ) {
    this.sealed = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#components = components;
    this.#collection = new LogCollection(components.store);
    this.#commitMs = options.commitMs;
    this.#limits = options.limits ?? limits;
    this.#nextHousekeepingBytes = this.#limits.logAboveFloorBytesMax * housekeepingShare;
  }

  /** Sealing again is safe: it finds its own seal. So a start does not fail for a moment's trouble of the store. */
  seal(logId: string, viewVersion: number): Promise<number> {
    const { store, random, clock } = this.#components;
    return patiently(clock, sealPatience, () => sealLog(store, random, { logId, viewVersion }));
  }

  /** Logs of the list whose records are all in manifests, so that nobody needs them any more. */
  async doneAmong(logIds: readonly string[]): Promise<string[]> {
    const found = await Promise.all(logIds.map((logId) => this.#components.store.get(paths.logDone(logId))));
    return logIds.filter((_, i) => found[i] !== null);
  }

  /** The own log. Whoever asks comes after `open`: threads are attached to an open log alone. */
  get #own(): OwnLog {
    return must(this.#opened, 'the log that open() begins');
  }

  /** Begins this process's own log. Call it once, before `attach`. */
  open(identity: LogIdentity, sealedLogs: readonly SealedLog[]): void {
    assert(this.#opened === null, () => `log ${this.#opened?.logId} is open already`);
    const { logId } = identity;
    this.#sealedLogs = [...sealedLogs];
    const unflushed = new UnflushedTargets();
    this.#unflushed.set(logId, unflushed);
    const commit = new GroupCommit(this.#components, identity, {
      commitMs: this.#commitMs,
      limits: this.#limits,
      onStored: (head, position, bytes) => {
        this.#slotBytes.add(position.slot, bytes);
        this.#stored.records++;
        this.#stored.recordBytes += bytes;
        unflushed.appended(head, { ...position, atMs: this.#components.clock.monotonic() });
        if (head.blob !== null) this.#collection.blobStored(head.blob.id, position.slot);
      },
      // Not sooner: the floor passes whatever is not known to be unflushed.
      onGroupStored: () => {
        this.#stored.groups++;
        if (this.#slotBytes.total >= this.#nextHousekeepingBytes) this.#keepHouse();
      },
      onSealed: () => this.#end(),
    });
    const stopLease = keepLease(this.#components, logId, () => void this.#lookForSeal());
    this.#opened = { logId, commit, unflushed, floor: 0, stopLease };
    this.#scheduleHousekeeping();
  }

  /** Looks whether another process has sealed this log: an idle process, which writes nothing, would never hear of it. */
  async #lookForSeal(): Promise<void> {
    const { commit } = this.#own;
    try {
      await patiently(this.#components.clock, lookPatience, () => commit.confirmOpen());
    } catch (error) {
      // Nothing is known then; the next beat that comes late looks again.
      if (!mayPass(error)) throw error;
    }
  }

  /**
   * Serves an actor thread, after replaying to it every durable record of its targets that no manifest is known to
   * contain. A thread that takes another's place (same index) waits until what that one submitted is resolved.
   */
  attach(port: ChannelPort, placement: Placement): Promise<void> {
    // One at a time: the first replay of a sealed log finds out for all threads whom it concerns.
    return this.#attaching.run(() => this.#attach(port, placement));
  }

  async #attach(port: ChannelPort, placement: Placement): Promise<void> {
    const { commit } = this.#own;
    this.#channels.get(placement.index)?.close();
    this.#actorCount = placement.count;
    const channel: PortChannel = new PortChannel(
      port,
      this.#handler(() => channel),
      limits.messageInlineBytesMax,
    );
    this.#channels.set(placement.index, channel);
    await commit.whenSettled();
    const names = actorThreadNames(placement.count);
    const isTheirs = (head: RecordHead) =>
      rendezvousPick(placementKey(head.tenantId, head.namespace), names) === placement.index;
    const { store, clock } = this.#components;
    await this.#replayTo(channel, isTheirs, patientGet(store, clock));
    channel.notify([logCalls.replayEnd]);
  }

  async #replayTo(
    channel: PortChannel,
    wanted: (head: RecordHead) => boolean,
    store: Pick<ObjectStore, 'get'> = this.#components.store,
  ): Promise<void> {
    this.#replaying++;
    try {
      await this.#replayAllTo(channel, wanted, store);
    } finally {
      this.#replaying--;
    }
  }

  async #replayAllTo(
    channel: PortChannel,
    wanted: (head: RecordHead) => boolean,
    store: Pick<ObjectStore, 'get'>,
  ): Promise<void> {
    for (const sealed of this.#sealedLogs) {
      await this.#replay(channel, wanted, { store, logId: sealed.logId, through: sealed.sealSeq - 1 });
    }
    const { logId, commit } = this.#own;
    await this.#replay(channel, wanted, { store, logId, through: commit.lastSlot });
  }

  /** Replays one target's records to an actor that failed and begins again from its manifest. */
  async #replayTarget(channel: PortChannel, message: Message, respond: Respond): Promise<void> {
    const [, tenantId, namespaceId] = message.head as [string, number, string];
    try {
      await this.#own.commit.whenSettled();
      await this.#replayTo(channel, (head) => head.tenantId === tenantId && head.namespaceId === namespaceId);
      respond(['done']);
    } catch (error) {
      // The actor asks again when it is called next; this thread and everybody else's records go on.
      this.#components.logger.error('a target was not replayed', {
        tenantId,
        namespaceId,
        error: describeError(error),
      });
      respond(['failed']);
    }
  }

  async drain(): Promise<void> {
    this.#draining = true;
    this.#stopHousekeeping();
    await this.#opened?.commit.whenIdle();
    this.#opened?.stopLease();
    await this.#tidy();
    // What was deleted may be in the records that the manifests have: it is not to lie there until the next start.
    await settledWithin(this.#components.clock, this.#collect(), collectAtEndMsMax);
  }

  async #replay(
    channel: PortChannel,
    wanted: (head: RecordHead) => boolean,
    log: { readonly store: Pick<ObjectStore, 'get'>; readonly logId: string; readonly through: number },
  ): Promise<void> {
    const { store } = log;
    const { clock } = this.#components;
    const known = this.#unflushed.get(log.logId);
    const unflushed = known ?? new UnflushedTargets();
    const after = await readFloor(store, log.logId);
    for await (const record of replayLog(store, { logId: log.logId, after, through: log.through })) {
      const { head, position, payload } = record;
      // The first replay of a sealed log finds out whom it concerns; later ones must not forget what was flushed since.
      if (known === undefined) unflushed.appended(head, { ...position, atMs: clock.monotonic() });
      if (!wanted(head)) continue;
      channel.notify([logCalls.replay, ...replayedToWire(record)], movable(payload));
    }
    if (known === undefined) this.#unflushed.set(log.logId, unflushed);
  }

  #handler(channel: () => PortChannel): ChannelHandler {
    return {
      call: (message, respond) => {
        const [kind] = message.head as [string];
        if (kind === logCalls.append) this.#append(message, respond);
        else if (kind === logCalls.confirmOpen) void this.#confirmOpen(respond);
        else if (kind === logCalls.hear) respond(['heard']);
        else void this.#replayTarget(channel(), message, respond);
      },
      notice: (message) => this.#flushed(message),
    };
  }

  #append(message: Message, respond: Respond): void {
    const [, headWire, epoch, owner, weight] = message.head as [string, unknown, number, number, number];
    const head = headFromWire(headWire);
    const payload = message.body ?? new Uint8Array();
    this.#own.commit.append(head, payload, epoch, { owner, tenant: head.tenantId, weight }).then(
      (position) => respond(['stored', position.slot, position.index]),
      (error) => {
        if (error instanceof AppendRefused) respond(['refused', error.refusal]);
        else throw error;
      },
    );
  }

  async #confirmOpen(respond: Respond): Promise<void> {
    try {
      respond([(await this.#own.commit.confirmOpen()) ? 'open' : 'sealed']);
    } catch (error) {
      this.#components.logger.error('the own log was not looked at', { error: describeError(error) });
      respond(['failed']);
    }
  }

  #flushed(message: Message): void {
    const [, tenantId, namespaceId, logId, slot, index] = message.head as [
      string,
      number,
      string,
      string,
      number,
      number,
    ];
    const position: LogPosition = { logId, slot, index };
    this.#unflushed
      .get(logId)
      ?.flushed({ tenantId, namespaceId }, position, this.#components.clock.monotonic());
  }

  #scheduleHousekeeping(): void {
    this.#stopHousekeeping = this.#components.clock.after(housekeepingMs, () => this.#keepHouse());
  }

  #keepHouse(): void {
    if (this.#housekeeping || this.#draining) return;
    this.#housekeeping = true;
    this.#stopHousekeeping();
    this.#nextHousekeepingBytes =
      this.#slotBytes.total + this.#limits.logAboveFloorBytesMax * housekeepingShare;
    this.#askForFlushes();
    void this.#tidy()
      .then(() => this.#collect())
      .then(() => {
        this.#housekeeping = false;
        if (!this.#draining) this.#scheduleHousekeeping();
      });
  }

  /** Ends logs that nobody needs and raises the floor. What fails is done by the next round, or by the next process. */
  async #tidy(): Promise<void> {
    try {
      await this.#finishLogs();
    } catch (error) {
      this.#components.logger.error('the log was not tidied', { error: describeError(error) });
    }
  }

  /** Deletes what the last floor freed. What is left at the end of the process its successor finds. */
  async #collect(): Promise<void> {
    if (this.#replaying > 0 || this.#opened === null) return;
    const { logId, floor } = this.#opened;
    try {
      await this.#collection.collectOwn(logId, floor);
    } catch (error) {
      this.#components.logger.error('log objects were not collected', { error: describeError(error) });
    }
  }

  statistics(): Omit<LogStatistics, 'busySeconds'> {
    const waitingBytes = this.#opened?.commit.waitingBytes ?? 0;
    return { ...this.#stored, waitingBytes, aboveFloorBytes: this.#slotBytes.total };
  }

  /** Lists logs, as LogControl.listLogs says. */
  listLogs(): Promise<void> {
    return this.#collection.list();
  }

  /**
   * Collects logs, as LogControl.collectLogs says. What it knows of logs of other processes is only what the view and their
   * markers say.
   */
  async collectLogs(named: NamedLogs): Promise<boolean> {
    const { logId, commit, floor } = this.#own;
    // Deposed: what this process knows may be old, so it deletes nothing, and it learns that it is over.
    if (!named.members.includes(logId)) {
      await commit.confirmOpen();
      return true;
    }
    if (this.#replaying > 0) return false;
    const own = { logId, floor, blobsOnTheWay: commit.blobsOnTheWay };
    const needed = new Set([...named.members, ...this.#sealedLogs.map(({ logId }) => logId)]);
    await this.#collection.collectListed(own, needed, new Set(named.removed));
    return this.#sealedLogs.length === 0;
  }

  #askForFlushes(): void {
    const { commit } = this.#own;
    const before = {
      atMs: this.#components.clock.monotonic() - this.#limits.flushAfterMs,
      slot: Math.max(
        commit.lastSlot - slotsAboveFloorMax,
        this.#slotBytes.firstOfNewest(this.#limits.logAboveFloorBytesMax),
      ),
    };
    for (const target of this.#own.unflushed.overdue(before)) this.#askForFlush(target);
  }

  #askForFlush(target: LogTarget): void {
    const names = actorThreadNames(this.#actorCount);
    const index = rendezvousPick(placementKey(target.tenantId, target.namespace), names);
    this.#channels
      .get(index)
      ?.notify([logCalls.flush, target.tenantId, target.namespace, target.namespaceId]);
  }

  /** Marks sealed logs that nobody needs as done, and raises the floor of the own one. */
  async #finishLogs(): Promise<void> {
    const { store } = this.#components;
    for (const { logId } of [...this.#sealedLogs]) {
      if (this.#unflushed.get(logId)?.size !== 0) continue;
      await store.putIfAbsent(paths.logDone(logId), [new Uint8Array([1])]);
      this.#sealedLogs = this.#sealedLogs.filter((sealed) => sealed.logId !== logId);
      this.#unflushed.delete(logId);
    }
    const own = this.#opened;
    if (own === null) return;
    const floor = own.unflushed.floor(own.commit.lastSlot);
    if (floor <= own.floor) return;
    await writeFloor(store, own.logId, floor);
    own.floor = floor;
    this.#slotBytes.forget(floor);
  }
}

/**
 * A message moves its body's whole buffer: a payload that came as a blob has one of its own, one within a log object is
 * copied.
 */
function movable(payload: Uint8Array): Uint8Array {
  return payload.byteLength === payload.buffer.byteLength ? payload : new Uint8Array(payload);
}
