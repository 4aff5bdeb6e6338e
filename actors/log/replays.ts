import { limits } from '../../protocol/limits.ts';
import { logCalls } from '../../protocol/messages.ts';
import type { PortChannel } from '../../src/base/port-channel.ts';
import { sideBySide } from '../../src/base/side-by-side.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { patientGet } from '../../src/object-store/patient-get.ts';
import { readFloor } from '../../src/stored/log-floor.ts';
import type { RecordHead } from '../../src/stored/log-object.ts';
import type { ActorChannels } from './actor-channels.ts';
import type { GroupCommit } from './group-commit.ts';
import type { HandOver, LogToReplay } from './hand-over.ts';
import type { LogComponents } from './log-components.ts';
import { replayedToWire, replayLog } from './replay.ts';
import type { SealedLogs } from './sealed-logs.ts';
import { type LogTarget, UnflushedTargets } from './unflushed.ts';

/** What replays read, and for whom. */
export interface ReplayParts {
  /** The own log, once it is open. */
  readonly own: () => {
    readonly logId: string;
    readonly commit: GroupCommit;
    readonly handOver: HandOver;
    readonly unflushed: UnflushedTargets;
  };
  readonly channels: ActorChannels;
  readonly sealedLogs: SealedLogs;
}

/** Reads logs, of this process and of others, and sends their records to the actor threads that own their targets. */
export class Replays {
  readonly #components: LogComponents;
  readonly #parts: ReplayParts;
  #running = 0;

  constructor(components: LogComponents, parts: ReplayParts) {
    this.#components = components;
    this.#parts = parts;
  }

  /** They may still read below a floor that has risen since: nothing is deleted under them. */
  get areRunning(): boolean {
    return this.#running > 0;
  }

  /**
   * What has come with the present placement, to all threads; with that it is settled, unless it is over before. Resolves with how many milliseconds,
   * once the logs were read, it waited until processes whose logs are sealed can't answer reads any more.
   */
  async whatCame(logs: readonly LogToReplay[], isOver: () => boolean): Promise<number> {
    const { channels } = this.#parts;
    const { clock } = this.#components;
    const { handOver } = this.#parts.own();
    const { placement } = handOver.standing.owners;
    await handOver.whenJoined(isOver);
    if (isOver()) return 0;
    for (const channel of channels.all()) this.#begin(channel);
    const deliverTo = (head: RecordHead) => (isOver() || !handOver.hasCome(head) ? null : channels.of(head));
    const own = handOver.nothingHasCome ? [] : [this.#ownLog];
    const concerns = (target: LogTarget) => handOver.hasCome(target);
    // At the start there is no thread yet: each hears everything when it is attached.
    if (!channels.isEmpty) await this.#replayAll([...logs, ...own], { concerns, deliverTo });
    const logsReadAt = clock.monotonic();
    await handOver.whenUnread(isOver);
    const readsWaitedMs = clock.monotonic() - logsReadAt;
    if (isOver()) return readsWaitedMs;
    handOver.settled();
    for (const channel of channels.all()) channel.notify([logCalls.replayEnd, placement]);
    return readsWaitedMs;
  }

  /** Reads those sealed logs that nobody here has read yet, to know their targets; none while other replays are under way. */
  async readUnread(isWanted: (logId: string) => boolean): Promise<void> {
    if (this.areRunning || !this.#parts.own().handOver.isSettled) return;
    const unread = this.#parts.sealedLogs.unread.filter(({ logId }) => isWanted(logId));
    const logs = unread.map(({ logId, sealSeq }) => ({ logId, after: 0, through: sealSeq - 1 }));
    await this.#replayAll(logs, { concerns: () => false, deliverTo: () => null });
  }

  /** Everything that is settled, to a thread that has just begun. What has come since follows with its placement. */
  async everythingTo(channel: PortChannel): Promise<void> {
    const { channels } = this.#parts;
    const { handOver } = this.#parts.own();
    const { store, clock } = this.#components;
    this.#begin(channel);
    const [settled] = handOver.chain;
    if (!handOver.isSettled || settled === undefined) return;
    // For one that joins others' logs would be read for nobody, while clients wait for it to become active.
    if (!handOver.ownedAny) return channel.notify([logCalls.replayEnd, settled.placement]);
    const concerns = (target: LogTarget) =>
      handOver.isOwn(target) && !handOver.hasCome(target) && channels.of(target) === channel;
    await this.#replayAll(
      [...handOver.logs(), this.#ownLog],
      { concerns, deliverTo: (head) => (concerns(head) ? channel : null) },
      patientGet(store, clock),
    );
    channel.notify([logCalls.replayEnd, settled.placement]);
  }

  /**
   * One target's records to its thread. False where the owners have changed meanwhile: where it moved and came back, it is replayed
   * for that, and nothing of this reading may follow then.
   */
  async targetTo(
    channel: PortChannel,
    { tenantId, namespaceId }: Pick<LogTarget, 'tenantId' | 'namespaceId'>,
  ): Promise<boolean> {
    const { handOver } = this.#parts.own();
    const { placement } = handOver.standing.owners;
    const isOver = () => placement !== handOver.standing.owners.placement;
    const concerns = (target: LogTarget) =>
      target.tenantId === tenantId && target.namespaceId === namespaceId;
    const deliverTo = (head: RecordHead) => (concerns(head) && !isOver() ? channel : null);
    await this.#replayAll([...handOver.logs(), this.#ownLog], { concerns, deliverTo });
    return !isOver();
  }

  get #ownLog(): LogToReplay {
    const { logId, commit } = this.#parts.own();
    return { logId, after: 0, through: commit.lastSlot };
  }

  #begin(channel: PortChannel): void {
    const { standing, chain } = this.#parts.own().handOver;
    channel.notify([logCalls.replayBegin, standing, chain]);
  }

  /** Logs are read side by side: a target's records come from each in order, and are put in order by its version. */
  async #replayAll(
    logs: readonly LogToReplay[],
    whom: Whom,
    store: Pick<ObjectStore, 'get'> = this.#components.store,
  ): Promise<void> {
    this.#running++;
    try {
      const needed = logs.filter(({ logId }) => !this.#parts.sealedLogs.isDone(logId));
      await sideBySide(needed, limits.replayLogsAtOnce, (log) => this.#replay({ store, ...log }, whom));
    } finally {
      this.#running--;
    }
  }

  async #replay(
    log: LogToReplay & { readonly store: Pick<ObjectStore, 'get'> },
    { concerns, deliverTo }: Whom,
  ): Promise<void> {
    const { store, logId, through } = log;
    const { clock } = this.#components;
    const { sealedLogs } = this.#parts;
    // The first replay of all of a sealed log finds out whom it concerns; later ones must not forget what was flushed since. One that ends at a barrier
    // knows nothing of what follows, and the log may have been sealed since it was asked for.
    const isFirst = sealedLogs.isFirstReading(logId, through);
    const unflushed = new UnflushedTargets();
    const after = isFirst ? await readFloor(store, logId) : await this.#beginOf(log, concerns);
    for await (const record of replayLog(store, { logId, after, through }, this.#components.store)) {
      const { head, position, payload } = record;
      if (isFirst) unflushed.appended(head, { ...position, atMs: clock.monotonic() });
      deliverTo(head)?.notify([logCalls.replay, ...replayedToWire(record)], movable(payload));
    }
    // Another replay of the same log may have ended first, and what it found may have been flushed since.
    if (isFirst && sealedLogs.isFirstReading(logId, through)) sealedLogs.read(logId, unflushed);
  }

  /** The slot above which the log may have what is asked for. Of the own log, and of sealed ones that were read, that is known. */
  async #beginOf(
    { store, logId, after, through }: LogToReplay & { readonly store: Pick<ObjectStore, 'get'> },
    concerns: (target: LogTarget) => boolean,
  ): Promise<number> {
    const { sealedLogs, own } = this.#parts;
    const known = logId === own().logId ? own().unflushed : sealedLogs.unflushedOf(logId);
    if (known !== undefined) return known.floor(through, concerns);
    return after >= through ? through : Math.max(after, await readFloor(store, logId));
  }
}

/** Whose records are replayed, as far as a log's targets tell, and to which thread each goes. */
interface Whom {
  readonly concerns: (target: LogTarget) => boolean;
  readonly deliverTo: (head: RecordHead) => PortChannel | null;
}

/**
 * A message moves its body's whole buffer: a payload that came as a blob has one of its own, one within a log object is
 * copied.
 */
function movable(payload: Uint8Array): Uint8Array {
  return payload.byteLength === payload.buffer.byteLength ? payload : new Uint8Array(payload);
}
