import { type FlowLimits, limits } from '../../protocol/limits.ts';
import { logCalls } from '../../protocol/messages.ts';
import { placementKey, type Standing } from '../../protocol/placement.ts';
import type { LogIdentity, LogStatistics, NamedLogs } from '../../protocol/worker-tasks.ts';
import { assert, must } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { isOwn } from '../../src/base/owners.ts';
import {
  type ChannelHandler,
  type ChannelPort,
  type Message,
  PortChannel,
  type Respond,
} from '../../src/base/port-channel.ts';
import { Serial } from '../../src/base/serial.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type Patience, patiently } from '../../src/object-store/patiently.ts';
import { writeFloor } from '../../src/stored/log-floor.ts';
import { headFromWire } from '../../src/stored/log-object.ts';
import { ActorChannels, type ThreadNumber } from './actor-channels.ts';
import { AppendRefused, GroupCommit } from './group-commit.ts';
import { HandOver } from './hand-over.ts';
import { keepLease } from './lease.ts';
import { LogCollection } from './log-collection.ts';
import type { LogComponents } from './log-components.ts';
import { LogPacks } from './log-packs.ts';
import { maySucceedLater } from './may-succeed-later.ts';
import { OpenAnswers } from './open-answers.ts';
import { PacedFlushes } from './paced-flushes.ts';
import type { LogPosition } from './replay.ts';
import { Replays } from './replays.ts';
import { sealLog } from './seal.ts';
import { SealedLogs } from './sealed-logs.ts';
import { SlotBytes } from './slot-bytes.ts';
import { type LogTarget, UnflushedTargets } from './unflushed.ts';

/** Housekeeping also comes after each such part of the bytes that may lie above the floor. */
const housekeepingShare = 1 / 4;
/** Past this many slots above the floor, the targets that hold it back are flushed: replay stays short. */
const slotsAboveFloorMax = 1_200;
/** How long a stop waits for the collection of the log: it is mostly a few objects. */
const collectAtEndMsMax = 2_000;

/** How often sealing is tried: with the pauses between them, for two seconds. */
const sealPatience: Patience = { triesMax: 5, pauseMs: (tries) => 200 * tries };
const lookPatience: Patience = { ...sealPatience, passes: maySucceedLater };

/** Between two tries to read the logs of others. */
const takeAgainMs = 500;

/** The log that this process writes. */
interface OwnLog {
  readonly logId: string;
  readonly commit: GroupCommit;
  readonly handOver: HandOver;
  /** Its targets that are not flushed. */
  readonly unflushed: UnflushedTargets;
  readonly packs: LogPacks;
  /** The slot at and below which nobody needs the log; only rises. */
  floor: number;
  readonly stopLease: () => void;
}

/**
 * What the log thread does: this server's own log, and the replay of its predecessors' logs and of its own (after an
 * actor thread died) to the actor threads.
 */
export class LogService {
  readonly #components: LogComponents;
  readonly #commitMs: number;
  readonly #limits: FlowLimits;
  /** The own log; null until `open`. */
  #opened: OwnLog | null = null;
  readonly #isBesideOthers: boolean;
  readonly #onLaterView: () => void;
  readonly #sealedLogs = new SealedLogs();
  readonly #collection: LogCollection;
  readonly #replays: Replays;
  readonly #channels = new ActorChannels();
  readonly #handingOver = new Serial();
  readonly #openAnswers: OpenAnswers;
  readonly #slotBytes = new SlotBytes();
  readonly #stored = { records: 0, recordBytes: 0, groups: 0 };
  /** What was taken over from other servers since the start, and how long that took. */
  readonly #handOvers = { count: 0, ms: 0 };
  #nextHousekeepingBytes: number;
  #housekeeping = false;
  #draining = false;
  #stopHousekeeping = () => {};
  readonly #flushes: PacedFlushes;

  /** Resolves when another process ended this one's log. */
  readonly sealed: Promise<void>;
  #end = () => {};

  constructor(
    components: LogComponents,
    options: {
      readonly commitMs: number;
      readonly limits?: FlowLimits;
      /** Whether other servers may own something, and remove this one. */
      readonly besideOthers?: boolean;
      /** Another member's log shows that there is a later view than the own one. */
      readonly onLaterView?: () => void;
    },
  ) {
    this.sealed = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#components = components;
    this.#replays = new Replays(components, {
      own: () => this.#own,
      channels: this.#channels,
      sealedLogs: this.#sealedLogs,
    });
    this.#flushes = new PacedFlushes(components.clock, (target) => {
      if (this.#opened?.handOver.isOwn(target) === true) this.#ask(logCalls.flush, target);
    });
    this.#collection = new LogCollection(components.store);
    this.#openAnswers = new OpenAnswers(components, () => this.#own.commit);
    this.#commitMs = options.commitMs;
    this.#isBesideOthers = options.besideOthers ?? false;
    this.#onLaterView = options.onLaterView ?? (() => {});
    this.#limits = options.limits ?? limits;
    this.#nextHousekeepingBytes = this.#limits.logAboveFloorBytesMax * housekeepingShare;
  }

  /** Sealing again is safe: it finds its own seal. So a start does not fail for a moment's trouble of the store. */
  seal(logId: string, placement: number): Promise<number> {
    const { store, random, clock } = this.#components;
    if (logId === this.#opened?.logId) this.#opened.commit.close();
    return patiently(clock, sealPatience, () => sealLog(store, random, { logId, placement }));
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
  open(identity: LogIdentity, standing: Standing): void {
    assert(this.#opened === null, () => `log ${this.#opened?.logId} is open already`);
    const { logId } = identity;
    const { servers, self } = standing.owners;
    this.#sealedLogs.begin(
      standing.removed,
      servers.every((each) => each === self),
    );
    const unflushed = new UnflushedTargets();
    const packs = new LogPacks(this.#components, logId);
    const commit = new GroupCommit(this.#components, identity, {
      owners: standing.owners,
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
      onSlotStored: (slot, bytes) => packs.stored(slot, bytes),
      onSealed: () => this.#end(),
      othersFloor: (lastSlot, owners) =>
        unflushed.floor(
          lastSlot,
          ({ tenantId, namespace }) => !isOwn(owners, placementKey(tenantId, namespace)),
        ),
    });
    const stopLease = keepLease(this.#components, logId, {
      everyMs: this.#isBesideOthers ? limits.leaseRenewBesideOthersMs : limits.leaseRenewMs,
      onLate: () => void this.#lookForSeal(),
    });
    const handOver = new HandOver(
      this.#components,
      {
        readsOutliveSealMs: this.#isBesideOthers ? limits.readsOutliveSealMs : 0,
        onLaterView: this.#onLaterView,
      },
      standing,
    );
    this.#opened = { logId, commit, handOver, unflushed, packs, floor: 0, stopLease };
    this.#scheduleHousekeeping();
    void this.#handingOver.run(() => this.#takeOver());
  }

  /**
   * Takes a later view, after all actor threads have: what has moved away is read no more. What has come is replayed to
   * the actor threads, once whoever had it before can add nothing to it.
   */
  adopt(standing: Standing): void {
    const { commit, handOver } = this.#own;
    if (standing.version <= handOver.standing.version) return;
    this.#sealedLogs.adopt(standing.removed);
    const isMoved = handOver.adopt(standing);
    commit.adopt(standing.owners);
    if (isMoved) void this.#handingOver.run(() => this.#takeOver());
  }

  /** Replays what has come with the present placement; tried again while logs can't be read, given up where there is a later placement. */
  async #takeOver(): Promise<void> {
    const { commit, handOver } = this.#own;
    const { placement } = handOver.standing.owners;
    const { clock, logger } = this.#components;
    const beganMs = clock.monotonic();
    const { nothingHasCome } = handOver;
    const isOver = () => this.#draining || placement !== handOver.standing.owners.placement;
    while (!isOver()) {
      try {
        // What has come back may have records here from before it went. They were submitted before this placement: nothing later need be waited for.
        const [logs] = await Promise.all([handOver.whenEnded(), commit.whenSettled()]);
        if (logs === null || isOver()) return;
        const waitedMs = clock.monotonic() - beganMs;
        const readsWaitedMs = await this.#replays.whatCame(logs, isOver);
        if (nothingHasCome || isOver()) return;
        const tookMs = clock.monotonic() - beganMs;
        this.#handOvers.count++;
        this.#handOvers.ms += tookMs;
        logger.info('data of other servers was taken over', { placement, waitedMs, readsWaitedMs, tookMs });
        return;
      } catch (error) {
        if (!maySucceedLater(error)) throw error;
        logger.error('what has come from other servers was not read yet', { error: describeError(error) });
        await clock.sleep(takeAgainMs);
      }
    }
  }

  /** Looks whether another process has sealed this log: an idle process, which writes nothing, would never hear of it. */
  async #lookForSeal(): Promise<void> {
    const { commit } = this.#own;
    try {
      await patiently(this.#components.clock, lookPatience, () => commit.confirmOpen());
    } catch (error) {
      // Nothing is known then; the next beat that comes late looks again.
      if (!maySucceedLater(error)) throw error;
    }
  }

  /**
   * Serves an actor thread, after replaying to it every durable record of its targets that no manifest is known to
   * contain. A thread that takes another's place (same index) waits until what that one submitted is resolved.
   */
  attach(port: ChannelPort, thread: ThreadNumber): Promise<void> {
    // One at a time: the first replay of a sealed log finds out for all threads whom it concerns.
    return this.#handingOver.run(() => this.#attach(port, thread));
  }

  async #attach(port: ChannelPort, thread: ThreadNumber): Promise<void> {
    const { commit } = this.#own;
    this.#channels.close(thread.index);
    const channel: PortChannel = new PortChannel(
      port,
      this.#handler(() => channel),
      limits.messageInlineBytesMax,
    );
    this.#channels.set(channel, thread);
    await commit.whenSettled();
    await this.#replays.everythingTo(channel);
  }

  /** Replays one target's records to an actor that failed and begins again from its manifest. */
  async #replayTarget(channel: PortChannel, message: Message, respond: Respond): Promise<void> {
    const [, tenantId, namespaceId] = message.head as [string, number, string];
    try {
      await this.#own.commit.whenSettled();
      respond([(await this.#replays.targetTo(channel, { tenantId, namespaceId })) ? 'done' : 'failed']);
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
    this.#flushes.stop();
    this.#opened?.handOver.stop();
    this.#stopHousekeeping();
    await this.#opened?.commit.whenIdle();
    await this.#opened?.commit.whenBarred();
    this.#opened?.stopLease();
    await this.#tidy();
    // What was deleted may be in the records that the manifests have: it is not to lie there until the next start.
    await settledWithin(this.#components.clock, this.#collect(), collectAtEndMsMax);
  }

  #handler(channel: () => PortChannel): ChannelHandler {
    return {
      call: (message, respond) => {
        const [kind] = message.head as [string];
        if (kind === logCalls.append) this.#append(message, respond);
        else if (kind === logCalls.confirmOpen) void this.#openAnswers.confirmOpen(respond);
        else if (kind === logCalls.seenOpen) void this.#openAnswers.seenOpen(respond);
        else if (kind === logCalls.hear) respond(['heard']);
        else if (kind === logCalls.movedAway) respond(this.#movedAway(channel()));
        else void this.#replayTarget(channel(), message, respond);
      },
      notice: (message) => this.#flushed(message),
    };
  }

  /** Targets of which the own log may have records that no manifest has, and that are other servers' now; each thread is told of its own part. */
  #movedAway(channel: PortChannel): unknown[] {
    const { handOver, unflushed } = this.#own;
    return unflushed
      .targets()
      .filter((target) => !handOver.isOwn(target) && this.#channels.of(target) === channel)
      .slice(0, limits.movedLookUpsMax)
      .map(({ tenantId, namespace, namespaceId }) => [tenantId, namespace, namespaceId]);
  }

  #append(message: Message, respond: Respond): void {
    const [, headWire, epoch, owner, weight, isUrgent] = message.head as [
      string,
      unknown,
      number,
      number,
      number,
      boolean,
    ];
    const head = headFromWire(headWire);
    const payload = message.body ?? new Uint8Array();
    const share = { owner, tenant: head.tenantId, weight };
    this.#own.commit.append(head, payload, epoch, { share, isUrgent }).then(
      (position) => respond(['stored', position.slot, position.index]),
      (error) => {
        if (error instanceof AppendRefused) respond(['refused', error.refusal]);
        else throw error;
      },
    );
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
    const own = this.#own;
    const unflushed = logId === own.logId ? own.unflushed : this.#sealedLogs.unflushedOf(logId);
    unflushed?.flushed({ tenantId, namespaceId }, position, this.#components.clock.monotonic());
  }

  #scheduleHousekeeping(): void {
    this.#stopHousekeeping = this.#components.clock.after(limits.logHousekeepingMs, () => this.#keepHouse());
  }

  #keepHouse(): void {
    if (this.#housekeeping || this.#draining) return;
    this.#housekeeping = true;
    this.#stopHousekeeping();
    this.#nextHousekeepingBytes =
      this.#slotBytes.total + this.#limits.logAboveFloorBytesMax * housekeepingShare;
    this.#askForFlushes();
    void this.#readSealed();
    void this.#tidy()
      .then(() => this.#collect())
      .then(() => {
        this.#housekeeping = false;
        if (!this.#draining) this.#scheduleHousekeeping();
      });
  }

  /**
   * Reads sealed logs of which this server says when they are done with, and which it has not read to take something over. That is not done when the view
   * changes, because clients wait for data that moves then. Flushes and the floor do not wait for it; what fails is read by the next round.
   */
  async #readSealed(): Promise<void> {
    try {
      await this.#replays.readUnread((logId) => this.#finishes(logId));
    } catch (error) {
      if (!maySucceedLater(error)) throw error;
      this.#components.logger.error('a sealed log was not read', { error: describeError(error) });
    }
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
    if (this.#replays.areRunning || this.#opened === null) return;
    const { logId, floor, packs } = this.#opened;
    try {
      await packs.settled();
      await this.#collection.collectOwn(logId, floor);
    } catch (error) {
      this.#components.logger.error('log objects were not collected', { error: describeError(error) });
    }
  }

  statistics(): Omit<LogStatistics, 'busySeconds' | 'cpuMs'> {
    const waitingBytes = this.#opened?.commit.waitingBytes ?? 0;
    const handOvers = { count: this.#handOvers.count, seconds: this.#handOvers.ms / 1_000 };
    return { ...this.#stored, waitingBytes, aboveFloorBytes: this.#slotBytes.total, handOvers };
  }

  /** Lists logs, as LogControl.listLogs says. */
  listLogs(which: 'all' | 'own'): Promise<void> {
    return this.#collection.list(which === 'all' ? paths.logs : paths.logFolder(this.#own.logId));
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
    if (this.#replays.areRunning) return false;
    const own = { logId, floor, blobsOnTheWay: commit.blobsOnTheWay };
    const needed = new Set([...named.members, ...this.#sealedLogs.logs.map(({ logId }) => logId)]);
    await this.#collection.collectListed(own, needed, new Set(named.removed));
    return this.#sealedLogs.logs.length === 0;
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
    const { handOver, logId, unflushed } = this.#own;
    this.#flushes.replace(unflushed.overdue(before).filter((target) => handOver.isOwn(target)));
    // What others have flushed, and what was flushed of a sealed log while it was open, only manifests tell.
    for (const target of unflushed.targets())
      if (!handOver.isOwn(target)) this.#ask(logCalls.lookUp, target, logId);
    for (const { logId, target } of this.#sealedLogs.silent((each) => handOver.isOwn(each)))
      if (this.#finishes(logId)) this.#ask(logCalls.lookUp, target, logId);
  }

  /** Whether it is this server that marks the sealed log as done: any one, as long as all agree. */
  #finishes(logId: string): boolean {
    return isOwn(this.#own.handOver.standing.owners, paths.logFolder(logId));
  }

  #ask(what: string, target: LogTarget, ...more: readonly string[]): void {
    const { tenantId, namespace, namespaceId } = target;
    this.#channels.of(target)?.notify([what, tenantId, namespace, namespaceId, ...more]);
  }

  /** Marks sealed logs that nobody needs as done, and raises the floor of the own one. */
  async #finishLogs(): Promise<void> {
    const { store } = this.#components;
    for (const logId of this.#sealedLogs.finished) {
      if (!this.#finishes(logId)) continue;
      await store.putIfAbsent(paths.logDone(logId), [new Uint8Array([1])]);
      this.#sealedLogs.marked(logId);
    }
    const own = this.#opened;
    if (own === null) return;
    const floor = own.unflushed.floor(own.commit.lastSlot);
    if (floor <= own.floor) return;
    await writeFloor(store, own.logId, { floor, placement: own.commit.placementOf(floor) });
    own.floor = Math.max(own.floor, floor);
    this.#slotBytes.forget(floor);
  }
}
